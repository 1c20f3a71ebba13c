import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Rendering, renderPrompt } from '../../src/agent/prompt.ts';
import type { TranscriptRow } from '../../src/agent/transcript.ts';
import { startAnthropicServer } from '../fakes/anthropic-server.ts';
import type { RecordedRequest } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

/** Everything of a body up to the end of its last message: what the next body must begin with. */
function readAlready({ raw, body }: RecordedRequest): string {
  const messages = JSON.stringify(body.messages).slice(0, -1);
  const end = raw.indexOf(messages);
  expect(end).toBeGreaterThan(0);
  return raw.slice(0, end + messages.length);
}

const talkative: ModelScript = ({ body }, i) =>
  body.messages.at(-1)?.role === 'user' && i % 2 === 0
    ? { text: `Let me see ${i}.`, toolCalls: [{ id: `c${i}`, name: 'remember', args: { fact: `é ${i}` } }] }
    : { text: `Answer ${i} „quoted“ \n with lines` };

test.each([
  ['an OpenAI-compatible', startOpenAiServer, 'openai-compatible'],
  ['an Anthropic', startAnthropicServer, 'anthropic'],
] as const)('what %s server gets in a turn is to the byte how the next turn begins', async (_, start, provider) => {
  await using server = await start(talkative);
  const { runner } = runnerAt(server.url, { model: { provider }, ports: { remember: async () => undefined } });
  const chat = new Conversation(runner);
  for (let turn = 1; turn <= 5; turn += 1) {
    await chat.say(`question ${turn}`, { note: turn === 3 ? 'it is the third' : null });
  }
  const sent = questions(server);
  expect(sent.length).toBeGreaterThanOrEqual(8);
  for (let i = 1; i < sent.length; i += 1) expect(sent[i]!.raw.startsWith(readAlready(sent[i - 1]!))).toBe(true);
  expect(new Set(sent.map(({ body }) => JSON.stringify([body.system, body.tools, body.messages[0]]))).size).toBe(1);
});

test('a fresh process and one that remembers send the same bytes', async () => {
  await using server = await startOpenAiServer(talkative);
  const ports = { remember: async () => undefined };
  const chat = new Conversation(runnerAt(server.url, { ports }).runner);
  for (let turn = 1; turn <= 3; turn += 1) await chat.say(`question ${turn}`);
  const cold = new Conversation(runnerAt(server.url, { ports }).runner);
  cold.transcript = chat.transcript;
  await chat.say('last', { turnId: 'last' });
  const warmBody = questions(server).at(-1);
  await cold.say('last', { turnId: 'last' });
  const first = questions(server).find(({ body }) => body.messages.at(-1)?.content === 'last');
  const again = questions(server).findLast(({ body }) => body.messages.at(-1)?.content === 'last');
  expect(warmBody).toBeDefined();
  expect(again?.raw).toBe(first?.raw);
});

const role = fc.constantFrom('user', 'assistant', 'calls', 'tool', 'note', 'setting');

function rowsOf(roles: readonly string[]): TranscriptRow[] {
  return roles.map((name, i): TranscriptRow => {
    const base = { sessionId: 's', position: i + 1, text: `${name} ${i}`, turnId: null };
    if (name === 'calls') {
      return { ...base, role: 'assistant', data: { toolCalls: [{ id: `c${i + 1}`, name: 't', args: {} }] } };
    }
    return { ...base, role: name, data: name === 'tool' ? { toolCallId: `c${i}`, name: 't', ok: true } : null };
  });
}

test('a rendering taken up again is the same as one made anew', () => {
  fc.assert(
    fc.property(fc.array(role, { maxLength: 25 }), fc.array(fc.nat(25), { maxLength: 4 }), (roles, stops) => {
      const rows = rowsOf(roles);
      let known: Rendering | null = null;
      for (const stop of [...stops.sort((a, b) => a - b), rows.length]) {
        const prompt = renderPrompt(rows.slice(0, stop), known);
        expect(prompt.messages).toEqual(renderPrompt(rows.slice(0, stop)).messages);
        known = prompt.settled;
      }
    }),
  );
});

test('every call in a prompt has its result right behind it, whatever was undone or summarised', () => {
  const rewriting = fc.constantFrom('user', 'assistant', 'calls', 'tool', 'note', 'undo', 'summary');
  fc.assert(
    fc.property(fc.array(fc.tuple(rewriting, fc.nat(20)), { maxLength: 25 }), (drawn) => {
      const rows = rowsOf(drawn.map(([name]) => name)).map((row, i) => {
        const at = Math.min(drawn[i]![1], i);
        if (row.role === 'undo') return { ...row, data: { from: at } };
        return row.role === 'summary' ? { ...row, data: { upTo: at } } : row;
      });
      const { messages } = renderPrompt(rows);
      messages.forEach((message, i) => {
        const calls = message.role === 'assistant' && typeof message.content !== 'string' ? message.content : [];
        const made = calls.filter(({ type }) => type === 'tool-call');
        const next = messages[i + 1];
        expect(next?.role === 'tool' ? next.content.length : 0).toBe(made.length);
      });
    }),
  );
});
