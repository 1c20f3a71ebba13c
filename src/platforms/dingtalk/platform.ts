import { MoiraiError } from '../../errors/moirai-error.ts';
import { Connection } from '../connection.ts';
import {
  type Abilities,
  type Inbox,
  type Outgoing,
  type Place,
  type Platform,
  type PlatformRuntime,
  type PlatformState,
  type ReactionSign,
  type ReplyStream,
  SendFailure,
  type SentMessage,
  type StreamOpening,
} from '../platform.ts';
import { CARD_ABILITIES, isOutsider, MESSAGE_ABILITIES, outsiderAbilities } from './abilities.ts';
import { Addresses } from './addresses.ts';
import { DingtalkApi } from './api.ts';
import { type CardOptions, Cards } from './cards.ts';
import { sendFailureOf, troubleOf } from './failures.ts';
import { downloadFile } from './files.ts';
import { Reception } from './reception.ts';
import { renderMessage } from './render.ts';
import { Sending } from './send.ts';
import { Signs } from './signs.ts';
import { MessageStream } from './stream.ts';

export interface DingtalkOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly robotCode: string;
  /** Another host for all of DingTalk's; null for DingTalk itself. */
  readonly apiRoot: string | null;
  /** Null: replies are messages, and do not grow. */
  readonly card: CardOptions | null;
  readonly runtime: PlatformRuntime;
}

/** What is under way; null between `stop` and `start`. */
interface Session {
  readonly reception: Reception;
  readonly stream: MessageStream;
  readonly stopped: AbortController;
  run: Promise<void>;
}

/** DingTalk, by a robot in stream mode. */
export class Dingtalk implements Platform {
  readonly name: string;
  readonly abilities: Abilities;
  readonly #api: DingtalkApi;
  readonly #cards: Cards | null;
  readonly #connection: Connection;
  readonly #sending: Sending;
  readonly #signs: Signs;
  #session: Session | null = null;

  constructor({ apiRoot, card, ...app }: DingtalkOptions) {
    if (!/^[\x21-\x7e]{1,256}$/.test(`${app.clientId}${app.clientSecret}`)) {
      throw new MoiraiError('bad_input', 'client_id and client_secret of DingTalk are not as DingTalk gives them');
    }
    this.#api = new DingtalkApi({ ...app, addresses: new Addresses(apiRoot) });
    const { redact } = this.#api;
    this.name = app.runtime.name;
    this.abilities = card === null ? MESSAGE_ABILITIES : CARD_ABILITIES;
    this.#cards = card === null ? null : new Cards(this.#api, card);
    const { runtime } = app;
    this.#connection = new Connection({ label: 'DingTalk', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#sending = new Sending(this.#api, this.#cards);
    this.#signs = new Signs(this.#api);
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  abilitiesAt(place: Place): Abilities {
    return isOutsider(place) ? outsiderAbilities(this.abilities) : this.abilities;
  }

  measure(text: string): number {
    return Buffer.byteLength(renderMessage(text));
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const connection = this.#connection;
    const reception = new Reception(this.#api, inbox, this.#cards);
    const stream = new MessageStream({ api: this.#api, connection, reception });
    const session: Session = { reception, stream, stopped: new AbortController(), run: Promise.resolve() };
    this.#session = session;
    connection.open(inbox);
    session.run = stream.run(session.stopped.signal).catch((thrown: unknown) => {
      this.#api.app.runtime.warn('DingTalk stopped by itself', { error: this.#api.redact(String(thrown)) });
    });
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    await session.run;
    // The connections stay until what the inbox has taken is acknowledged.
    await session.reception.settle();
    await session.stream.close();
    this.#connection.close();
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return { messageId: await this.#sending.send(place, message, signal) };
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return downloadFile(this.#api, ref, Math.min(maxBytes, this.abilities.files.maxBytes), signal);
  }

  async startStream(place: Place, { key }: StreamOpening, signal: AbortSignal): Promise<ReplyStream> {
    const cards = this.#theCards();
    const id = cards.idOf(place, key);
    await this.#sending.call(place, () => cards.begin(place, id, [], signal));
    return this.resumeStream(place, id);
  }

  resumeStream(place: Place, handle: string): ReplyStream {
    const cards = this.#theCards();
    const write = (text: string, isLast: boolean, signal: AbortSignal): Promise<void> =>
      this.#sending.call(place, () => cards.write(handle, text, isLast, signal));
    return {
      handle,
      append: (text, signal) => write(text, false, signal),
      finish: async ({ text }, signal) => {
        if (this.measure(text) > this.abilities.maxText) {
          throw new SendFailure('the reply is longer than a card holds', null, 'too_long');
        }
        await write(text, true, signal);
        return { messageId: handle };
      },
    };
  }

  react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    return this.#signs.put(place, messageId, sign, signal);
  }

  async identify(signal: AbortSignal): Promise<string> {
    const { redact, app } = this.#api;
    try {
      await this.#api.checkCredentials(signal);
      return `robot ${app.robotCode}`;
    } catch (thrown) {
      throw sendFailureOf(thrown, redact);
    }
  }

  /** Also what began with a template may have to be ended without one: then there is nothing to end it with. */
  #theCards(): Cards {
    if (this.#cards === null) throw new SendFailure('there is no card template', null);
    return this.#cards;
  }
}
