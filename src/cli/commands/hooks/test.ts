import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { HooksConfig } from '../../../config/config.ts';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { hookKind, type UsableHook } from '../../../extensions/hooks/hook-kind.ts';
import { sampleEvent } from '../../../extensions/hooks/sample-event.ts';
import { type Trial, tryHook } from '../../../extensions/hooks/try-hook.ts';
import { discover } from '../../../extensions/host/extension-folder.ts';
import { sendEvent } from '../../../extensions/webhooks/webhook.ts';
import type { MoiraiEvent } from '../../../lifecycle/events.ts';
import { readConfig } from '../../configuration.ts';
import { notFound } from '../../hook-names.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Runs a hook once with a sample event, or sends one to a webhook, and shows what came of it.')
    .argument('<name>', 'the hook or webhook')
    .argument('<event>', 'the type of the event, such as session:end')
    .option('--json-file <file>', 'an object whose fields replace those of the sample')
    .addHelpText('after', NOTE)
    .action((name: string, type: string, options: { jsonFile?: string }) => test(command, name, type, options));
}

const NOTE = `
The event is sent whether the hook listens to it or not; nothing is recorded. Exit codes: 0 it took the event, 1 it did not.`;

const MOST_LINES = 1000;

interface OutputLine {
  readonly stream: 'stdout' | 'stderr';
  readonly line: string;
}

async function test(command: Command, name: string, type: string, options: { jsonFile?: string }): Promise<void> {
  const settings = settingsOf(command);
  const sample = sampleEvent(type, new Date().toISOString());
  const event = { ...sample, ...fieldsIn(options.jsonFile), type: sample.type };
  const { hooks } = await readConfig(settings);
  const output: OutputLine[] = [];
  const { ms, error } = await attempt(
    settings,
    hooks,
    name,
    event,
    (line) => output.length < MOST_LINES && output.push(line),
  );
  if (settings.json) {
    await printJson({ name, event, ok: error === null, ms, error: error?.message ?? null, output });
  } else {
    for (const { stream, line } of output) await printLine(`${stream}: ${printable(line)}`);
    const verdict = error === null ? 'took' : 'did not take';
    await printLine(
      `${printable(name)} ${verdict} ${type} (${ms} ms)${error === null ? '' : `: ${printable(error.message)}`}`,
    );
  }
  if (error !== null) process.exitCode = 1;
}

async function attempt(
  settings: Settings,
  config: HooksConfig,
  name: string,
  event: MoiraiEvent,
  onLine: (line: OutputLine) => unknown,
): Promise<Trial> {
  const found = await discover(settings.home, hookKind(process.env.PATH ?? ''));
  const hook = found.find((each) => each.name === name.replace(/^hook:/, ''));
  if (hook?.state === 'bad') throw new MoiraiError('hook_invalid', `${hook.name}: ${hook.problem}`);
  if (hook !== undefined) return runHook(settings, config, hook, event, onLine);
  const webhook = config.webhooks.find((each) => each.name === name.replace(/^webhook:/, ''));
  if (webhook === undefined)
    throw notFound(
      name,
      [...found, ...config.webhooks].map((each) => each.name),
    );
  const start = performance.now();
  const error = await sendEvent(webhook, event, config.timeoutMs, new AbortController().signal).then(
    () => null,
    (thrown: unknown) => MoiraiError.wrap(thrown),
  );
  return { ms: Math.round(performance.now() - start), error };
}

function runHook(
  { home }: Settings,
  { timeoutMs }: HooksConfig,
  hook: UsableHook,
  event: MoiraiEvent,
  onLine: (line: OutputLine) => unknown,
): Promise<Trial> {
  const sink = (stream: OutputLine['stream'], line: string): unknown => onLine({ stream, line });
  return tryHook(hook, event, { home, timeoutMs, environment: process.env, sink });
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
