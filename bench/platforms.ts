import { globSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { GatewayProcess } from '../test/gateway/process.ts';
import type { World } from '../test/platforms/contract/scene.ts';
import type { SubmissionSubject, SubmissionWorld } from '../test/platforms/contract/submitting.ts';
import type { PlatformMode, PlatformSubject } from '../test/platforms/subject.ts';
import { rateOf } from './load.ts';
import { startModelProcess } from './model-process.ts';
import { Report } from './report.ts';

const USAGE = `npm run bench:platforms -- [--platforms telegram,discord] [--chats 128] [--seconds 8] [--json]`;

const WARM_MS = 2000;
const LOOK_MS = 5;
/** A reply that takes so long is lost. */
const PATIENCE_MS = 60_000;
/** So long the gateway waits for more of the same message. */
const SETTLE_MS = 600;

const { values } = parseArgs({
  options: {
    platforms: { type: 'string', default: '' },
    chats: { type: 'string', default: '128' },
    seconds: { type: 'string', default: '8' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const here = fileURLToPath(new URL('../test/platforms/', import.meta.url));

/** The platforms as their suites know them. */
async function readSubjects(): Promise<(PlatformSubject | SubmissionSubject)[]> {
  const files = globSync('*/subject.ts', { cwd: here }).sort();
  const subjects = await Promise.all(
    files.map(
      async (file) => ((await import(`${here}${file}`)) as { subject: PlatformSubject | SubmissionSubject }).subject,
    ),
  );
  const wanted = values.platforms.split(',').filter((name) => name !== '');
  return subjects.filter(({ descriptor }) => wanted.length === 0 || wanted.includes(descriptor.name));
}

/** Every person says something, waits for the reply, and says the next thing. Returns how long each reply took. */
async function talk(world: World, people: number, ms: number): Promise<number[]> {
  const elapsed: number[] = [];
  const waiting = new Map<string, (at: number) => void>();
  let before = countByChat(world);
  let done = false;
  const look = async (): Promise<void> => {
    while (!done) {
      const now = countByChat(world);
      const at = performance.now();
      for (const [chat, count] of now) if (count > (before.get(chat) ?? 0)) waiting.get(chat)?.(at);
      before = now;
      await sleep(LOOK_MS);
    }
  };
  const end = performance.now() + ms;
  const person = async (n: number): Promise<void> => {
    const { chat } = world.place('dm', n);
    while (performance.now() < end) {
      const { promise: answered, resolve, reject } = Promise.withResolvers<number>();
      const timer = setTimeout(() => reject(new Error(`no answer in ${chat} within ${PATIENCE_MS} ms`)), PATIENCE_MS);
      waiting.set(chat, resolve);
      const said = performance.now();
      await world.say({ text: 'hello', person: n });
      elapsed.push((await answered) - said);
      clearTimeout(timer);
    }
  };
  const looking = look();
  await Promise.all(Array.from({ length: people }, (_, n) => person(n))).finally(() => {
    done = true;
  });
  await looking;
  return elapsed;
}

function countByChat(world: World): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { chat = '' } of world.shown()) counts.set(chat, (counts.get(chat) ?? 0) + 1);
  return counts;
}

/** Messages in and replies out through one platform, against its server on loopback and a model that answers at once. */
async function measure(subject: PlatformSubject, mode: PlatformMode, modelUrl: string, report: Report): Promise<void> {
  const { name, label } = subject.descriptor;
  const world = await mode.open();
  const gateway = gatewayWith(name, world.settings, modelUrl);
  try {
    await gateway.start();
    world.bringTo?.(`${gateway.url}/platforms/${name}`);
    await talk(world, 1, WARM_MS);
    for (const people of [1, Number(values.chats)]) {
      report.progress(`${label}, ${mode.title}: ${people} chats`);
      const title = `${mode.title}, ${people} chats`;
      await addRate(report, name, title, (ms) => talk(world, people, ms), SETTLE_MS);
    }
  } finally {
    await gateway.close();
    await world[Symbol.asyncDispose]();
  }
}

function gatewayWith(name: string, settings: object, modelUrl: string): GatewayProcess {
  return new GatewayProcess({
    model: { base_url: modelUrl, name: 'fake-model', api_key: 'key' },
    platforms: { [name]: settings },
    ...{ access: { allow: ['*'] }, display: { streaming: false, typing: false } },
    ...{ memory: { provider: 'none' }, log: { level: 'warn' } },
  });
}

/** `waitedMs` is what the gateway waits on purpose, and no cost. */
async function addRate(
  report: Report,
  name: string,
  title: string,
  load: (ms: number) => Promise<number[]>,
  waitedMs: number,
): Promise<void> {
  const began = performance.now();
  const elapsed = await load(Number(values.seconds) * 1000);
  const { perSecond, p50, p99 } = rateOf(elapsed, performance.now() - began);
  const added = `added p50 ${(p50 - waitedMs).toFixed(0)} ms, p99 ${(p99 - waitedMs).toFixed(0)} ms`;
  report.add(name, title, `${perSecond.toFixed(1)} /s, ${added}`);
}

let deliveries = 0;

/** Every sender brings something, waits for its result, and brings the next. Returns how long each took. */
async function bring(world: SubmissionWorld, url: string, senders: number, ms: number): Promise<number[]> {
  const elapsed: number[] = [];
  const end = performance.now() + ms;
  const sender = async (): Promise<void> => {
    while (performance.now() < end) {
      const began = performance.now();
      const { body } = await world.bring('hello', `bench-${++deliveries}`);
      await (await fetch(`${url}/v1/turns/${String(body.turn_id)}?wait=30s`)).arrayBuffer();
      elapsed.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: senders }, sender));
  return elapsed;
}

/** Deliveries in and results out, which stay where they can be read: where they are sent is measured above. */
async function measureDeliveries(subject: SubmissionSubject, modelUrl: string, report: Report): Promise<void> {
  const { name, label } = subject.descriptor;
  const [mode] = subject.modes;
  if (mode === undefined) return;
  const world = mode.open();
  const { routes } = world.settings as { routes: Readonly<Record<string, object>> };
  const settings = { routes: { [world.route]: { ...routes[world.route], deliver: null } } };
  const gateway = gatewayWith(name, settings, modelUrl);
  try {
    await gateway.start();
    world.bringTo(`${gateway.url}/platforms/${name}`);
    await bring(world, gateway.url, 1, WARM_MS);
    for (const senders of [1, Number(values.chats)]) {
      report.progress(`${label}, ${mode.title}: ${senders} senders`);
      await addRate(
        report,
        name,
        `${mode.title}, ${senders} senders`,
        (ms) => bring(world, gateway.url, senders, ms),
        0,
      );
    }
  } finally {
    await gateway.close();
  }
}

if (values.help) process.stdout.write(`${USAGE}\n`);
else {
  const report = new Report();
  const model = await startModelProcess();
  for (const subject of await readSubjects()) {
    if ('kind' in subject) {
      await measureDeliveries(subject, model.url, report);
      continue;
    }
    // Where nobody has a chat of their own, everybody has a thread of their own, or talking is not what it is for.
    if (subject.keys.dm === undefined && subject.keys.thread === undefined) continue;
    for (const mode of subject.modes) await measure(subject, mode, model.url, report);
  }
  model.close();
  process.stdout.write(values.json ? `${JSON.stringify(report.figures, null, 2)}\n` : `${report.table()}\n`);
}
