import { expect, test } from 'vitest';
import { PlatformScene } from '../gateway-suite.ts';
import { writeMail } from './mails.ts';
import { subject } from './subject.ts';
import { AGENT, type EmailWorld, passed } from './world.ts';

const POINTS = ['alder', 'birch', 'cedar', 'damson', 'elder', 'fir', 'gorse', 'hazel', 'ivy', 'juniper'];

/** What a mail program puts below an answer: all that was said before, a level deeper each time. */
function quoteOf(said: string): string {
  const quoted = said.split('\n').map((line) => `> ${line}`);
  return `On Fri, Jan 2, 2026 at 11:00 AM Moirai <${AGENT}> wrote:\n\n${quoted.join('\n')}`;
}

test('ten mails with quotes are one conversation, and the model reads each of them once', async () => {
  const [mode] = subject.modes;
  await using scene = await PlatformScene.open(subject, mode!);
  const world = scene.world as EmailWorld;
  const references: string[] = [];
  let before = '';
  for (const point of POINTS) {
    const text = before === '' ? point : `${point}\n\n${quoteOf(before)}`;
    const { id, raw } = writeMail({
      ...{ subject: 'Trees', text, references: [...references], headers: passed() },
      ...(references.length === 0 ? {} : { inReplyTo: references.at(-1)! }),
    });
    world.deliver(raw);
    const answer = () => world.server.sent.find(({ inReplyTo }) => inReplyTo === id);
    await scene.until(`the answer to ${point}`, () => answer() !== undefined);
    expect(answer()?.text).toBe(`did: ${point}`);
    references.push(id, answer()!.id);
    before = `did: ${point}\n\n${quoteOf(text)}`;
  }
  const { data } = await scene.gateway.get<{ data: { key: string }[] }>('/v1/sessions');
  expect(data.map(({ key }) => key)).toEqual([`agent:main:email:thread:${references[0]}`]);
  const read = scene.model.requests.at(-1)?.body.messages.filter(({ role }) => role === 'user') ?? [];
  const words = JSON.stringify(read);
  expect(POINTS.map((point) => words.split(point).length - 1)).toEqual(POINTS.map(() => 1));
  expect(words).not.toContain('wrote:');
}, 120_000);

test('what two people write in one thread is one conversation, and each is answered by themselves', async () => {
  const [mode] = subject.modes;
  await using scene = await PlatformScene.open(subject, mode!);
  const world = scene.world as EmailWorld;
  for (const name of ['ada', 'bob']) {
    const from = `${name}@people.test`;
    world.deliver(writeMail({ from, references: ['shared@people.test'], text: `I am ${name}`, headers: passed() }).raw);
    await scene.until(`the answer to ${name}`, () =>
      world.server.sent.some(({ text }) => text.includes(`I am ${name}`)),
    );
    expect(world.server.sent.at(-1)?.to).toEqual([from]);
  }
  const { data } = await scene.gateway.get<{ data: { key: string }[] }>('/v1/sessions');
  expect(data.map(({ key }) => key)).toEqual(['agent:main:email:thread:shared@people.test']);
});
