import { targetOf } from '../cron/job-targets.ts';
import { jobLine } from '../cron/job-view.ts';
import { scopeOf } from '../cron/schedule-port.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { nearestName } from '../lifecycle/events.ts';
import type { CommandCall } from '../turns/command.ts';
import { type CommandDeps, type CommandSpec, record } from './command.ts';

export const CRON_COMMAND: CommandSpec = {
  name: 'cron',
  takes: '[add "0 9 * * *" TEXT | remove|pause|resume|run JOB]',
  summary: 'show what is scheduled in this conversation, or change it',
  async run(call, deps) {
    await record(call, deps);
    const [, verb = 'list', rest = ''] = /^(\S+)(?:\s+([\s\S]*))?$/.exec(call.args) ?? [];
    const act = ACTIONS[verb.toLowerCase()];
    if (act !== undefined) return act(rest.trim(), call, deps);
    const nearest = nearestName(verb, Object.keys(ACTIONS));
    throw new MoiraiError('bad_input', `/cron does not know "${verb.slice(0, 40)}"; did you mean "${nearest}"?`);
  },
};

type Action = (rest: string, call: CommandCall, deps: CommandDeps) => Promise<string>;

const ACTIONS: Readonly<Record<string, Action>> = {
  list: async (_rest, { conversation }, { jobs }) => {
    const own = await jobs.list(scopeOf(conversation));
    return own.length === 0 ? 'Nothing is scheduled here. /cron add "0 9 * * *" TEXT' : own.map(jobLine).join('\n');
  },
  add: async (rest, { conversation }, { jobs }) => {
    const { schedule, prompt } = splitSchedule(rest);
    const made = { madeIn: scopeOf(conversation), madeBy: conversation.userId };
    return `Scheduled: ${jobLine(await jobs.add({ schedule, prompt, target: targetOf(conversation), ...made }))}`;
  },
  remove: async (rest, { conversation }, { jobs }) =>
    `Removed: ${jobLine(await jobs.remove(rest, scopeOf(conversation)))}`,
  pause: async (rest, { conversation }, { jobs }) =>
    `Paused: ${jobLine(await jobs.pause(rest, scopeOf(conversation)))}`,
  resume: async (rest, { conversation }, { jobs }) =>
    `Goes on: ${jobLine(await jobs.resume(rest, scopeOf(conversation)))}`,
  run: async (rest, { conversation }, { jobs }) => {
    const job = await jobs.run(rest, scopeOf(conversation));
    return `Due now: ${job.name ?? job.id}. You will be told.`;
  },
};

// Phones make typographic quotes of plain ones.
const QUOTED = /^["'“”„‘’]([^"'“”„‘’]+)["'“”„‘’]\s*([\s\S]*)$/;
const SPOKEN = /^((?:every|in)\s+\S+|at\s+\S+(?:\s+\d\d:\d\d(?::\d\d)?)?|@\w+)(?:\s+([\s\S]*))?$/i;
const EXPRESSION = /^((?:[\d*]\S*)\s+(?:\S+\s+){3}\S+)(?:\s+([\s\S]*))?$/;

/** A schedule and what is to be done: in quotes, or where its end can be seen without them. */
function splitSchedule(text: string): { schedule: string; prompt: string } {
  const found = QUOTED.exec(text) ?? SPOKEN.exec(text) ?? EXPRESSION.exec(text);
  if (found === null) {
    throw new MoiraiError('bad_schedule', '/cron add needs a schedule and a text: /cron add "0 9 * * *" what is new?');
  }
  const [, schedule = '', prompt = ''] = found;
  return { schedule, prompt };
}
