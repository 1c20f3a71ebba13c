import type { ServerResponse } from 'node:http';
import { parseArgs } from 'node:util';
import { type HttpFake, openStream, type RecordedRequest, sendJson, startHttpFake } from './http-fake.ts';
import { type ModelScript, pause, piecesOf, replyTo, type ScriptedReply, usageOf } from './model-script.ts';

export interface OpenAiOptions {
  readonly port?: number;
  readonly models?: readonly string[];
}

/** The base URL ends with /v1, as a configuration has it. */
export async function startOpenAiServer(script: ModelScript, options: OpenAiOptions = {}): Promise<HttpFake> {
  const { port = 0, models = ['fake-model', 'fake-model-large'] } = options;
  let asked = 0;
  const fake = await startHttpFake(async (request, response) => {
    if (request.path === '/v1/models') {
      sendJson(response, 200, { object: 'list', data: models.map((id) => ({ id, object: 'model' })) });
    } else if (request.path === '/v1/chat/completions' && request.method === 'POST') {
      await complete(request, response, await replyTo(script, request, asked++));
    } else sendJson(response, 404, { error: { message: `no route ${request.path}`, type: 'not_found' } });
  }, port);
  return { ...fake, url: `${fake.url}/v1` };
}

/** The bodies of the questions, without the listings of models. */
export function questions(fake: HttpFake): RecordedRequest[] {
  return fake.requests.filter(({ method }) => method === 'POST');
}

async function complete(request: RecordedRequest, response: ServerResponse, reply: ScriptedReply): Promise<void> {
  if (reply.beforeMs !== undefined) await pause(reply.beforeMs);
  if (reply.status !== undefined) {
    const error = reply.error ?? { message: `scripted status ${reply.status}` };
    sendJson(response, reply.status, { error }, reply.headers);
  } else if (request.body.stream === true) await stream(request.body.model, response, reply);
  else sendJson(response, 200, wholeReply(request.body.model, reply));
}

async function stream(model: string, response: ServerResponse, reply: ScriptedReply): Promise<void> {
  const write = openStream(response);
  const chunk = (delta: object, finish: string | null = null) =>
    write(null, { ...head(model, 'chat.completion.chunk'), choices: [{ index: 0, delta, finish_reason: finish }] });
  chunk({ role: 'assistant', content: '' });
  if (reply.reasoning !== undefined) chunk({ reasoning_content: reply.reasoning });
  for (const [i, piece] of piecesOf(reply.text ?? '').entries()) {
    if (reply.cutAfter === i) return cut(response);
    if (reply.hangAfter === i) return;
    if (reply.pause?.after === i) await reply.pause.until;
    chunk({ content: piece });
    if (reply.betweenMs !== undefined) await pause(reply.betweenMs);
  }
  if (reply.cutAfter !== undefined) return cut(response);
  if (reply.hangAfter !== undefined) return;
  if (reply.streamError !== undefined) write(null, { error: reply.streamError });
  if (reply.streamError !== undefined || reply.unfinished) return void response.end();
  const calls = callsOf(reply);
  if (calls.length > 0) chunk({ tool_calls: calls.map((call, index) => ({ index, ...call })) });
  chunk({}, finishOf(reply));
  write(null, { ...head(model, 'chat.completion.chunk'), choices: [], usage: counted(reply) });
  write(null, '[DONE]');
  response.end();
}

/** What was written so far arrives before the break: a reset would take it along. */
async function cut(response: ServerResponse): Promise<void> {
  await pause(20);
  response.destroy();
}

function wholeReply(model: string, reply: ScriptedReply) {
  const calls = callsOf(reply);
  const message = {
    role: 'assistant',
    content: reply.text ?? null,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  const choices = [{ index: 0, message, finish_reason: finishOf(reply) }];
  return { ...head(model, 'chat.completion'), choices, usage: counted(reply) };
}

const head = (model: string, object: string) => ({ id: 'chatcmpl-fake', object, created: 1_700_000_000, model });

const finishOf = ({ toolCalls }: ScriptedReply): string => (toolCalls?.length ? 'tool_calls' : 'stop');

function callsOf({ toolCalls = [] }: ScriptedReply) {
  return toolCalls.map(({ id, name, args }, i) => ({
    ...{ id: id ?? `call_${i + 1}_${name}`, type: 'function' },
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }));
}

function counted(reply: ScriptedReply) {
  const { input, output } = usageOf(reply);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { port: { type: 'string', default: '8799' } } });
  const echo: ModelScript = ({ body }) => ({ text: `You said: ${JSON.stringify(body.messages.at(-1)?.content)}` });
  const { url } = await startOpenAiServer(echo, { port: Number(values.port) });
  process.stdout.write(`a model that repeats you listens on ${url}\n`);
}
