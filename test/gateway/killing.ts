import { setTimeout as sleep } from 'node:timers/promises';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from './process.ts';

export interface KillingReport {
  readonly kills: number;
  readonly messages: number;
  readonly resent: number;
  /** What broke a promise, in words. */
  readonly violations: readonly string[];
}

const CONVERSATIONS = 10;
const LONGEST_LIFE_MS = 5000;

/**
 * Kills a gateway again and again while people talk to it, starts it again, and lets the people re-send whatever they got
 * no answer to, under the same id. Then every message has one turn and one reply, in order.
 */
export async function killAgainAndAgain(
  kills: number,
  random: () => number,
  tell: (line: string) => void,
): Promise<KillingReport> {
  const model = await startOpenAiServer(({ body }) => ({
    text: `re: ${lastUserText(body.messages)}`,
    beforeMs: Math.floor(random() * 120),
    betweenMs: 5,
  }));
  const gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
    sessions: { stuck_after: 1000 },
  });
  const crowd = new Crowd(gateway);
  try {
    await gateway.start();
    const talking = crowd.talk();
    for (let kill = 1; kill <= kills; kill++) {
      await crowd.hear(Math.floor(random() * 15));
      await sleep(random() * 150);
      await gateway.end('SIGKILL');
      await gateway.start();
      if (kill % 10 === 0) tell(`${kill} kills, ${crowd.answered} answered, ${crowd.resent} sent again`);
    }
    crowd.enough = true;
    await talking;
    const violations = [...crowd.violations, ...(await findViolations(gateway, crowd))];
    return { kills, messages: crowd.answered, resent: crowd.resent, violations };
  } finally {
    await gateway.close();
    await model.close();
  }
}

function lastUserText(messages: readonly { role: string; content: unknown }[]): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return /message \d+ of \d+/.exec(text)?.[0] ?? text;
}

/** People who say one thing after the other, each until it is answered. */
class Crowd {
  readonly violations: string[] = [];
  readonly #gateway: GatewayProcess;
  enough = false;
  answered = 0;
  resent = 0;

  constructor(gateway: GatewayProcess) {
    this.#gateway = gateway;
  }

  async talk(): Promise<void> {
    await Promise.all(Array.from({ length: CONVERSATIONS }, (_, i) => this.#person(i + 1)));
  }

  /** Resolves when so many more were answered; a slow machine is not waited for too long. */
  async hear(more: number): Promise<void> {
    const goal = this.answered + more;
    const deadline = performance.now() + LONGEST_LIFE_MS;
    while (this.answered < goal && performance.now() < deadline) await sleep(5);
  }

  async #person(number: number): Promise<void> {
    for (let n = 1; !this.enough; n++) {
      const text = `message ${n} of ${number}`;
      const reply = await this.#retryUntilAnswered({
        text,
        conversation: `c${number}`,
        idempotency_key: `${number}-${n}`,
      });
      if (reply !== `re: ${text}`) this.violations.push(`${text} was answered with: ${reply}`);
      this.answered++;
    }
  }

  async #retryUntilAnswered(body: Readonly<Record<string, unknown>>): Promise<string> {
    for (;;) {
      try {
        const answer = await this.#gateway.chat(body);
        if (answer.status === 200) return answer.reply;
        if (answer.status !== 503) return `status ${answer.status}: ${JSON.stringify(answer)}`;
      } catch {
        // The connection broke: the gateway was killed.
      }
      this.resent++;
      await sleep(50);
    }
  }
}

/** Reads the log: one turn for each message, in order, each with its end. */
async function findViolations(gateway: GatewayProcess, crowd: Crowd): Promise<string[]> {
  const violations: string[] = [];
  const begun = new Map<string, string>();
  const order = new Map<string, number>();
  const over = new Set<string>();
  for (const event of await gateway.events('agent:start,agent:end')) {
    const turnId = String(event.turn_id);
    if (event.type === 'agent:end') {
      if (event.outcome === 'done') over.add(turnId);
      continue;
    }
    const message = String(event.message);
    const known = begun.get(message);
    if (known !== undefined && known !== turnId) violations.push(`${message} has two turns: ${known} and ${turnId}`);
    begun.set(message, turnId);
    const [, n = '0', person = ''] = /message (\d+) of (\d+)/.exec(message) ?? [];
    if (Number(n) < (order.get(person) ?? 0)) violations.push(`${message} came after a later one`);
    order.set(person, Number(n));
  }
  for (const [message, turnId] of begun) if (!over.has(turnId)) violations.push(`${message} was never done`);
  if (begun.size !== crowd.answered) violations.push(`${begun.size} turns for ${crowd.answered} messages`);
  return violations;
}
