// store-process.ts <store URL> <instance id> <inline | threads>: a process that writes to a store, told what to do by
// lines of JSON, answering each with one.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_RESET_RULES } from '../../../src/lifecycle/reset-policy.ts';
import { openStore } from '../../../src/store/open-store.ts';

/** What it can be told. */
export type Task =
  /** Commits one by one and tells how long the slowest took, in milliseconds. */
  | { readonly do: 'commit'; readonly count: number; readonly pauseMs: number }
  /** Commits as much as it can until it is told to stop, and tells how much that was. */
  | { readonly do: 'saturate'; readonly width: number }
  | { readonly do: 'stop' }
  /** Ends a session and tells what it was told. */
  | { readonly do: 'end'; readonly sessionId: string; readonly reason: 'api_close' | 'admin_close' }
  /** Writes so many events to conversations of its own, `width` at a time. */
  | { readonly do: 'chatter'; readonly events: number; readonly width: number };

const [, , url = '', instance = '', mode = ''] = process.argv;
const store = await openStore(url, '/', DEFAULT_RESET_RULES, { inline: mode === 'inline' });
const facts = {
  id: instance,
  name: null,
  version: '0',
  host: 'h',
  bootId: null,
  pidSpace: null,
  pid: 1,
  pidStarted: null,
};
await store.write('bootInstance', { facts, ttlMs: 3_600_000 });

let ids = 0;
const context = () => ({ instanceId: instance, commandId: `${instance}-${++ids}` });
const conversation = (chat: string) => {
  const key = `agent:main:telegram:dm:${instance}-${chat}`;
  return { key, kind: 'chat', platform: 'telegram', userId: null, origin: null, attached: false } as const;
};

/** One small commit: a slash command in a conversation of this process. */
async function reset(chat: string): Promise<string> {
  const slash = { command: 'new', args: '' };
  const newSessionId = `ses-${instance}-${++ids}`;
  await store.write('resetSession', {
    context: context(),
    conversation: conversation(chat),
    newSessionId,
    title: null,
    slash,
  });
  return newSessionId;
}

async function commit(count: number, pauseMs: number): Promise<object> {
  let slowest = 0;
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    await reset('0');
    slowest = Math.max(slowest, performance.now() - started);
    await sleep(pauseMs);
  }
  return { slowest };
}

let stopped = false;

async function saturate(width: number): Promise<object> {
  let commits = 0;
  const loop = async (chat: string): Promise<void> => {
    for (; !stopped; commits++) await reset(chat);
  };
  await Promise.all(Array.from({ length: width }, (_, i) => loop(`${i}`)));
  return { commits };
}

async function end(sessionId: string, reason: 'api_close' | 'admin_close'): Promise<object> {
  const args = { context: context(), sessionId, reason, cause: null, trigger: 'api', epoch: null } as const;
  const { session, already } = await store.write('endSession', args);
  return { already, endReason: session.endReason, endedAt: session.endedAt };
}

async function chatter(events: number, width: number): Promise<object> {
  let written = 0;
  const talk = async (chat: string): Promise<void> => {
    while (written < events) {
      // A reset writes four events (the first one two), a note one.
      await reset(chat);
      const sessionId = await reset(chat);
      const command = { name: 'note', command: 'status', args: '' } as const;
      await store.write('command', { context: context(), sessionId, command });
      written += 9;
    }
  };
  await Promise.all(Array.from({ length: width }, (_, i) => talk(`${i}`)));
  return { written };
}

function perform(task: Task): Promise<object> {
  switch (task.do) {
    case 'commit':
      return commit(task.count, task.pauseMs);
    case 'saturate':
      return saturate(task.width);
    case 'end':
      return end(task.sessionId, task.reason);
    case 'chatter':
      return chatter(task.events, task.width);
    case 'stop':
      stopped = true;
      return Promise.resolve({});
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const task = JSON.parse(line) as Task;
  perform(task).then(
    (answer) => task.do !== 'stop' && console.log(JSON.stringify(answer)),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.stdin.on('end', () => process.exit());
console.log('ready');
