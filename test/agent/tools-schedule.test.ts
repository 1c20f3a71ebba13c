import { expect, test } from 'vitest';
import type { NewSchedule, ToolPorts } from '../../src/agent/tools/ports.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { Conversation, runnerAt } from './conversation.ts';

test('the agent schedules, lists and removes in the name of the person, and is told what is missing', async () => {
  const asked: [string, unknown, string][] = [];
  const schedule: ToolPorts['schedule'] = {
    add: async ({ schedule: when, task }: NewSchedule, { sessionId }) => {
      asked.push(['add', [when, task], sessionId]);
      return 'Scheduled.';
    },
    list: async ({ sessionId }) => {
      asked.push(['list', null, sessionId]);
      return 'One job.';
    },
    remove: async (job, { sessionId }) => {
      asked.push(['remove', job, sessionId]);
      return 'Removed.';
    },
  };
  const calls = [
    { action: 'add', schedule: 'in 20m', task: 'tea' },
    { action: 'list' },
    { action: 'remove', job: 'kettle' },
    { action: 'add', schedule: 'in 20m' },
    { action: 'remove' },
  ].map((args) => ({ name: 'schedule', args }));
  await using server = await startOpenAiServer([{ toolCalls: calls }, { text: 'done' }]);
  const chat = new Conversation(runnerAt(server.url, { ports: { schedule } }).runner);
  await chat.say('go');
  expect(chat.transcript.filter(({ role }) => role === 'tool').map(({ text }) => text)).toEqual([
    ...['Scheduled.', 'One job.', 'Removed.'],
    ...[expect.stringContaining('task: is missing'), expect.stringContaining('job: is missing')],
  ]);
  expect(asked).toEqual([
    ['add', ['in 20m', 'tea'], 's1'],
    ['list', null, 's1'],
    ['remove', 'kettle', 's1'],
  ]);
  // Servers refuse a tool whose arguments are not one object.
  const [question] = questions(server);
  const tools = question?.body.tools as { function: { name: string; parameters: { type?: string } } }[];
  expect(tools.find(({ function: { name } }) => name === 'schedule')?.function.parameters.type).toBe('object');
});
