import type { Place } from '../../../src/platforms/platform.ts';
import { WhatsApp, type WhatsAppOptions } from '../../../src/platforms/whatsapp/platform.ts';
import { type CloudMessage, WhatsAppCloud } from '../../fakes/whatsapp-cloud.ts';
import { refusal } from '../../fakes/whatsapp-rules.ts';
import {
  type Forgery,
  type Happening,
  type Shown,
  testRuntime,
  type UserMessage,
  until,
  type Where,
  type World,
} from '../contract/scene.ts';

const FIRST_PERSON = 15_550_001_000;
const DAY_S = 24 * 3600;

/** The person with this number among those of the world. */
export function personId(person = 0): string {
  return String(FIRST_PERSON + person);
}

/** A platform at a fake, and its runtime. */
export function whatsappAt(fake: WhatsAppCloud, options: Partial<WhatsAppOptions> = {}, speed = 100) {
  const runtime = testRuntime('whatsapp', speed);
  const { phoneNumberId, token, appSecret, verifyToken, url: apiRoot } = fake;
  const given = { phoneNumberId, token, appSecret, verifyToken, apiRoot, apiVersion: 'v25.0', template: null };
  return { platform: new WhatsApp({ ...given, runtime, ...options }), runtime };
}

/** WhatsApp and the people there; every one of them has a chat with the number and nothing else. */
export class WhatsAppWorld implements World {
  readonly fake: WhatsAppCloud;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  #last: Readonly<Record<string, unknown>> = {};

  private constructor(fake: WhatsAppCloud) {
    this.fake = fake;
    const { phoneNumberId, token, appSecret, verifyToken, url } = fake;
    this.settings = {
      phone_number_id: phoneNumberId,
      token,
      app_secret: appSecret,
      verify_token: verifyToken,
      api_root: url,
    };
    this.secrets = [token, appSecret, verifyToken];
  }

  static async open(): Promise<WhatsAppWorld> {
    return new WhatsAppWorld(await WhatsAppCloud.start());
  }

  place(_where: Where, person = 0): Place {
    return { type: 'dm', scope: this.fake.phoneNumberId, chat: personId(person) };
  }

  async say({ text, person = 0, file, repliesTo }: UserMessage): Promise<string> {
    const answered = repliesTo === undefined ? {} : { context: { from: this.#authorOf(repliesTo), id: repliesTo } };
    const said = file === undefined ? { type: 'text', text: { body: text } } : this.#document(text, file);
    return this.#hear({ ...answered, ...said }, person);
  }

  push(payload: Record<string, unknown>): Promise<void> {
    return this.fake.webhooks.once(payload);
  }

  shown(): readonly Shown[] {
    return [...this.fake.messages.values()].map(shownOf);
  }

  unacknowledged(): number {
    return this.fake.webhooks.untakenMessages;
  }

  /** What was sent from the telephone that has the same number. */
  async echo(text: string): Promise<void> {
    const echo = {
      from: this.fake.displayNumber,
      to: personId(),
      id: 'wamid.ECHO',
      type: 'text',
      text: { body: text },
    };
    const message_echoes = [{ ...echo, timestamp: String(Math.floor(Date.now() / 1000)) }];
    await this.fake.webhooks.bring(this.fake.envelope({ message_echoes }, 'smb_message_echoes'), 'message', personId());
  }

  async bringAgain(): Promise<void> {
    await this.fake.webhooks.bring(this.#last, 'message', personId());
  }

  /** Nothing is shown to who presses but a message that answers the press. */
  async press(messageId: string, data: string, person = 0): Promise<string | null> {
    const { type, title } = optionOf(this.fake.messages.get(messageId), data);
    const context = { from: this.fake.displayNumber, id: messageId };
    const press = this.#hear(
      { context, type: 'interactive', interactive: { type, [type]: { id: data, title } } },
      person,
    );
    const answer = (): Shown | undefined => this.shown().find(({ repliesTo }) => repliesTo === press);
    await until(() => answer() !== undefined, 'the answer to the press');
    return answer()?.text ?? null;
  }

  typed(): number {
    return this.fake.typing.length;
  }

  reactions(messageId: string): readonly string[] {
    const emoji = this.fake.reactions.get(messageId);
    return emoji === undefined ? [] : [emoji];
  }

  /** The usage headers count minutes. */
  limitRate(ms: number): void {
    const limit = refusal(130429, 'Rate limit hit', 429);
    this.fake.failNext('messages', { ...limit, minutes: Math.ceil(ms / 60_000) });
  }

  stumble(): void {
    this.fake.failNext('messages', refusal(131016, 'Service unavailable', 503));
  }

  cut(): void {
    this.fake.cut();
  }

  revoke(): void {
    this.fake.revoked = true;
  }

  loseAnswer(): void {
    this.fake.failNext('messages', 'lost');
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  bringTo(url: string | null): void {
    this.fake.webhooks.bringTo(url);
  }

  closeWindow(): void {
    this.fake.closeWindow();
  }

  async forge(how: Forgery): Promise<number> {
    const age = how === 'stale' ? 8 * DAY_S : 0;
    const timestamp = String(Math.floor(Date.now() / 1000) - age);
    const message = { from: personId(), id: 'wamid.FORGED', timestamp, type: 'text', text: { body: 'forged' } };
    const payload = this.fake.envelope({ contacts: [], messages: [message] });
    const { webhooks } = this.fake;
    const body = JSON.stringify(payload);
    const signature = how === 'stale' ? webhooks.sign(body) : webhooks.sign(body, 'not the secret');
    return webhooks.post(payload, how === 'unsigned' ? null : signature);
  }

  async happen(what: Happening, messageId: string): Promise<void> {
    if (what === 'reaction') this.#hear({ type: 'reaction', reaction: { message_id: messageId, emoji: '👍' } }, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake.close();
  }

  #hear(fields: Readonly<Record<string, unknown>>, person: number): string {
    const { id, payload } = this.fake.hear({ from: personId(person), fields });
    this.#last = payload;
    return id;
  }

  #document(caption: string, { bytes, name, mime }: NonNullable<UserMessage['file']>) {
    return { type: 'document', document: { ...this.fake.keepFile(bytes, mime), filename: name, caption } };
  }

  #authorOf(messageId: string): string {
    return this.fake.messages.has(messageId) ? this.fake.displayNumber : personId();
  }
}

interface Interactive {
  readonly action: {
    readonly buttons?: readonly { readonly reply: { readonly id: string; readonly title: string } }[];
    readonly sections?: readonly { readonly rows: readonly { readonly id: string; readonly title: string }[] }[];
  };
}

function optionsOf({ payload }: CloudMessage): readonly { readonly id: string; readonly title: string }[] {
  const { action } = (payload.interactive ?? { action: {} }) as Interactive;
  return [...(action.buttons ?? []).map(({ reply }) => reply), ...(action.sections ?? []).flatMap(({ rows }) => rows)];
}

function optionOf(message: CloudMessage | undefined, data: string) {
  const option = message === undefined ? undefined : optionsOf(message).find(({ id }) => id === data);
  if (message === undefined || option === undefined) throw new RangeError(`there is no button ${data}`);
  const { type } = message.payload.interactive as { type: string };
  return { type: type === 'list' ? 'list_reply' : 'button_reply', title: option.title } as const;
}

function shownOf(message: CloudMessage): Shown {
  const { context } = message.payload as { context?: { message_id: string } };
  return {
    messageId: message.id,
    chat: message.to,
    text: message.text,
    thread: null,
    repliesTo: context?.message_id ?? null,
    files: message.files,
    buttons: optionsOf(message).map(({ title }) => title),
  };
}
