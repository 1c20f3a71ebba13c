import type { Connection } from '../connection.ts';
import { withDeadline } from '../deadline.ts';
import type { Fields } from '../fields.ts';
import { type Inbox, SendFailure } from '../platform.ts';
import { Backfill } from './backfill.ts';
import { keepConnected } from './connecting.ts';
import { troubleOf } from './failures.ts';
import { askWho } from './identity.ts';
import { Interactions } from './interactions.ts';
import { parsePayload } from './parse.ts';
import { People } from './people.ts';
import { Positions } from './positions.ts';
import { Reception } from './reception.ts';
import type { SlackBot, SlackOptions } from './slack-client.ts';
import type { Self } from './text.ts';

const CALL_MS = 30_000;
const NOTHING: Fields = {};

/** Slack from a start to a stop. */
export class Session {
  readonly #options: SlackOptions;
  readonly #bot: SlackBot;
  readonly #connection: Connection;
  readonly #stopped = new AbortController();
  readonly #positions: Positions;
  readonly #reception: Reception;
  readonly #interactions: Interactions;
  #self: Self | null = null;
  #asking = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: SlackOptions, bot: SlackBot, connection: Connection, inbox: Inbox) {
    this.#options = options;
    this.#bot = bot;
    this.#connection = connection;
    this.#positions = new Positions(bot.runtime);
    const { signal } = this.#stopped;
    const people = new People(bot);
    this.#reception = new Reception({ bot, inbox, positions: this.#positions, people, signal });
    this.#interactions = new Interactions(bot, inbox, this.#reception);
  }

  begin(): void {
    const { runtime, redact } = this.#bot;
    this.#running = this.#run().catch((thrown: unknown) => {
      runtime.warn('Slack stopped by itself', { error: redact(String(thrown)) });
    });
  }

  async end(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await this.#reception.settle();
    await this.#interactions.settle();
    await this.#positions.flush();
  }

  /** What is answered when it is to be acknowledged; null when it has to come again. Never rejects. */
  async take(payload: unknown): Promise<Fields | null> {
    if (this.#self === null || this.#stopped.signal.aborted) return null;
    const parsed = parsePayload(payload, { self: this.#self, now: this.#bot.runtime.now() });
    if (parsed === null) return NOTHING;
    switch (parsed.kind) {
      case 'press':
        await this.#interactions.press(parsed);
        return NOTHING;
      case 'command':
        await this.#interactions.command(parsed);
        return NOTHING;
      case 'opened':
        this.#interactions.open(parsed);
        return NOTHING;
      case 'revoked':
        void this.#askAgain();
        return NOTHING;
      default:
        return (await this.#reception.takeInTime(parsed)) ? NOTHING : null;
    }
  }

  #askWho(): Promise<Self> {
    return withDeadline(this.#stopped.signal, CALL_MS, (deadline) => askWho(this.#bot, deadline));
  }

  /** Whether the app is still there is for Slack to say, not for an event. */
  async #askAgain(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    const { signal } = this.#stopped;
    try {
      await this.#askWho();
    } catch (thrown) {
      const isOver = troubleOf(thrown, this.#bot.redact).phase === 'failed';
      if (isOver && !signal.aborted) await this.#connection.failed(thrown, signal);
    }
    this.#asking = false;
  }

  /** Without them nobody would know what was missed. */
  async #loadPositions(): Promise<true> {
    await this.#positions.load().catch(() => {
      throw new SendFailure('what was kept of the messages cannot be read', 1000, 'transient');
    });
    return true;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const [bot, connection] = [this.#bot, this.#connection];
    if ((await connection.keepTrying(() => this.#loadPositions(), signal)) === null) return;
    const self = await connection.keepTrying(() => this.#askWho(), signal);
    if (self === null) return;
    const [positions, reception] = [this.#positions, this.#reception];
    const backfill = new Backfill({ bot, self, positions, reception, signal });
    const gap = (): void => backfill.begin();
    if (this.#options.mode === 'socket') {
      this.#self = self;
      const received = ({ payload }: { payload: unknown }) => this.take(payload);
      await keepConnected({ options: this.#options, bot, connection, received, gap }, signal);
      return;
    }
    // Requests are taken from here on: what was said before them is asked for first.
    gap();
    this.#self = self;
    connection.succeeded();
  }
}
