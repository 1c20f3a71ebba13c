import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ScriptedReply } from '../fakes/model-script.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from './process.ts';

let trouble: ScriptedReply | null = null;
let model: HttpFake;
let gateway: GatewayProcess;

beforeAll(async () => {
  model = await startOpenAiServer(() => trouble ?? { text: 'all is well' });
  gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'the-secret-key' },
    agent: { turn_timeout: '1500ms', approval_timeout: '200ms' },
  });
  await gateway.start();
});

afterAll(async () => {
  await gateway.close();
  await model.close();
});

/** Trouble of each kind, the code it is told by, and the status it has over HTTP. */
const TROUBLES: readonly (readonly [string, ScriptedReply, string, number])[] = [
  ['refuses the key', { status: 401, error: { message: 'no such key' } }, 'model_unauthorized', 502],
  ['does not know the model', { status: 404, error: { message: 'no such model' } }, 'model_unknown', 502],
  ['refuses the request', { status: 400, error: { message: 'I do not like it' } }, 'model_refused', 502],
  ['breaks off', { text: 'one two three four', cutAfter: 2 }, 'model_cut', 502],
  ['says nothing more', { text: 'one two three four', hangAfter: 2 }, 'timeout', 504],
];

describe('a model that', () => {
  test.each(TROUBLES)(
    '%s is told of, and the session stays usable',
    { timeout: 60_000 },
    async (what, reply, code, status) => {
      trouble = reply;
      const conversation = what.replaceAll(' ', '-');
      const answer = await gateway.chat({ text: 'hello', conversation });
      trouble = null;
      expect(answer.status).toBe(status);
      expect(JSON.stringify(answer)).toContain(code);
      expect(JSON.stringify(answer)).not.toContain('the-secret-key');
      const after = await gateway.chat({ text: 'again', conversation });
      expect(after).toMatchObject({ status: 200, reply: 'all is well' });
      const { data } = await gateway.get<{ data: { state: string; message_count: number }[] }>(
        `/v1/sessions?key=agent:main:api:dm:${conversation}`,
      );
      expect(data).toMatchObject([{ state: 'open' }]);
      expect(gateway.log).not.toContain('the-secret-key');
    },
  );
});

describe('a tool that', () => {
  test('fails is told to the model, which goes on', async () => {
    let asked = 0;
    const script = (): ScriptedReply => {
      asked++;
      return asked === 1
        ? { toolCalls: [{ name: 'read_file', args: { path: '../../etc/passwd' } }] }
        : { text: 'I may not' };
    };
    await model.close();
    model = await startOpenAiServer(script, { port: Number(new URL(model.url).port) });
    expect(await gateway.chat({ text: 'read it', conversation: 'tool' })).toMatchObject({
      status: 200,
      reply: 'I may not',
    });
    const tool = model.requests.at(-1)?.body.messages.find(({ role }) => role === 'tool');
    expect(JSON.stringify(tool)).toContain('workspace');
  });

  test('needs leave is refused when nobody gives it', async () => {
    let asked = 0;
    const script = (): ScriptedReply => {
      asked++;
      return asked === 1
        ? { toolCalls: [{ name: 'run_command', args: { command: 'touch gone' } }] }
        : { text: 'then not' };
    };
    await model.close();
    model = await startOpenAiServer(script, { port: Number(new URL(model.url).port) });
    expect(await gateway.chat({ text: 'do it', conversation: 'leave' })).toMatchObject({
      status: 200,
      reply: 'then not',
    });
    const tool = model.requests.at(-1)?.body.messages.find(({ role }) => role === 'tool');
    expect(JSON.stringify(tool)).toContain('nobody answered');
  });
});
