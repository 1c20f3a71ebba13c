import { MoiraiError } from '../../errors/moirai-error.ts';
import {
  type Inbox,
  type Place,
  type Platform,
  type PlatformRuntime,
  type PlatformState,
  SendFailure,
  type SentMessage,
  type Submission,
  type WebhookAnswer,
  type WebhookRequest,
} from '../platform.ts';
import { WEBHOOK_ABILITIES } from './abilities.ts';
import type { RouteSettings } from './descriptor.ts';
import { answer, notTaken, refusal, taken } from './failures.ts';
import { type Delivery, parseDelivery } from './parse.ts';
import { readTemplate, type Template } from './render.ts';
import { isFromSender } from './verify.ts';

interface Route extends RouteSettings {
  readonly name: string;
  readonly fill: Template;
}

/** Ways in for programs: each delivery becomes one submission. */
export class Webhooks implements Platform {
  readonly name: string;
  readonly abilities = WEBHOOK_ABILITIES;
  readonly #runtime: PlatformRuntime;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #pending = new Set<Promise<unknown>>();
  #state: PlatformState = { phase: 'stopped', problem: null, lastSuccessAt: null };
  #inbox: Inbox | null = null;

  constructor(routes: Readonly<Record<string, RouteSettings>>, runtime: PlatformRuntime) {
    this.name = runtime.name;
    this.#runtime = runtime;
    this.#routes = new Map(
      Object.entries(routes).map(([name, route]) => [name, { ...route, name, fill: readTemplate(route.prompt) }]),
    );
  }

  get state(): PlatformState {
    return this.#state;
  }

  async start(inbox: Inbox): Promise<void> {
    this.#inbox = inbox;
    this.#become('connected', inbox);
  }

  async stop(): Promise<void> {
    const inbox = this.#inbox;
    if (inbox === null) return;
    this.#inbox = null;
    await Promise.allSettled(this.#pending);
    this.#become('stopped', inbox);
  }

  async receiveWebhook(request: WebhookRequest): Promise<WebhookAnswer> {
    const route = this.#routes.get(request.path);
    if (route === undefined) return refusal(404, 'not_found', 'there is no such route');
    if (request.method !== 'POST') {
      return refusal(405, 'method_not_allowed', `a route takes POST, not ${request.method}`, { allow: 'POST' });
    }
    if (!isFromSender(request, route, this.#runtime.now())) {
      return refusal(401, 'webhook_refused', 'the signature is missing, wrong or too old');
    }
    const delivery = parseDelivery(request, route);
    if (delivery.kind === 'greeting') return answer(200, delivery.answer);
    try {
      return await this.#submit(submissionOf(route, delivery));
    } catch (thrown) {
      const { code, message } = MoiraiError.wrap(thrown);
      this.#runtime.warn('a delivery was not taken', { route: route.name, error: `${message} [${code}]` });
      return notTaken(thrown);
    }
  }

  async send(_place: Place): Promise<SentMessage> {
    throw new SendFailure('nothing can be sent to a webhook: its results go where its route says', null, 'forbidden');
  }

  async identify(): Promise<string> {
    return `open at ${[...this.#routes.keys()].map((name) => `/platforms/webhook/${name}`).join(', ')}`;
  }

  async #submit(submission: Submission): Promise<WebhookAnswer> {
    const inbox = this.#inbox;
    if (inbox === null) throw new MoiraiError('draining', 'the gateway takes nothing new');
    const submitted = inbox.submit(submission);
    this.#pending.add(submitted);
    try {
      const receipt = await submitted;
      this.#state = { ...this.#state, lastSuccessAt: this.#runtime.now() };
      return taken(receipt);
    } finally {
      this.#pending.delete(submitted);
    }
  }

  #become(phase: PlatformState['phase'], inbox: Inbox): void {
    this.#state = { ...this.#state, phase };
    inbox.changed();
  }
}

function submissionOf(route: Route, { id, body }: Extract<Delivery, { kind: 'submission' }>): Submission {
  const { name, deliver, agent } = route;
  const text = route.fill(body);
  if (text.trim() === '') throw new MoiraiError('bad_input', 'nothing of the body fills the prompt of the route');
  return { route: name, id, text, deliver, agent };
}
