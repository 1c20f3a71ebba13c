import { KeptCursor } from '../cursor.ts';
import { fieldsOf } from '../fields.ts';
import type { Place, PlatformRuntime } from '../platform.ts';
import { idOf, timeOf } from './places.ts';

/** As many channels, and as many threads, are asked for what was missed: Slack answers about 50 such questions a minute. */
const MOST_KEPT = 40;

/** A channel, or a thread in it, and the last message that the inbox has from there. */
export interface Position {
  readonly team: string;
  readonly channel: string;
  readonly thread: string | null;
  readonly time: string;
}

/** How far the inbox has everything, for the channels and threads that were heard last. */
export class Positions {
  readonly #cursor: KeptCursor;
  /** In the order in which they were heard. */
  readonly #known = new Map<string, Position>();

  constructor(runtime: PlatformRuntime) {
    this.#cursor = new KeptCursor(runtime, 'positions');
  }

  /** As the last process left them. */
  async load(): Promise<void> {
    for (const position of parsePositions(await this.#cursor.read())) this.#known.set(nameOf(position), position);
  }

  /** The channels with their threads. */
  get channels(): readonly string[] {
    return [...new Set([...this.#known.values()].map(({ channel }) => channel))];
  }

  /** Of the channel itself and of its threads. */
  in(channel: string): readonly Position[] {
    return [...this.#known.values()].filter((position) => position.channel === channel);
  }

  /** The inbox has this message, and everything that was said there before. */
  reach({ type, chat, scope, thread }: Place, time: string): void {
    if (scope === undefined) return;
    this.#reach({ team: scope, channel: chat, thread: thread ?? null, time });
    // With the assistant everything in a direct chat is said in threads; new ones are found by the chat.
    if (type === 'dm' && thread !== undefined) this.#reach({ team: scope, channel: chat, thread: null, time });
    this.#keep();
  }

  #reach(position: Position): void {
    const { time } = position;
    const name = nameOf(position);
    const before = this.#known.get(name);
    this.#known.delete(name);
    this.#known.set(name, before !== undefined && Number(before.time) > Number(time) ? before : position);
    this.#forgetOldest(position.thread === null);
  }

  /** Nothing can be asked there any more. */
  forget(position: Position): void {
    if (this.#known.delete(nameOf(position))) this.#keep();
  }

  async flush(): Promise<void> {
    await this.#cursor.flush();
  }

  #forgetOldest(channels: boolean): void {
    const same = [...this.#known].filter(([, { thread }]) => (thread === null) === channels);
    for (const [name] of same.slice(0, Math.max(0, same.length - MOST_KEPT))) this.#known.delete(name);
  }

  #keep(): void {
    this.#cursor.moveTo(JSON.stringify(Object.fromEntries([...this.#known].map(([name, { time }]) => [name, time]))));
  }
}

function nameOf({ team, channel, thread }: Omit<Position, 'time'>): string {
  return [team, channel, ...(thread === null ? [] : [thread])].join(':');
}

function parsePositions(kept: string | null): readonly Position[] {
  return Object.entries(parsedFields(kept)).flatMap(([name, value]) => {
    const [team, channel, thread] = name.split(':');
    const time = timeOf(value);
    if (time === null || idOf(team) === null || idOf(channel) === null) return [];
    return [{ team: team ?? '', channel: channel ?? '', thread: timeOf(thread), time }];
  });
}

function parsedFields(text: string | null): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(text ?? '{}')) ?? {};
  } catch {
    return {};
  }
}
