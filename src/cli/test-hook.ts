import { readFileSync } from 'node:fs';
import type { HooksConfig } from '../config/config.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { hookKind } from '../extensions/hooks/hook-kind.ts';
import { sampleEvent } from '../extensions/hooks/sample-event.ts';
import { type Trial, tryHook } from '../extensions/hooks/try-hook.ts';
import { discover } from '../extensions/host/extension-folder.ts';
import type { LineSink } from '../extensions/host/extension-host.ts';
import { sendEvent } from '../extensions/webhooks/webhook.ts';
import type { MoiraiEvent } from '../lifecycle/events.ts';
import type { Answer } from './command.ts';
import { readConfig } from './configuration.ts';
import { notFound } from './hook-names.ts';
import { printable } from './print.ts';
import type { Settings } from './settings.ts';

const MOST_LINES = 1000;

interface OutputLine {
  readonly stream: 'stdout' | 'stderr';
  readonly line: string;
}

/** Runs a hook once, or sends an event to a webhook; the process exits with 1 when the event was not taken. */
export async function testHook(settings: Settings, name: string, type: string, file?: string): Promise<Answer> {
  const sample = sampleEvent(type, new Date().toISOString());
  const event = { ...sample, ...fieldsIn(file), type: sample.type };
  const { hooks } = await readConfig(settings);
  const output: OutputLine[] = [];
  const { ms, error } = await attempt(settings.home, hooks, name, event, (stream, line) => {
    if (output.length < MOST_LINES) output.push({ stream, line });
  });
  if (error !== null) process.exitCode = 1;
  const lines = output.map(({ stream, line }) => `${stream}: ${printable(line)}\n`);
  const verdict = error === null ? 'took' : 'did not take';
  const why = error === null ? '' : `: ${printable(error.message)}`;
  return {
    json: { name, event, ok: error === null, ms, error: error?.message ?? null, output },
    text: `${lines.join('')}${printable(name)} ${verdict} ${type} (${ms} ms)${why}`,
  };
}

async function attempt(
  home: string,
  { timeoutMs, webhooks }: HooksConfig,
  name: string,
  event: MoiraiEvent,
  sink: LineSink,
): Promise<Trial> {
  const found = await discover(home, hookKind(process.env.PATH ?? ''));
  const hook = found.find((each) => each.name === name.replace(/^hook:/, ''));
  if (hook?.state === 'bad') throw new MoiraiError('hook_invalid', `${hook.name}: ${hook.problem}`);
  if (hook !== undefined) return tryHook(hook, event, { home, timeoutMs, environment: process.env, sink });
  const webhook = webhooks.find((each) => each.name === name.replace(/^webhook:/, ''));
  const names = [...found, ...webhooks].map((each) => each.name);
  if (webhook === undefined) throw notFound(name, names);
  const start = performance.now();
  const error = await sendEvent(webhook, event, timeoutMs, new AbortController().signal).then(
    () => null,
    (thrown: unknown) => MoiraiError.wrap(thrown),
  );
  return { ms: Math.round(performance.now() - start), error };
}

function fieldsIn(file: string | undefined): object {
  if (file === undefined) return {};
  try {
    const fields: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return fields;
  } catch (cause) {
    throw new MoiraiError('bad_input', `--json-file cannot be read: ${(cause as Error).message}`, { cause });
  }
  throw new MoiraiError('bad_input', '--json-file holds no JSON object');
}
