import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { openStore } from '../../src/store/open-store.ts';
import { finish, House, until } from '../cli/house.ts';
import type { HttpFake, RecordedMessage } from '../fakes/http-fake.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import type { Evidence, Path } from './matrix.ts';
import { GatewayProcess } from './process.ts';

/** The ways of sessions that whole processes decide. */
export const PROCESS_PATHS: readonly Path[] = [
  {
    name: 'terminal closed in order',
    ends: { reason: 'cli_close', cause: null, trigger: 'cli' },
    tells: /did: hello/,
    go: () =>
      inTerminal(async (house) => {
        const { output } = await house.feed('hello', 'chat');
        return read(house.home, { said: ['hello'], told: [output] });
      }),
  },
  {
    name: 'terminal killed in a turn',
    ends: { reason: 'reaped', cause: null, trigger: 'reaper' },
    go: () =>
      inTerminal(async (house, model) => {
        const chat = house.start(['chat', '-q', 'wait']);
        await until('the model is asked', () => questions(model).length > 0);
        chat.kill('SIGKILL');
        await finish(chat);
        await house.moirai('sessions', 'stats');
        return read(house.home, { said: [], told: null });
      }),
  },
  {
    name: 'SIGTERM in a turn: it goes on after the start',
    ends: null,
    tells: /did: wait/,
    go: () => cutInATurn('SIGTERM'),
  },
  {
    name: 'SIGKILL in a turn: it goes on after the start',
    ends: null,
    tells: /did: wait/,
    go: () => cutInATurn('SIGKILL'),
  },
];

/** A turn that hangs, a message behind it, the signal, and the next start. */
async function cutInATurn(signal: NodeJS.Signals): Promise<Evidence> {
  const model = await startModel(1);
  const gateway = new GatewayProcess({
    gateway: { drain_timeout: '300ms' },
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
  });
  const ask = (text: string) => gateway.chat({ text, conversation: 'c', idempotency_key: text });
  try {
    await gateway.start();
    const lost = [ask('wait'), ask('behind it')].map((answer) => answer.catch(() => null));
    await until('the model is asked', () => questions(model).length === 1);
    await until('the other waits', async () => (await gateway.waiting()) === 1);
    await gateway.end(signal);
    await Promise.all(lost);
    await gateway.start();
    const [first, second] = await Promise.all([ask('wait'), ask('behind it')]);
    await gateway.end('SIGTERM');
    return await read(gateway.home, {
      said: ['wait', 'behind it'],
      told: [first.reply],
      waited: { text: 'behind it', reply: second.reply },
    });
  } finally {
    await gateway.close();
    await model.close();
  }
}

async function inTerminal(go: (house: House, model: HttpFake) => Promise<Evidence>): Promise<Evidence> {
  const model = await startModel(Number.POSITIVE_INFINITY);
  const house = new House();
  const config = { model: { base_url: model.url, name: 'fake-model', api_key: 'key' } };
  writeFileSync(join(house.home, 'config.yaml'), JSON.stringify(config));
  try {
    return await go(house, model);
  } finally {
    house.remove();
    await model.close();
  }
}

/** A model that does what it is told; the first few times it is told to wait, it waits too long. */
function startModel(hangs: number): Promise<HttpFake> {
  let left = hangs;
  return startOpenAiServer(({ body }) => {
    const said = lastWords(body.messages);
    if (said === 'wait' && left-- > 0) return { text: 'never', beforeMs: 60_000 };
    return { text: `did: ${said}` };
  });
}

/** The last line of what the person wrote: a note, in brackets, may go before it or behind it. */
function lastWords(messages: readonly RecordedMessage[]): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  const text = Array.isArray(content) ? content.map((part) => String(part.text ?? '')).join('\n') : String(content);
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('['));
  return lines.at(-1) ?? '';
}

/** What the store says afterwards about the one conversation there was. */
async function read(home: string, facts: Partial<Evidence>): Promise<Evidence> {
  const store = await openStore('sqlite:state.db', home, DEFAULT_RESET_RULES, { inline: true });
  try {
    const { events } = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
    const id = events.find(({ event }) => event.type === 'session:start')?.event.session_id ?? '';
    const session: Session = await store.read('findSession', { idOrPrefix: id });
    return {
      session,
      events: events.map(({ seq, event }) => ({ ...event, seq })),
      messages: await store.read('listMessages', { sessionId: id, after: 0, limit: 500 }),
      closed: null,
      said: [],
      waited: null,
      told: null,
      ...facts,
    };
  } finally {
    await store.close();
  }
}
