import { closeSync, openSync, writeFileSync } from 'node:fs';
import { readTranscript } from '../../engine/transcript.ts';
import { isoTime, messageView, sessionView } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { parseNames } from '../../lifecycle/list-filters.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { Store } from '../../store/port.ts';
import type { Answer } from '../command.ts';
import { outputGone, print, printable } from '../print.ts';
import type { StoreSession } from '../store-session.ts';

export const FORMATS = ['json', 'md'] as const;

export function parseFormat(text: string): string {
  parseNames('--format', text, FORMATS);
  return text;
}

/** Writes a session to standard output or into a file; only of a file is there anything to answer. */
export async function exportSession(
  { store }: StoreSession,
  idOrPrefix: string,
  { format, output }: { format: string; output?: string },
): Promise<Answer | undefined> {
  const session = await store.read('findSession', { idOrPrefix });
  const inTerminal = output === undefined && process.stdout.isTTY;
  const pieces = format === 'md' ? asMarkdown(store, session, inTerminal) : asJson(store, session);
  if (output === undefined) return printAll(pieces);
  await writeAll(output, pieces);
  return { json: { id: session.id, file: output }, text: `Wrote ${session.id} to ${printable(output)}` };
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

async function printAll(pieces: AsyncGenerator<string>): Promise<undefined> {
  for await (const piece of pieces) {
    if (outputGone.aborted) return;
    await print(piece);
  }
}

async function writeAll(file: string, pieces: AsyncGenerator<string>): Promise<void> {
  let descriptor: number;
  try {
    // A transcript is readable for its owner only.
    descriptor = openSync(file, 'w', 0o600);
  } catch (cause) {
    throw new MoiraiError('bad_input', `${file} cannot be written: ${MoiraiError.wrap(cause).message}`, { cause });
  }
  try {
    for await (const piece of pieces) writeFileSync(descriptor, piece);
  } finally {
    closeSync(descriptor);
  }
}
