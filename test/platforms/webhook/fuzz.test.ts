import { expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/webhook/descriptor.ts';
import { SCHEMES, WebhookSender } from '../../fakes/webhook-sender.ts';
import { RUN_ALL } from '../../support/share.ts';
import { TestInbox } from '../contract/scene.ts';
import { liveBytes, MOST_GROWTH_BYTES } from '../fuzz.ts';
import { makeRandom, oddPayloads } from '../odd-payloads.ts';
import { readSamples } from '../samples.ts';
import { makerOf, openDoor } from '../subject.ts';

const ROUNDS = RUN_ALL ? 100 : 20;
const PER_ROUND = 100;
const PROMPT = '{{text}} {{a.b.c}} {{issue.labels.0.name}} {{constructor}} {{__proto__.x}} {{chat}} {{body}}';

const senders = SCHEMES.map((scheme) => new WebhookSender(scheme));
const samples = readSamples('webhook').map(({ payload }) => payload.body as Record<string, unknown>);

/** What no sender would send: odd JSON, bytes that are none, headers that are odd; most of it rightly signed. */
function oddDeliveries() {
  const payload = oddPayloads(samples);
  const random = makeRandom(11);
  const bodyOf = (): string => {
    const json = JSON.stringify(payload());
    if (random() < 0.1) return json.slice(0, Math.floor(random() * json.length));
    if (random() < 0.05) return `\uFEFF${json}`;
    if (random() < 0.02) return '['.repeat(50_000);
    return random() < 0.02 ? '' : json;
  };
  return (sender: WebhookSender) => {
    const body = bodyOf();
    const headers = sender.sign(body, `d${random()}`.repeat(random() < 0.05 ? 200 : 1));
    for (const name of Object.keys(headers)) {
      const fate = random();
      if (fate < 0.03) delete headers[name];
      else if (fate < 0.06) headers[name] = 't=1,,v1=,=;,'.repeat(Math.floor(random() * 300));
    }
    return { body, headers };
  };
}

test(`${ROUNDS * PER_ROUND} odd deliveries stop nothing and leave no memory behind`, async () => {
  const routes = Object.fromEntries(
    senders.map(({ scheme, secret }) => [scheme, { secret, signature: scheme, prompt: PROMPT }]),
  );
  const { make, warnings } = makerOf(descriptor, { routes }, 1);
  const platform = await make();
  const door = await openDoor(() => platform);
  const inbox = new TestInbox();
  const sane = new Set<string>();
  // What is taken is looked at and let go: the inbox must not be what grows.
  inbox.submit = async ({ text, id, route }) => {
    expect([text.isWellFormed(), text.includes('\0'), id === '', route in routes]).toEqual([true, false, false, true]);
    expect(text.length).toBeLessThan(41_000);
    if (text.startsWith('sane ')) sane.add(`${route} ${text.slice(0, text.indexOf(' ', 5))}`);
    return { sessionId: 'ses', turnId: 'trn', duplicate: false };
  };
  await platform.start(inbox);
  for (const sender of senders) sender.url = `${door.url}/platforms/webhook/${sender.scheme}`;
  const odd = oddDeliveries();
  const seen = new Map<number, number>();
  const memory: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let index = 0; index < PER_ROUND; index += 1) {
      const sender = senders[index % senders.length]!;
      const { body, headers } = odd(sender);
      const { status } = await sender.post(body, headers);
      seen.set(status, (seen.get(status) ?? 0) + 1);
    }
    for (const sender of senders) {
      const body = sender.delivery(`s${round}`, { text: `sane ${round}` });
      expect((await sender.post(body, sender.sign(body, `s${round}`))).status).toBe(202);
      expect(sane).toContain(`${sender.scheme} sane ${round}`);
    }
    if (round % 5 === 4) memory.push(liveBytes());
  }
  expect([...seen.keys()].filter((status) => ![200, 202, 400, 401].includes(status))).toEqual([]);
  expect(seen.get(202)).toBeGreaterThan((ROUNDS * PER_ROUND) / 2);
  expect(seen.get(401)).toBeGreaterThan(0);
  expect(memory.at(-1)! - memory[0]!).toBeLessThan(MOST_GROWTH_BYTES);
  for (const { secret } of senders) expect(warnings.join('\n')).not.toContain(secret);
  await platform.stop();
  await door.close();
}, 180_000);
