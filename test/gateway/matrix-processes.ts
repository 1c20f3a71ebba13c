import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { openStore } from '../../src/store/open-store.ts';
import { CliFixture, finish, until } from '../cli/cli-fixture.ts';
import type { HttpFake } from '../fakes/http-fake.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import type { Evidence, Path } from './matrix.ts';
import { GatewayProcess } from './process.ts';
import { lastUserLine } from './user-lines.ts';
import type { Witnesses } from './witnesses.ts';

/** The ways of sessions that whole processes decide. */
export function processPaths(witnesses: () => Witnesses): readonly Path[] {
  return [
    {
      name: 'one question over HTTP',
      ends: { reason: 'api_close', cause: null, trigger: 'api' },
      tells: /did: hello/,
      go: () =>
        inGateway(witnesses(), 0, async (gateway) => {
          const { reply } = await gateway.chat({ text: 'hello' });
          return { said: ['hello'], told: [reply] };
        }),
    },
    {
      name: 'ended, and SIGKILL right after the commit',
      ends: { reason: 'api_close', cause: null, trigger: 'api' },
      mayRepeat: true,
      go: () =>
        inGateway(witnesses(), 0, async (gateway) => {
          const { session_id } = await gateway.chat({ text: 'hello', conversation: 'c' });
          await gateway.post(`/v1/sessions/${session_id}/end`, {});
          await gateway.end('SIGKILL');
          await gateway.start();
          return { said: ['hello'] };
        }),
    },
    {
      name: 'a job whose gateway is killed in its run',
      ends: { reason: 'reaped', cause: null, trigger: 'reaper' },
      go: () =>
        inGateway(witnesses(), 1, async (gateway, model) => {
          await gateway.post('/v1/cron', { schedule: 'in 1s', prompt: 'wait' });
          await until('the model is asked', () => questions(model).length === 1, 15_000);
          await gateway.end('SIGKILL');
          await gateway.start();
          await until('it ended', async () => (await gateway.events('session:end')).length === 1, 15_000);
          return { said: [] };
        }),
    },
    {
      name: 'terminal closed in order',
      ends: { reason: 'cli_close', cause: null, trigger: 'cli' },
      tells: /did: hello/,
      go: () =>
        inTerminal(witnesses(), async (cli) => {
          const { output } = await cli.feed('hello', 'chat');
          return { said: ['hello'], told: [output] };
        }),
    },
    {
      name: 'terminal killed in a turn',
      ends: { reason: 'reaped', cause: null, trigger: 'reaper' },
      go: () =>
        inTerminal(witnesses(), async (cli, model) => {
          const chat = cli.start(['chat', '-q', 'wait']);
          await until('the model is asked', () => questions(model).length > 0);
          chat.kill('SIGKILL');
          await finish(chat);
          await cli.moirai('sessions', 'stats');
          return { said: [] };
        }),
    },
    {
      name: 'SIGTERM in a turn: it goes on after the start',
      ends: null,
      finalized: true,
      tells: /did: wait/,
      go: () => inGateway(witnesses(), 1, (gateway, model) => cutInATurn(gateway, model, 'SIGTERM')),
    },
    {
      name: 'SIGKILL in a turn: it goes on after the start',
      ends: null,
      tells: /did: wait/,
      go: () => inGateway(witnesses(), 1, (gateway, model) => cutInATurn(gateway, model, 'SIGKILL')),
    },
  ];
}

/** A turn that hangs, a message behind it, the signal, and the next start. */
async function cutInATurn(
  gateway: GatewayProcess,
  model: HttpFake,
  signal: NodeJS.Signals,
): Promise<Partial<Evidence>> {
  const ask = (text: string) => gateway.chat({ text, conversation: 'c', idempotency_key: text });
  const lost = [ask('wait'), ask('behind it')].map((answer) => answer.catch(() => null));
  await until('the model is asked', () => questions(model).length === 1);
  await until('the other waits', async () => (await gateway.waiting()) === 1);
  await gateway.end(signal);
  await Promise.all(lost);
  await gateway.start();
  const [first, second] = await Promise.all([ask('wait'), ask('behind it')]);
  const waited = { text: 'behind it', reply: second.reply };
  return { said: ['wait', 'behind it'], told: [first.reply], waited };
}

/** A gateway with everybody listening, in which something happens to the one session there is. */
async function inGateway(
  witnesses: Witnesses,
  hangs: number,
  happens: (gateway: GatewayProcess, model: HttpFake) => Promise<Partial<Evidence>>,
): Promise<Evidence> {
  const model = await startModel(hangs);
  const gateway = new GatewayProcess({ ...settingsFor(model, witnesses), gateway: { drain_timeout: '300ms' } });
  witnesses.moveInto(gateway.home);
  try {
    await gateway.start();
    return await read(gateway, witnesses, await happens(gateway, model));
  } finally {
    await gateway.close();
    await model.close();
  }
}

/** A terminal without a gateway, in a home where one was before and comes again. */
async function inTerminal(
  witnesses: Witnesses,
  happens: (cli: CliFixture, model: HttpFake) => Promise<Partial<Evidence>>,
): Promise<Evidence> {
  const model = await startModel(Number.POSITIVE_INFINITY);
  const cli = new CliFixture();
  const gateway = new GatewayProcess(settingsFor(model, witnesses), cli.home);
  witnesses.moveInto(cli.home);
  try {
    await gateway.start();
    await gateway.end('SIGTERM');
    const facts = await happens(cli, model);
    await gateway.start();
    return await read(gateway, witnesses, facts);
  } finally {
    await gateway.end('SIGKILL');
    cli.remove();
    await model.close();
  }
}

function settingsFor(model: HttpFake, witnesses: Witnesses): Record<string, unknown> {
  return { model: { base_url: model.url, name: 'fake-model', api_key: 'key' }, ...witnesses.settings };
}

/** A model that does what it is told; the first few times it is told to wait, it waits too long. */
function startModel(hangs: number): Promise<HttpFake> {
  let left = hangs;
  return startOpenAiServer(({ body }) => {
    const said = lastUserLine(body.messages);
    if (said === 'wait' && left-- > 0) return { text: 'never', beforeMs: 60_000 };
    return { text: `did: ${said}` };
  });
}

/** What the store and the witnesses say afterwards about the one conversation there was. */
async function read(gateway: GatewayProcess, witnesses: Witnesses, facts: Partial<Evidence>): Promise<Evidence> {
  const { home } = gateway;
  const store = await openStore('sqlite:state.db', home, DEFAULT_RESET_RULES, { inline: true });
  try {
    const { events } = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId: null });
    const id = events.find(({ event }) => event.type === 'session:start')?.event.session_id ?? '';
    const session: Session = await store.read('findSession', { idOrPrefix: id });
    if (session.state === 'ended') await witnesses.untilHeard(home, id);
    return {
      session,
      events: events.map(({ seq, event }) => ({ ...event, seq })),
      messages: await store.read('listMessages', { sessionId: id, after: 0, limit: 500 }),
      closed: null,
      said: [],
      waited: null,
      told: null,
      heard: witnesses.heard(home),
      ...facts,
    };
  } finally {
    await store.close();
  }
}
