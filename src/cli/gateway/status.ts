import type { Readiness } from '../../api/backend.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { formatDuration } from '../../lifecycle/duration.ts';
import type { Answer } from '../command.ts';
import { facts, printable } from '../print.ts';
import type { Settings } from '../settings.ts';
import { GatewayClient } from './client.ts';
import { findGateway, type GatewayHolder } from './holder.ts';

const NOT_RUNNING = 3;

/** What the gateway itself says. */
interface Statement {
  readonly state: Readiness['state'] | 'unreachable';
  readonly checks: Readiness['checks'];
  readonly turns: { readonly running: number | null; readonly waiting: number | null };
  readonly sessionsOpen: number | null;
  readonly problem: MoiraiError | null;
}

/** Whether the gateway of a home runs, and what it says of itself; the process exits with 3 when it does not. */
export async function status(settings: Settings): Promise<Answer> {
  const { home } = settings;
  const holder = findGateway(home);
  if (holder === null) {
    process.exitCode = NOT_RUNNING;
    return { json: { running: false, home }, text: `No gateway runs in ${printable(home)}.` };
  }
  const uptimeMs = Math.max(0, Date.now() - Date.parse(holder.startedAt));
  const said = await ask(holder, settings);
  return { json: viewOf(home, holder, said, uptimeMs), text: textOf(home, holder, said, uptimeMs) };
}

async function ask(holder: GatewayHolder, settings: Settings): Promise<Statement> {
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

function viewOf(home: string, holder: GatewayHolder, said: Statement, uptimeMs: number) {
  const { problem } = said;
  return {
    running: true,
    state: said.state,
    url: holder.url,
    pid: holder.pid,
    host: holder.host,
    version: holder.version,
    home,
    instance: holder.instance,
    started_at: holder.startedAt,
    started_by: holder.startedBy,
    uptime_ms: uptimeMs,
    turns: said.turns,
    sessions_open: said.sessionsOpen,
    checks: said.checks,
    error: problem && { code: problem.code, message: problem.message, hint: problem.hint },
  };
}

function textOf(home: string, holder: GatewayHolder, said: Statement, uptimeMs: number): string {
  const { running, waiting } = said.turns;
  const checks = Object.entries(said.checks).map(([name, { ok, detail }]) => [
    `  ${name}`,
    `${ok ? 'ok' : 'fail'}, ${detail}`,
  ]);
  return facts({
    state: said.state,
    url: holder.url,
    pid: holder.pid,
    version: holder.version,
    up: formatDuration(uptimeMs),
    home,
    turns: running === null ? null : `${running} running, ${waiting ?? 0} waiting`,
    'sessions open': said.sessionsOpen,
    problem: said.problem && `${said.problem.message} [${said.problem.code}]`,
    ...Object.fromEntries(checks),
  });
}
