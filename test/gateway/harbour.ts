import type {
  Abilities,
  Inbox,
  Incoming,
  Outgoing,
  Place,
  Platform,
  PlatformRuntime,
  PlatformState,
  ReplyStream,
  SentMessage,
} from '../../src/platforms/platform.ts';
import type { ConfiguredPlatform } from '../../src/platforms/registry.ts';

/** What a message of ours is there. */
export interface HarbourMessage extends Outgoing {
  readonly place: Place;
  readonly messageId: string;
}

const ABILITIES: Abilities = {
  ...{ maxText: 1000, counts: 'utf16', markdown: true, edit: false, remove: false, typing: false, reactions: false },
  ...{ threads: true, buttons: false, files: { in: false, out: false, maxBytes: 0 }, editEveryMs: 10 },
};

/** A platform in the same process, which does as the test says: for what the gateway does with each part of the contract. */
export class Harbour implements Platform {
  readonly name: string = 'harbour';
  abilities: Abilities = ABILITIES;
  state: PlatformState = { phase: 'stopped', problem: null, lastSuccessAt: null };
  runtime!: PlatformRuntime;
  inbox!: Inbox;
  readonly sent: HarbourMessage[] = [];
  readonly edits: string[] = [];
  /** By handle: what the stream shows, and whether it has ended. */
  readonly streams = new Map<string, { text: string; finished: boolean }>();
  /** Throws what the next messages are refused with. */
  refuse: (message: Outgoing) => void = () => undefined;
  listPlaces: () => Promise<readonly Place[]> = async () => [];
  findSent?: (place: Place, key: string) => Promise<SentMessage | null>;
  react?: NonNullable<Platform['react']>;
  offerCommands?: NonNullable<Platform['offerCommands']>;
  #messages = 0;

  /** As the gateway is given it. */
  get configured(): ConfiguredPlatform {
    return {
      name: this.name,
      credential: 'harbour:test',
      make: async (runtime) => {
        this.runtime = runtime;
        return this;
      },
    };
  }

  can(abilities: Partial<Abilities>): void {
    this.abilities = { ...this.abilities, ...abilities };
  }

  async start(inbox: Inbox): Promise<void> {
    this.inbox = inbox;
    this.state = { phase: 'connected', problem: null, lastSuccessAt: Date.now() };
    inbox.changed();
  }

  async stop(): Promise<void> {
    this.state = { ...this.state, phase: 'stopped' };
  }

  /** Somebody writes in a direct chat, or where it is said. */
  async say(text: string, rest: Partial<Incoming> = {}): Promise<string> {
    const messageId = `m${++this.#messages}`;
    await this.inbox.receive({
      ...{ id: `harbour:${messageId}`, messageId, place: { type: 'dm', chat: '42' }, text, files: [], repliesTo: null },
      ...{ from: { id: '42', name: 'Ada', bot: false }, addressed: true, edited: false, group: null, at: Date.now() },
      ...rest,
    });
    return messageId;
  }

  async send(place: Place, message: Outgoing): Promise<SentMessage> {
    this.refuse(message);
    const messageId = `s${++this.#messages}`;
    this.sent.push({ ...message, place, messageId });
    if (place.opens === undefined) return { messageId };
    const { opens, ...rest } = place;
    return { messageId, place: { ...rest, type: 'thread', thread: messageId, name: opens.title } };
  }

  async edit(_: Place, messageId: string, { text }: Outgoing): Promise<void> {
    this.edits.push(`${messageId}: ${text}`);
  }

  async startStream(_: Place, { key }: { key: string }): Promise<ReplyStream> {
    this.streams.set(key, { text: '', finished: false });
    return this.resumeStream(_, key);
  }

  resumeStream(_: Place, handle: string): ReplyStream {
    const change = (text: string, finished: boolean): void => {
      this.streams.set(handle, { text, finished });
    };
    return {
      handle,
      append: async (text) => change(text, false),
      finish: async ({ text }) => {
        change(text, true);
        return { messageId: handle };
      },
    };
  }

  get texts(): string[] {
    return this.sent.map(({ text }) => text);
  }
}
