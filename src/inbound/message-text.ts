import { sanitize } from '../platforms/outside-text.ts';
import type { Incoming, IncomingFile, Quote } from '../platforms/platform.ts';
import { withoutGatewayLines } from '../turns/spoken-text.ts';

/** A file that came with a message, after we tried to fetch it. */
export interface ReceivedFile {
  readonly file: IncomingFile;
  /** Where it is, from the workspace; null when it could not be had. */
  readonly path: string | null;
  readonly problem: string | null;
  /** What it shows, where somebody looked. */
  readonly shows?: string | null;
}

const QUOTED = 500;
/** What is longer is refused before anybody reads it: reading takes time in which everybody else waits. */
export const LONGEST_MESSAGE = 40_000;

/**
 * What the agent reads of a message: what was written, and in brackets what the gateway knows about it. `shared` means
 * that several people talk in this conversation: there no line of theirs may look like one of the gateway's.
 */
export function messageText(message: Incoming, shared: boolean): string {
  const before = [
    message.edited ? '[This takes the place of an earlier message:]' : '',
    message.repliesTo === null ? '' : quoteText(message.repliesTo),
    ...message.files.map((file) => fileText({ file, path: null, problem: null })),
  ];
  const words = shared ? withoutGatewayLines(message.text) : message.text;
  return [...before, words].filter((part) => part !== '').join('\n');
}

function quoteText({ text, author, own }: Quote): string {
  const whose = own ? 'your message' : `a message of ${sanitize(author ?? 'somebody') || 'somebody'}`;
  const words = sanitize(text, QUOTED);
  return words === '' ? `[This answers ${whose}.]` : `[This answers ${whose}: "${words}"]`;
}

/** One that is neither there nor known to be missing is only named: it will be fetched. */
export function fileText({ file, path, problem, shows = null }: ReceivedFile): string {
  const what = [
    KINDS[file.kind],
    file.name === null ? '' : sanitize(file.name),
    file.hint === null ? '' : sanitize(file.hint),
  ];
  const described = what.filter((part) => part !== '').join(' ');
  if (file.kind === 'sticker') return shows === null ? `[${described}]` : `[${described}: ${shows}]`;
  if (path !== null) return `[${described}, saved as ${path}]`;
  return problem === null ? `[${described}]` : `[${described}, not received: ${problem}]`;
}

const KINDS: Readonly<Record<IncomingFile['kind'], string>> = {
  image: 'An image',
  audio: 'An audio file',
  voice: 'A voice message',
  video: 'A video',
  document: 'A file',
  sticker: 'A sticker',
};
