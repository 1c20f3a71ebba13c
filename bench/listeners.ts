import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayProcess } from '../test/gateway/process.ts';
import { type Rate, rateOf } from './load.ts';
import type { Report } from './report.ts';

/** How long each load lasts. */
export interface ListenersPlan {
  readonly pacedMs: number;
  readonly burstMs: number;
}

const INSTALLED = 20;
const PACE_MS = 100;
const CLIENTS = 8;
const PATIENCE_MS = 120_000;
const REPLY_DELAY_MS = 50;

type Files = Readonly<Record<string, string>>;
type Kind = 'hook.ts' | 'hook.py' | 'hook.sh' | 'plugin';

/** Every handler notes when it was called and when the event was written. */
const KINDS: Readonly<Record<Kind, { readonly folder: 'hooks' | 'plugins'; readonly files: (name: string) => Files }>> =
  {
    'hook.ts': {
      folder: 'hooks',
      files: (name) => ({
        'HOOK.yaml': 'events: [session:end]',
        'handler.ts': `import { appendFileSync } from 'node:fs';
export function handle(_: string, event: { at: string }) {
  appendFileSync(process.env.MOIRAI_HOME + '/heard-${name}', Date.now() + ' ' + event.at + '\\n');
}`,
      }),
    },
    'hook.py': {
      folder: 'hooks',
      files: (name) => ({
        'HOOK.yaml': 'events: [session:end]',
        'handler.py': `import os, time
def handle(event_type, context):
    with open(os.environ["MOIRAI_HOME"] + "/heard-${name}", "a") as book:
        book.write(f"{int(time.time() * 1000)} {context['at']}\\n")
`,
      }),
    },
    'hook.sh': {
      folder: 'hooks',
      files: (name) => ({
        'HOOK.yaml': 'events: [session:end]',
        'handler.sh': `#!/bin/sh
read -r event
at="\${event#*\\"at\\":\\"}"
echo "$(date +%s%3N) \${at%%\\"*}" >> "$MOIRAI_HOME/heard-${name}"
`,
      }),
    },
    plugin: {
      folder: 'plugins',
      files: (name) => ({
        'plugin.yaml': `name: ${name}`,
        'index.ts': `import { appendFileSync } from 'node:fs';
export function setup(ctx: any) {
  ctx.on('on_session_finalize', (event: { at: string }) => {
    appendFileSync(ctx.home + '/heard-${name}', Date.now() + ' ' + event.at + '\\n');
  });
}`,
      }),
    },
  };

/** Hooks that do what hooks must not do. */
const TROUBLE: Readonly<Record<string, Files>> = {
  hangs: { 'handler.ts': 'export const handle = () => new Promise(() => setInterval(() => {}, 1000));' },
  throws: { 'handler.ts': "export const handle = () => { throw new Error('no'); };" },
  spins: { 'handler.ts': 'export const handle = () => { for (;;); };' },
  fails: { 'handler.sh': '#!/bin/sh\nexit 1\n' },
  babbles: { 'handler.sh': '#!/bin/sh\nhead -c 2000000 /dev/urandom\n' },
  devours: { 'handler.py': 'def handle(event_type, context):\n    held = [b"x" * 1000000 for _ in range(300)]\n' },
  forks: { 'handler.sh': '#!/bin/sh\nfor i in 1 2 3 4 5; do sleep 60 & done\nexit 0\n' },
};

/** What it costs to be heard, for each kind of listener, and what bad listeners cost the people who talk. */
export async function measureListeners(plan: ListenersPlan, report: Report): Promise<void> {
  for (const kind of Object.keys(KINDS) as Kind[]) {
    report.progress(`listeners: ${INSTALLED} x ${kind}`);
    await measureKind(kind, plan, report);
  }
  await measureTrouble(plan, report);
}

async function measureKind(kind: Kind, plan: ListenersPlan, report: Report): Promise<void> {
  const gateway = newGateway();
  try {
    const names = Array.from({ length: INSTALLED }, (_, i) => `n${i}`);
    for (const name of names) install(gateway.home, KINDS[kind].folder, name, KINDS[kind].files(name));
    await gateway.start();
    // The first event loads every handler.
    await gateway.chat({ text: 'hello' });
    await untilHeard(gateway.home, INSTALLED);
    const paced = (await talkPaced(gateway, plan.pacedMs)).length;
    await untilHeard(gateway.home, INSTALLED * (1 + paced));
    const waits = heard(gateway.home).filter(({ index }) => index > 0);
    const { p50, p99 } = rateOf(
      waits.map(({ at, written }) => at - written),
      1,
    );
    report.add(
      kind,
      `from commit to handler, ${INSTALLED} installed`,
      `p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
    );
    const burst = await talkAtOnce(gateway, plan.burstMs);
    await untilHeard(gateway.home, INSTALLED * (1 + paced + burst));
    const calls = heard(gateway.home).filter(({ index }) => index > paced);
    const seconds = (Math.max(...calls.map(({ at }) => at)) - Math.min(...calls.map(({ written }) => written))) / 1000;
    report.add(kind, `  events handled, ${CLIENTS} talking at once`, `${(calls.length / seconds).toFixed(0)} /s`);
  } finally {
    await gateway.close();
  }
}

async function measureTrouble(plan: ListenersPlan, report: Report): Promise<void> {
  const without = await repliesWith(plan, () => undefined);
  report.add('trouble', 'replies without any hook', shown(without.replies));
  const add = (what: string, { replies }: { replies: Rate }): void => {
    const delay = replies.p99 - without.replies.p99;
    const seen = `${delay.toFixed(1)} ms (${shown(replies)})`;
    report.add('trouble', `  delay at p99 beside ${what}`, seen, `< ${REPLY_DELAY_MS} ms`, delay < REPLY_DELAY_MS);
  };
  for (const name of Object.keys(TROUBLE)) {
    report.progress(`listeners: a hook that ${name}`);
    add(`a hook that ${name}`, await repliesWith(plan, (home) => installTrouble(home, name)));
  }
  report.progress('listeners: all of them at once');
  const all = await repliesWith(plan, (home) => {
    for (const name of Object.keys(TROUBLE)) installTrouble(home, name);
    install(home, 'hooks', 'good', KINDS['hook.ts'].files('good'));
  });
  add('all of them at once', all);
  const { p50, p99 } = all.good;
  report.add('trouble', '  from commit to a good hook beside them', `p50 ${p50} ms, p99 ${p99} ms`);
}

function installTrouble(home: string, name: string): void {
  install(home, 'hooks', name, { 'HOOK.yaml': 'events: ["session:*", "agent:*"]\ntimeout: 2s', ...TROUBLE[name] });
}

async function repliesWith(
  plan: ListenersPlan,
  prepare: (home: string) => void,
): Promise<{ replies: Rate; good: Rate }> {
  const gateway = newGateway();
  try {
    prepare(gateway.home);
    await gateway.start();
    await talkPaced(gateway, plan.pacedMs / 2);
    const replies = rateOf(await talkPaced(gateway, plan.pacedMs), plan.pacedMs);
    await sleep(1000);
    const waits = heard(gateway.home).filter(({ index }) => index > 0);
    return { replies, good: rateOf(waits.length === 0 ? [0] : waits.map(({ at, written }) => at - written), 1) };
  } finally {
    await gateway.close();
  }
}

/** With the offline agent: what is measured is not a model. */
function newGateway(): GatewayProcess {
  return new GatewayProcess({ model: { provider: 'offline' }, log: { level: 'error' }, memory: { review_every: 0 } });
}

function install(home: string, folder: string, name: string, files: Files): void {
  const place = join(home, folder, name);
  mkdirSync(place, { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(place, file), text);
    chmodSync(join(place, file), 0o755);
  }
}

/** One question after the other, each a session of its own, so many a second. Returns how long each took. */
async function talkPaced(gateway: GatewayProcess, ms: number): Promise<number[]> {
  const elapsed: number[] = [];
  for (const end = performance.now() + ms; performance.now() < end; ) {
    const began = performance.now();
    await gateway.chat({ text: 'hello' });
    elapsed.push(performance.now() - began);
    await sleep(Math.max(0, PACE_MS - (performance.now() - began)));
  }
  return elapsed;
}

async function talkAtOnce(gateway: GatewayProcess, ms: number): Promise<number> {
  const end = performance.now() + ms;
  let count = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      await gateway.chat({ text: 'hello' });
      count++;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return count;
}

interface Call {
  /** Of its listener, in the order they came. */
  readonly index: number;
  readonly at: number;
  readonly written: number;
}

function heard(home: string): Call[] {
  const books = readdirSync(home).filter((name) => name.startsWith('heard-'));
  return books.flatMap((name) =>
    readFileSync(join(home, name), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line, index) => {
        const [at = '', written = ''] = line.split(' ');
        return { index, at: Number(at), written: Date.parse(written) };
      }),
  );
}

async function untilHeard(home: string, calls: number): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; ; await sleep(50)) {
    const count = existsSync(home) ? heard(home).length : 0;
    if (count >= calls) return;
    if (performance.now() > end) throw new TypeError(`only ${count} of ${calls} events were handled`);
  }
}

function shown({ p50, p99 }: Rate): string {
  return `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}
