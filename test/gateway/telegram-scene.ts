import { until } from '../cli/cli-fixture.ts';
import { BotApiFake } from '../fakes/bot-api.ts';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from './process.ts';
import { userLines } from './user-lines.ts';

const ECHO: ModelScript = ({ body }) => ({ text: `did: ${userLines(body.messages).join(' ')}` });

/** A Bot API, a model, and gateways between them. */
export class TelegramScene {
  readonly bot: BotApiFake;
  readonly model: HttpFake;
  readonly #gateways: GatewayProcess[] = [];

  private constructor(bot: BotApiFake, model: HttpFake) {
    this.bot = bot;
    this.model = model;
  }

  /** The model says what it was told, unless another script is given. */
  static async open(script: ModelScript = ECHO): Promise<TelegramScene> {
    return new TelegramScene(await BotApiFake.start(), await startOpenAiServer(script));
  }

  async close(): Promise<void> {
    for (const gateway of this.#gateways) await gateway.close();
    await this.bot.close();
    await this.model.close();
  }

  /** People 42 and 43 and the group -100 are known to it. */
  gateway(settings: Record<string, unknown> = {}, telegram: Record<string, unknown> = {}): GatewayProcess {
    const { bot, model } = this;
    const gateway = new GatewayProcess({
      model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
      platforms: { telegram: { token: bot.token, api_root: bot.url, allow: ['42', '43', '-100'], ...telegram } },
      memory: { provider: 'none' },
      display: { streaming: false },
      ...settings,
    });
    this.#gateways.push(gateway);
    return gateway;
  }

  /** What people in a chat see. */
  textsIn(chat: number): string[] {
    return [...this.bot.messages.values()].filter((message) => message.chat === chat).map(({ text }) => text);
  }

  async heardIn(chat: number, count: number, ms = 10_000): Promise<string[]> {
    await until(`${count} messages in ${chat}`, () => this.textsIn(chat).length >= count, ms);
    return this.textsIn(chat);
  }
}
