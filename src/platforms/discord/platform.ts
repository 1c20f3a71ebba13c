import { Connection } from '../connection.ts';
import { fieldsOf, nameOf } from '../fields.ts';
import type { Inbox, Outgoing, Place, Platform, PlatformState, ReactionSign, SentMessage } from '../platform.ts';
import { DISCORD_ABILITIES } from './abilities.ts';
import { DiscordApi, type DiscordOptions } from './api.ts';
import { downloadFile } from './download.ts';
import { troubleOf } from './failures.ts';
import { Gateway } from './gateway.ts';
import { Interactions } from './interactions.ts';
import { KeptMarks, KeptSessions } from './kept-state.ts';
import { listPlaces } from './listing.ts';
import type { Self } from './parse.ts';
import { Reception } from './reception.ts';
import { countPoints, renderDiscord } from './render.ts';
import { Sending } from './send.ts';
import { snowflakeOf } from './snowflake.ts';

const MOST_COMMANDS = 100;
const MOST_DESCRIPTION = 100;
const [CHAT_INPUT, TEXT_OPTION] = [1, 3];
/** In servers and in direct chats with the bot. */
const WHERE = { contexts: [0, 1], integration_types: [0] };

/** What is under way; null between `stop` and `start`. */
interface Session {
  readonly reception: Reception;
  readonly marks: KeptMarks;
  readonly kept: KeptSessions;
  readonly stopped: AbortController;
  run: Promise<void>;
}

/** Discord, by its gateway and its REST interface. */
export class Discord implements Platform {
  readonly name: string;
  readonly abilities = DISCORD_ABILITIES;
  readonly #api: DiscordApi;
  readonly #connection: Connection;
  readonly #interactions: Interactions;
  readonly #sending: Sending;
  #self: Self | null = null;
  #session: Session | null = null;
  #offered = '';

  constructor(options: DiscordOptions) {
    this.#api = new DiscordApi(options);
    const { runtime, redact } = this.#api;
    this.name = runtime.name;
    this.#connection = new Connection({ label: 'Discord', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#interactions = new Interactions(this.#api);
    this.#sending = new Sending(this.#api, this.#interactions, () => this.#self);
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const { runtime, redact } = this.#api;
    const stopped = new AbortController();
    const { signal } = stopped;
    const [marks, kept] = [new KeptMarks(runtime), new KeptSessions(runtime)];
    const [api, connection, interactions] = [this.#api, this.#connection, this.#interactions];
    const reception = new Reception({ api, inbox, connection, marks, interactions, signal });
    const known = (self: Self) => {
      this.#self = self;
    };
    const gateway = new Gateway({ api, connection, kept, marks, reception, signal, known });
    const session: Session = { reception, marks, kept, stopped, run: Promise.resolve() };
    this.#session = session;
    this.#interactions.start();
    this.#connection.open(inbox);
    session.run = gateway.run().catch((thrown: unknown) => {
      runtime.warn('Discord stopped by itself', { error: redact(String(thrown)) });
    });
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    await session.run;
    await session.reception.settle();
    await Promise.all([session.kept.flush(), session.marks.flush()]);
    this.#connection.close();
  }

  send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return this.#sending.send(place, message, signal);
  }

  measure(text: string): number {
    return countPoints(renderDiscord(text));
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return downloadFile(this.#api, ref, maxBytes, signal);
  }

  listPlaces(signal: AbortSignal): Promise<readonly Place[]> {
    return listPlaces(this.#api, signal);
  }

  edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    return this.#sending.edit(place, messageId, message, signal);
  }

  remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    return this.#sending.remove(place, messageId, signal);
  }

  showTyping(place: Place, signal: AbortSignal): Promise<void> {
    return this.#sending.showTyping(place, signal);
  }

  react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    return this.#sending.react(place, messageId, sign, signal);
  }

  async identify(signal: AbortSignal): Promise<string> {
    const user = fieldsOf(await this.#api.call('GET', '/users/@me', {}, signal));
    return `@${nameOf(user?.username) ?? 'unknown'} (${snowflakeOf(user?.id) ?? 'without an id'})`;
  }

  /** Those Discord can show, each with one field for what follows the name. */
  async offerCommands(commands: readonly { name: string; summary: string }[], signal: AbortSignal): Promise<void> {
    const offered = commands
      .filter(({ name, summary }) => /^[a-z0-9_-]{1,32}$/.test(name) && summary.trim() !== '')
      .slice(0, MOST_COMMANDS)
      .map(({ name, summary }) => ({
        ...{ name, type: CHAT_INPUT, description: summary.slice(0, MOST_DESCRIPTION).toWellFormed() },
        options: [{ type: TEXT_OPTION, name: 'text', description: 'What follows the command', required: false }],
        ...WHERE,
      }));
    const text = JSON.stringify(offered);
    if (text === this.#offered) return;
    const application = this.#self?.application ?? (await this.#askApplication(signal));
    await this.#api.call('PUT', `/applications/${application}/commands`, { body: offered }, signal);
    this.#offered = text;
  }

  async #askApplication(signal: AbortSignal): Promise<string> {
    const application = fieldsOf(await this.#api.call('GET', '/applications/@me', {}, signal));
    return snowflakeOf(application?.id) ?? '0';
  }
}
