import type { ServerResponse } from 'node:http';
import { type HttpFake, openStream, sendJson, startHttpFake } from './http-fake.ts';
import { type ModelScript, pause, piecesOf, replyTo, type ScriptedReply, usageOf } from './model-script.ts';

/** The messages API of Anthropic's kind, streaming only. The base URL ends with /v1. */
export async function startAnthropicServer(script: ModelScript): Promise<HttpFake> {
  let asked = 0;
  const fake = await startHttpFake(async (request, response) => {
    if (request.path.startsWith('/v1/models'))
      sendJson(response, 200, { data: [{ id: 'claude-fake', type: 'model' }] });
    else if (request.path === '/v1/messages') {
      await answer(request.body.model, response, await replyTo(script, request, asked++));
    } else sendJson(response, 404, { type: 'error', error: { type: 'not_found_error', message: 'no route' } });
  });
  return { ...fake, url: `${fake.url}/v1` };
}

async function answer(model: string, response: ServerResponse, reply: ScriptedReply): Promise<void> {
  if (reply.beforeMs !== undefined) await pause(reply.beforeMs);
  if (reply.status === undefined) return stream(model, response, reply);
  const error = reply.error ?? { type: 'invalid_request_error', message: `scripted status ${reply.status}` };
  sendJson(response, reply.status, { type: 'error', error }, reply.headers);
}

async function stream(model: string, response: ServerResponse, reply: ScriptedReply): Promise<void> {
  const write = openStream(response);
  const event = (type: string, fields: object) => write(type, { type, ...fields });
  const { input, output } = usageOf(reply);
  const usage = { input_tokens: input, output_tokens: 1 };
  const message = { id: 'msg_fake', type: 'message', role: 'assistant', model, content: [], usage };
  event('message_start', { message: { ...message, stop_reason: null, stop_sequence: null } });
  let index = 0;
  if (reply.text !== undefined) {
    event('content_block_start', { index, content_block: { type: 'text', text: '' } });
    for (const [i, text] of piecesOf(reply.text).entries()) {
      if (reply.cutAfter === i) return cut(response);
      if (reply.hangAfter === i) return;
      event('content_block_delta', { index, delta: { type: 'text_delta', text } });
    }
    if (reply.unfinished) return void response.end();
    event('content_block_stop', { index });
    index += 1;
  }
  if (reply.streamError !== undefined) {
    event('error', { error: reply.streamError });
    return void response.end();
  }
  for (const { id, name, args } of reply.toolCalls ?? []) {
    event('content_block_start', {
      index,
      content_block: { type: 'tool_use', id: id ?? `toolu_${index}`, name, input: {} },
    });
    event('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json: JSON.stringify(args) } });
    event('content_block_stop', { index });
    index += 1;
  }
  const stop_reason = reply.toolCalls?.length ? 'tool_use' : 'end_turn';
  event('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: output } });
  event('message_stop', {});
  response.end();
}

async function cut(response: ServerResponse): Promise<void> {
  await pause(20);
  response.destroy();
}
