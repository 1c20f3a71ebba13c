import { afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { testInFullRun } from '../support/full-run.ts';
import { TelegramScene } from './telegram-scene.ts';

let scene: TelegramScene;

afterEach(() => scene.close());

/** Looks for files once, then answers. */
const LOOKS_FIRST = ({ body }: { body: { messages: readonly { role: string }[] } }) =>
  body.messages.at(-1)?.role === 'tool'
    ? { text: 'Two of them.', beforeMs: 2500 }
    : { text: 'Let me look.', toolCalls: [{ name: 'list_files', args: { path: '.' } }], beforeMs: 1500 };

test('tools show while they work, and the reply takes their place', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open(LOOKS_FIRST);
  await scene.gateway({ display: { platforms: { telegram: { tool_progress: 'all' } } } }).start();
  scene.bot.say({ text: 'how many?' });
  await until('the tool shows', () => scene.textsIn(42).some((text) => text.includes('⚙ list_files')), 15_000);
  await until('the reply is there', () => scene.textsIn(42)[0] === 'Two of them.', 15_000);
  expect(scene.textsIn(42)).toEqual(['Two of them.']);
});

test('a footer, a sign at the message, and no typing, as told', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open();
  await scene.gateway({ display: { streaming: false, typing: false, reactions: true, footer: true } }).start();
  const { message_id } = scene.bot.say({ text: 'hello' });
  expect(await scene.heardIn(42, 1)).toEqual(['did: hello\n\nfake-model · 15 tokens']);
  await until('the sign says done', () => scene.bot.reactions.get(`42:${message_id}`)?.includes('👍') === true);
  expect(scene.bot.callsOf('sendChatAction')).toEqual([]);
});

test('reasoning is not shown', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open([{ reasoning: 'I must not say plum.', text: 'Quince.', beforeMs: 1500 }]);
  await scene.gateway({ display: {} }).start();
  scene.bot.say({ text: 'which?' });
  expect(await scene.heardIn(42, 1)).toEqual(['Quince.']);
  expect(JSON.stringify(scene.bot.calls)).not.toContain('plum');
});

test('a sticker is looked at once, and told by what it shows', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open(({ body, raw }) => {
    if (raw.includes('Describe this picture')) return { text: 'A cat that waves.' };
    return { text: `did: ${String(body.messages.at(-1)?.content)}` };
  });
  await scene.gateway().start();
  const { file_id, file_unique_id, file_size } = scene.bot.keepFile(Buffer.from('RIFFxxxxWEBP'));
  const sticker = {
    ...{ file_id, file_unique_id, file_size, emoji: '👋', set_name: 'Cats' },
    ...{ type: 'regular', width: 512, height: 512, is_animated: false, is_video: false },
  };
  for (const count of [1, 2]) {
    scene.bot.say({ fields: { sticker } });
    expect((await scene.heardIn(42, count)).at(-1)).toMatch(/did: \[A sticker .*👋.*Cats.*: A cat that waves\.\]/);
  }
  const looks = scene.model.requests.filter(({ raw }) => raw.includes('Describe this picture'));
  expect(looks).toHaveLength(1);
  expect(looks[0]?.raw).toContain('data:image/webp;base64,');
});

test('in a group only what is said to it is heard, or what has a word it wakes up to', async () => {
  scene = await TelegramScene.open();
  await scene.gateway({}, { wake_words: ['Clotho'] }).start();
  const group = { chat: -100, type: 'supergroup' } as const;
  scene.bot.say({ text: 'just talking', ...group });
  scene.bot.say({ text: 'clotho, spin', ...group });
  expect(await scene.heardIn(-100, 1)).toEqual(['did: clotho, spin']);
  scene.bot.say({ text: 'ping' });
  await scene.heardIn(42, 1);
  expect(scene.model.requests.some(({ raw }) => raw.includes('just talking'))).toBe(false);
});

test('a place that is gone is marked, and known again when somebody talks there', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open();
  const gateway = scene.gateway();
  await gateway.start();
  scene.bot.say({ text: 'one' });
  await scene.heardIn(42, 1);
  scene.bot.failNext('sendMessage', { code: 403, description: 'Forbidden: bot was blocked by the user' });
  expect((await gateway.moirai('send', 'telegram:42', 'are you there?')).code).toBe(0);
  const places = async () => JSON.parse((await gateway.moirai('send', '--list', '--json')).output).data;
  await until('it is gone', async () => (await places())[0].gone !== null, 15_000);
  expect((await places())[0].gone).toMatch(/blocked/);
  scene.bot.say({ text: 'two' });
  await scene.heardIn(42, 2);
  expect((await places())[0].gone).toBeNull();
});

test('what is sent while no gateway runs leaves when one does', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open();
  const gateway = scene.gateway();
  await gateway.start();
  scene.bot.say({ text: 'one' });
  await scene.heardIn(42, 1);
  await gateway.end('SIGTERM');
  expect((await gateway.moirai('send', 'telegram:42', 'The linen is dry.')).output).toContain(
    'it leaves when one does',
  );
  await gateway.start();
  expect((await scene.heardIn(42, 2))[1]).toBe('The linen is dry.');
});

test('what is sent from elsewhere is known when it is answered', { timeout: 60_000 }, async () => {
  scene = await TelegramScene.open();
  const gateway = scene.gateway();
  await gateway.start();
  scene.bot.say({ text: 'one' });
  await scene.heardIn(42, 1);
  await gateway.moirai('send', 'telegram:42', 'The linen is dry.');
  expect((await scene.heardIn(42, 2))[1]).toBe('The linen is dry.');
  scene.bot.say({ text: 'thank you' });
  await scene.heardIn(42, 3);
  expect(scene.model.requests.at(-1)?.raw).toContain('The linen is dry.');
});

testInFullRun(
  '`gateway status` says how the platform stands, and `/sethome` makes a home for what nobody asked for',
  {
    timeout: 60_000,
  },
  async () => {
    scene = await TelegramScene.open();
    const gateway = scene.gateway({ access: { admins: ['telegram:42'] } });
    await gateway.start();
    await until('it polls', () => scene.bot.isPolled);
    expect((await gateway.moirai('gateway', 'status')).output).toMatch(/telegram.*connected/);
    scene.bot.failNext('getUpdates', { html: 502 }, { html: 502 });
    scene.bot.cut();
    const phases = async () => (await gateway.events('gateway:platform')).map(({ name, phase }) => [name, phase]);
    const tells = async () => (await phases()).map(([, phase]) => phase).join(' ');
    await until('the log tells', async () => /connected( degraded)+$/.test(await tells()), 15_000);
    scene.bot.say({ text: 'hello' });
    await until('and tells again', async () => /connected( degraded)+ connected$/.test(await tells()), 15_000);
    expect(new Set((await phases()).map(([name]) => name))).toEqual(new Set(['telegram']));
    await scene.heardIn(42, 1);
    scene.bot.say({ text: '/sethome' });
    await scene.heardIn(42, 2);
    expect((await gateway.moirai('send', 'home', 'news')).code).toBe(0);
    expect((await scene.heardIn(42, 3))[2]).toBe('news');
  },
);
