import { closeSync, openSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { readTranscript } from '../../../engine/transcript.ts';
import { isoTime, messageView, sessionView } from '../../../engine/views.ts';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import type { Session } from '../../../lifecycle/session.ts';
import type { Store } from '../../../store/port.ts';
import { parseNames } from '../../options.ts';
import { outputGone, print, printable, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

const FORMATS = ['json', 'md'] as const;

interface ExportOptions {
  readonly format: string;
  readonly output?: string;
}

export function define(command: Command): void {
  command
    .description('Writes out a session with its whole transcript, and those of the sessions it continues.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .option('--format <format>', FORMATS.join(' or '), 'json')
    .option('--output <file>', 'write it there instead of to standard output')
    .addHelpText('after', '\nExample:\n  moirai sessions export ses_01m7fad6b6 --format md --output harbour.md')
    .action((id: string, options: ExportOptions) => exportSession(settingsOf(command), id, options));
}

async function exportSession(settings: Settings, idOrPrefix: string, options: ExportOptions): Promise<void> {
  parseNames('--format', options.format, FORMATS);
  const { output } = options;
  await openStoreSession(settings, async ({ store }) => {
    const session = await store.read('findSession', { idOrPrefix });
    const inTerminal = output === undefined && process.stdout.isTTY;
    const pieces = options.format === 'md' ? asMarkdown(store, session, inTerminal) : asJson(store, session);
    if (output === undefined) return printAll(pieces);
    await writeAll(output, pieces);
    if (settings.json) return printJson({ id: session.id, file: output });
    return printLine(`Wrote ${session.id} to ${printable(output)}`);
  });
}

async function* asJson(store: Store, session: Session): AsyncGenerator<string> {
  const lineage = await store.read('lineageOf', { sessionId: session.id });
  const head = { session: sessionView(session), lineage };
  yield `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "messages": [`;
  let comma = '';
  for await (const message of readTranscript(store, session.id)) {
    yield `${comma}\n    ${JSON.stringify(messageView(message))}`;
    comma = ',';
  }
  yield comma === '' ? ']\n}\n' : '\n  ]\n}\n';
}

/** `inTerminal` takes the sting out of what would act on a terminal; a file has the text as it is. */
async function* asMarkdown(store: Store, session: Session, inTerminal: boolean): AsyncGenerator<string> {
  const { id, key, platform, userId, startedAt, endedAt, endReason } = session;
  yield `# ${printable(session.title ?? key)}\n\n`;
  const facts = { id, key, platform, user: userId, started: isoTime(startedAt), ended: isoTime(endedAt), endReason };
  for (const [name, value] of Object.entries(facts)) {
    if (value !== null) yield `- ${name === 'endReason' ? 'reason' : name}: ${printable(value)}\n`;
  }
  for await (const { role, at, text } of readTranscript(store, id)) {
    const shown = inTerminal ? text.split('\n').map(printable).join('\n') : text;
    yield `\n## ${printable(role)}, ${isoTime(at)}\n\n${shown}\n`;
  }
}

async function printAll(pieces: AsyncGenerator<string>): Promise<void> {
  for await (const piece of pieces) {
    if (outputGone.aborted) return;
    await print(piece);
  }
}

async function writeAll(file: string, pieces: AsyncGenerator<string>): Promise<void> {
  let descriptor: number;
  try {
    // What people said is for its owner's eyes.
    descriptor = openSync(file, 'w', 0o600);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new MoiraiError('bad_input', `${file} cannot be written: ${why}`, { cause });
  }
  try {
    for await (const piece of pieces) writeFileSync(descriptor, piece);
  } finally {
    closeSync(descriptor);
  }
}
