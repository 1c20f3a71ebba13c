import { type Answered, type Scheme, WebhookSender } from '../../fakes/webhook-sender.ts';
import type { Answer, SubmissionForgery, SubmissionWorld } from '../contract/submitting.ts';

const STALE_MS = 301_000;

/** A sender of webhooks and the route that is open to it. */
export class WebhookWorld implements SubmissionWorld {
  readonly sender: WebhookSender;
  readonly settings: SubmissionWorld['settings'];
  readonly secrets: readonly string[];
  readonly route = 'alerts';
  #base = '';

  constructor(scheme: Scheme) {
    this.sender = new WebhookSender(scheme);
    const { secret } = this.sender;
    const route = { secret, signature: scheme, prompt: '{{text}}', deliver: 'home' };
    this.settings = { routes: { [this.route]: route } };
    this.secrets = [secret, secret.replace(/^whsec_/, '')];
  }

  bringTo(url: string): void {
    this.#base = url;
    this.sender.url = `${url}/${this.route}`;
  }

  async bring(text: string, id: string): Promise<Answer> {
    const body = this.sender.delivery(id, { text });
    return answerOf(await this.sender.post(body, this.sender.sign(body, id)));
  }

  async bringAgain(): Promise<Answer> {
    const { body, headers } = this.sender.last!;
    return answerOf(await this.sender.post(body, headers));
  }

  async forge(how: SubmissionForgery, text: string): Promise<Answer> {
    const { sender } = this;
    const body = sender.delivery('f1', { text });
    const stranger = new WebhookSender(sender.scheme, 'whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==');
    const headers = {
      unsigned: { 'content-type': 'application/json' },
      forged: stranger.sign(body, 'f1'),
      changed: sender.sign(sender.delivery('f1', { text: 'as it was signed' }), 'f1'),
      stale: sender.sign(body, 'f1', new Date(Date.now() - STALE_MS)),
    }[how];
    return answerOf(await sender.post(body, headers));
  }

  async bringElsewhere(text: string): Promise<Answer> {
    const { sender } = this;
    const body = sender.delivery('d1', { text });
    const elsewhere = new WebhookSender(sender.scheme, sender.secret);
    elsewhere.url = `${this.#base}/nowhere`;
    return answerOf(await elsewhere.post(body, sender.sign(body, 'd1')));
  }
}

function answerOf({ status, text }: Answered): Answer {
  return { status, body: JSON.parse(text) as Answer['body'] };
}
