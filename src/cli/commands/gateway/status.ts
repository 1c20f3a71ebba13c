import type { Command } from 'commander';
import type { Readiness } from '../../../api/backend.ts';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { formatDuration } from '../../../lifecycle/duration.ts';
import { GatewayClient } from '../../gateway/client.ts';
import { findGateway, type GatewayHolder } from '../../gateway/holder.ts';
import { facts, print, printable, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';

const NOT_RUNNING = 3;

export function define(command: Command): void {
  command
    .description('Says whether the gateway runs, where, and how it stands.')
    .addHelpText('after', '\nExit codes: 0 it runs, also while it drains or does not answer; 3 it does not.')
    .action(() => status(settingsOf(command)));
}

/** What the gateway itself says. */
interface Answer {
  readonly state: Readiness['state'] | 'unreachable';
  readonly checks: Readiness['checks'];
  readonly turns: { readonly running: number | null; readonly waiting: number | null };
  readonly sessionsOpen: number | null;
  readonly problem: MoiraiError | null;
}

async function status(settings: Settings): Promise<void> {
  const { home, json } = settings;
  const holder = findGateway(home);
  if (holder === null) {
    process.exitCode = NOT_RUNNING;
    return json ? printJson({ running: false, home }) : printLine(`No gateway runs in ${printable(home)}.`);
  }
  const uptimeMs = Math.max(0, Date.now() - Date.parse(holder.startedAt));
  const answer = await ask(holder, settings);
  return json ? printJson(viewOf(home, holder, answer, uptimeMs)) : show(home, holder, answer, uptimeMs);
}

async function ask(holder: GatewayHolder, settings: Settings): Promise<Answer> {
  try {
    const client = await GatewayClient.to(holder, settings);
    const [{ state, checks }, figures] = await Promise.all([client.readiness(), client.figures()]);
    const figure = (name: string): number | null => figures.get(`moirai_${name}`) ?? null;
    const turns = { running: figure('turns_running'), waiting: figure('turns_waiting') };
    return { state, checks, turns, sessionsOpen: figure('sessions_open'), problem: null };
  } catch (thrown) {
    const turns = { running: null, waiting: null };
    return { state: 'unreachable', checks: {}, turns, sessionsOpen: null, problem: MoiraiError.wrap(thrown) };
  }
}

function viewOf(home: string, holder: GatewayHolder, answer: Answer, uptimeMs: number) {
  const { pid, url, version, startedAt, startedBy, instance, host } = holder;
  const { state, checks, turns, sessionsOpen, problem } = answer;
  const error = problem && { code: problem.code, message: problem.message, hint: problem.hint };
  return {
    ...{ running: true, state, url, pid, host, version, home, instance },
    ...{ started_at: startedAt, started_by: startedBy, uptime_ms: uptimeMs },
    ...{ turns, sessions_open: sessionsOpen, checks, error },
  };
}

async function show(home: string, holder: GatewayHolder, answer: Answer, uptimeMs: number): Promise<void> {
  const { running, waiting } = answer.turns;
  const checks = Object.entries(answer.checks).map(([name, { ok, detail }]) => [
    `  ${name}`,
    `${ok ? 'ok' : 'fail'}, ${detail}`,
  ]);
  await print(
    facts({
      state: answer.state,
      url: holder.url,
      pid: holder.pid,
      version: holder.version,
      up: formatDuration(uptimeMs),
      home,
      turns: running === null ? null : `${running} running, ${waiting ?? 0} waiting`,
      'sessions open': answer.sessionsOpen,
      problem: answer.problem && `${answer.problem.message} [${answer.problem.code}]`,
      ...Object.fromEntries(checks),
    }),
  );
}
