import { until } from '../../cli/cli-fixture.ts';
import { BotApiFake } from '../../fakes/bot-api.ts';
import type { HttpFake } from '../../fakes/http-fake.ts';
import type { ModelScript } from '../../fakes/model-script.ts';
import { startOpenAiServer } from '../../fakes/openai-server.ts';
import { WebhookSender } from '../../fakes/webhook-sender.ts';
import { GatewayProcess } from '../../gateway/process.ts';
import { lastUserLine } from '../../gateway/user-lines.ts';

export const ECHO: ModelScript = ({ body }) => ({ text: `did: ${lastUserLine(body.messages)}` });

const TARGET = 42;

export interface ShownSession {
  readonly id: string;
  readonly key: string;
  readonly kind: string;
  readonly state: string;
  readonly end_reason: string | null;
  readonly message_count: number;
}

/** Senders of webhooks, gateways that take them, and a person on Telegram who gets the results. */
export class WebhookScene implements AsyncDisposable {
  readonly sender = new WebhookSender('standard');
  readonly bot: BotApiFake;
  readonly model: HttpFake;
  readonly gateway: GatewayProcess;
  readonly #gateways: GatewayProcess[] = [];

  private constructor(bot: BotApiFake, model: HttpFake, settings: object, routes: object) {
    this.bot = bot;
    this.model = model;
    this.gateway = this.another(settings, routes);
  }

  /** The route `alerts` is of the sender, and its results go to the person; others are as they are given. */
  static async open(settings: object = {}, routes: object = {}, script = ECHO): Promise<WebhookScene> {
    const scene = new WebhookScene(await BotApiFake.start(), await startOpenAiServer(script), settings, routes);
    await scene.start();
    // The gateway knows places where somebody has talked.
    scene.bot.say({ text: 'hello', chat: TARGET });
    await scene.until('the person is answered', () => scene.shown().length === 1);
    return scene;
  }

  another(settings: object = {}, routes: object = {}): GatewayProcess {
    const { bot, model, sender } = this;
    const alerts = { secret: sender.secret, prompt: '{{text}}', deliver: `telegram:${TARGET}` };
    const gateway = new GatewayProcess({
      model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
      platforms: {
        telegram: { token: bot.token, api_root: bot.url, allow: [TARGET] },
        webhook: { routes: { alerts, ...routes } },
      },
      ...{ memory: { provider: 'none' }, display: { streaming: false }, ...settings },
    });
    this.#gateways.push(gateway);
    return gateway;
  }

  async start(): Promise<void> {
    await this.gateway.start();
    this.sender.url = `${this.gateway.url}/platforms/webhook/alerts`;
  }

  async kill(): Promise<void> {
    this.sender.url = null;
    await this.gateway.end('SIGKILL');
  }

  /** What the person sees, the answer to their own words first. */
  shown(): string[] {
    return [...this.bot.messages.values()].filter(({ chat }) => chat === TARGET).map(({ text }) => text);
  }

  /** A sender brings something that says `text`; returns what it was answered. */
  async bring(text: string, id: string, sender = this.sender): Promise<{ status: number; body: WebhookBody }> {
    const body = sender.delivery(id, { text });
    const answered = await sender.post(body, sender.sign(body, id));
    return { status: answered.status, body: JSON.parse(answered.text) as WebhookBody };
  }

  /** The sessions of what was brought, newest first. */
  async sessions(gateway = this.gateway): Promise<ShownSession[]> {
    const all: ShownSession[] = [];
    for (let cursor = ''; ; ) {
      const page = await gateway.get<{ data: ShownSession[]; next: string | null }>(
        `/v1/sessions?kind=webhook&limit=100${cursor}`,
      );
      all.push(...page.data);
      if (page.next === null) return all;
      cursor = `&cursor=${encodeURIComponent(page.next)}`;
    }
  }

  async until(what: string, condition: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
    await until(what, condition, ms).catch((error: unknown) => {
      throw new Error(`${String(error)}\nshown: ${JSON.stringify(this.shown())}\nlog: ${this.gateway.log}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const gateway of this.#gateways) await gateway.close();
    await this.bot.close();
    await this.model.close();
  }
}

export interface WebhookBody {
  readonly turn_id?: string | null;
  readonly session_id?: string | null;
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string };
}
