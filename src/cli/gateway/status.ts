import type { Readiness } from '../../api/backend.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { formatDuration } from '../../lifecycle/duration.ts';
import type { Answer } from '../command.ts';
import { facts, printable } from '../print.ts';
import type { Settings } from '../settings.ts';
import { GatewayClient } from './client.ts';
import { findGateway, type GatewayHolder } from './holder.ts';

const NOT_RUNNING = 3;

/** Whether the gateway of a home runs, and what it says of itself; the process exits with 3 when it does not. */
export async function status(settings: Settings): Promise<Answer> {
  const { home } = settings;
  const holder = findGateway(home);
  if (holder === null) {
    process.exitCode = NOT_RUNNING;
    return { json: { running: false, home }, text: `No gateway runs in ${printable(home)}.` };
  }
  const { url, pid, host, version, instance } = holder;
  const { state, checks, figures, problem } = await ask(holder, settings);
  const figure = (name: string): number | null => figures.get(`moirai_${name}`) ?? null;
  const turns = { running: figure('turns_running'), waiting: figure('turns_waiting') };
  const uptimeMs = Math.max(0, Date.now() - Date.parse(holder.startedAt));
  const checkLines = Object.entries(checks).map(([name, { ok, detail }]) => [
    `  ${name}`,
    `${ok ? 'ok' : 'fail'}, ${detail}`,
  ]);
  return {
    json: {
      running: true,
      state,
      url,
      pid,
      host,
      version,
      home,
      instance,
      started_at: holder.startedAt,
      started_by: holder.startedBy,
      uptime_ms: uptimeMs,
      turns,
      sessions_open: figure('sessions_open'),
      checks,
      error: problem && { code: problem.code, message: problem.message, hint: problem.hint },
    },
    text: facts({
      state,
      url,
      pid,
      version,
      up: formatDuration(uptimeMs),
      home,
      turns: turns.running === null ? null : `${turns.running} running, ${turns.waiting ?? 0} waiting`,
      'sessions open': figure('sessions_open'),
      problem: problem && `${problem.message} [${problem.code}]`,
      ...Object.fromEntries(checkLines),
    }),
  };
}

/** What the gateway itself says. */
interface Statement {
  readonly state: Readiness['state'] | 'unreachable';
  readonly checks: Readiness['checks'];
  readonly figures: ReadonlyMap<string, number>;
  readonly problem: MoiraiError | null;
}

async function ask(holder: GatewayHolder, settings: Settings): Promise<Statement> {
  try {
    const client = await GatewayClient.to(holder, settings);
    const [{ state, checks }, figures] = await Promise.all([client.readiness(), client.figures()]);
    return { state, checks, figures, problem: null };
  } catch (thrown) {
    return { state: 'unreachable', checks: {}, figures: new Map(), problem: MoiraiError.wrap(thrown) };
  }
}
