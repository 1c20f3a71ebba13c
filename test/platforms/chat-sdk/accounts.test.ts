import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../cli/cli-fixture.ts';
import { GitHubFake } from '../../fakes/github.ts';
import { startHttpFake } from '../../fakes/http-fake.ts';
import { startOpenAiServer } from '../../fakes/openai-server.ts';
import { GatewayProcess } from '../../gateway/process.ts';
import { lastUserLine } from '../../gateway/user-lines.ts';
import { PACKAGES } from './world.ts';

/** A package as its user installs it: an adapter that posts what it is told to another server. */
const PARROT = `
export function createParrotAdapter({ url, secret, logger }) {
  let chat;
  return {
    name: 'parrot',
    async initialize(given) {
      chat = given;
    },
    async handleWebhook(request, options) {
      if (request.headers.get('x-parrot') !== secret) return new Response('', { status: 401 });
      const { id, text } = await request.json();
      const author = { userId: 'polly', userName: 'polly', fullName: 'Polly', isBot: false, isMe: false };
      const metadata = { dateSent: new Date(), edited: false };
      chat.processMessage(this, 'parrot:cage', { id, text, author, metadata, attachments: [] }, options);
      logger.warn('somebody used ' + secret);
      return new Response('squawk', { headers: { 'x-heard': 'yes' } });
    },
    parseMessage: (raw) => raw,
    channelIdFromThreadId: (id) => id,
    isDM: () => true,
    async postMessage(threadId, message) {
      await fetch(url, { method: 'POST', body: JSON.stringify({ threadId, ...message }) });
      return { id: 'p1' };
    },
  };
}
`;

test('adapters beside each other are accounts: one from the home, one from elsewhere, one that is not installed', async () => {
  const github = await GitHubFake.start();
  const sent: string[] = [];
  await using parrots = await startHttpFake(async ({ raw }, response) => {
    sent.push(raw);
    response.end();
  });
  await using model = await startOpenAiServer(({ body }) => ({ text: `did: ${lastUserLine(body.messages)}` }));
  const { token, secret: webhookSecret, self } = github;
  const gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
    platforms: {
      'chat-sdk': {
        accounts: {
          parrot: { adapter: 'chat-adapter-parrot', options: { url: parrots.url, secret: 'polly-wants-a-cracker' } },
          github: {
            ...{ adapter: '@chat-adapter/github', packages_from: PACKAGES },
            ...{ api_root: github.url, options: { token, webhookSecret, userName: self.login } },
          },
          lost: { adapter: 'chat-adapter-lost' },
        },
      },
    },
    ...{ access: { allow: ['*'] }, memory: { provider: 'none' }, display: { streaming: false } },
  });
  const folder = join(gateway.home, 'node_modules', 'chat-adapter-parrot');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'chat-adapter-parrot', type: 'module' }));
  writeFileSync(join(folder, 'index.js'), PARROT);
  try {
    await gateway.start();
    const phases = async (): Promise<Record<string, string>> => {
      const { data } = await gateway.get<{ data: { account: string; phase: string }[] }>('/v1/platforms');
      return Object.fromEntries(data.map(({ account, phase }) => [account, phase]));
    };
    await until('both are there', async () => {
      const { parrot, github: hub } = await phases();
      return parrot === 'connected' && hub === 'connected';
    });
    expect((await phases()).lost).toBe('degraded');
    const post = (secret: string) =>
      fetch(`${gateway.url}/platforms/chat-sdk/parrot`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-parrot': secret },
        body: JSON.stringify({ id: 'm1', text: 'hello' }),
      });
    expect((await post('wrong')).status).toBe(401);
    const answered = await post('polly-wants-a-cracker');
    expect([answered.status, await answered.text(), answered.headers.get('x-heard')]).toEqual([200, 'squawk', 'yes']);
    github.comment(9, `@${self.login} look`, { id: 1000, login: 'ada', type: 'User' });
    await github.deliver(`${gateway.url}/platforms/chat-sdk/github`);
    await until('both are answered', () => sent.length === 1 && github.comments.size === 2);
    // Of an adapter that nobody knows no more is expected than words.
    expect(JSON.parse(sent[0]!)).toEqual({ threadId: 'parrot:cage', markdown: 'did: hello' });
    expect([...github.comments.values()].at(-1)).toMatchObject({ issue: 9, body: 'did: look' });
    const { data } = await gateway.get<{ data: { key: string }[] }>('/v1/sessions');
    expect(data.map(({ key }) => key).sort()).toEqual([
      'agent:main:chat-sdk@github:thread:ada/loom:issue%3A9',
      'agent:main:chat-sdk@parrot:dm:cage',
    ]);
    expect(gateway.log).toContain('npm install --prefix');
    expect(gateway.log).toContain('somebody used');
    const { output } = await gateway.moirai('config', 'show');
    for (const secret of [token, webhookSecret, 'polly-wants-a-cracker']) {
      expect(gateway.log).not.toContain(secret);
      expect(output).not.toContain(secret);
    }
    const tried = await gateway.moirai('platforms', 'test', 'chat-sdk@github');
    expect(tried.output).toBe(`chat-sdk@github is @chat-adapter/github as ${self.login}, ${self.id}.\n`);
  } finally {
    await gateway.close();
    await github.close();
  }
}, 60_000);
