import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { EventData } from './event-data.ts';
import type { AnswerListener, ModelAnswer, ModelApi, PendingAnswer } from './model-api.ts';
import { ChatCompletionReader } from './openai-answer.ts';
import { chatCompletionBody } from './openai-request.ts';

/** As much of a refusal as is read. */
const MOST_OF_A_REFUSAL = 64 * 1024;

/**
 * Servers that speak OpenAI's chat completions. Read by hand: a chain of web streams and a schema for each chunk cost more
 * than the rest of a turn.
 */
export function openAiApi(baseUrl: string, apiKey: string): ModelApi {
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream',
    'user-agent': 'moirai',
    ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }),
  };
  let target: RequestOptions | null = null;
  return (request, listener) => {
    try {
      target ??= { ...urlToHttpOptions(new URL(`${baseUrl}/chat/completions`)), method: 'POST' };
      return send(target, headers, chatCompletionBody(request), listener);
    } catch (thrown) {
      return { answer: Promise.reject(thrown), cancel: () => undefined };
    }
  };
}

function send(
  target: RequestOptions,
  headers: Readonly<Record<string, string>>,
  body: string,
  listener: AnswerListener,
): PendingAnswer {
  const { promise: answer, resolve, reject } = Promise.withResolvers<ModelAnswer>();
  const options = { ...target, headers: { ...headers, 'content-length': Buffer.byteLength(body) } };
  const sent = target.protocol === 'https:' ? httpsRequest(options) : httpRequest(options);
  let over = false;
  const stop = (): void => {
    if (over) return;
    over = true;
    sent.destroy();
  };
  const fail = (thrown: unknown): void => {
    // A name with several addresses fails with one error for each, and says nothing itself.
    reject(thrown instanceof AggregateError ? (thrown.errors[0] ?? thrown) : thrown);
    stop();
  };
  sent.on('error', fail);
  sent.on('response', (response) => {
    listener.onActivity();
    response.on('error', fail);
    if (response.statusCode !== 200) return readRefusal(response, fail);
    const reader = new ChatCompletionReader(listener);
    const events = new EventData((data) => {
      if (!over) reader.take(data);
    });
    response.setEncoding('utf8');
    response.on('data', (text: string) => {
      listener.onActivity();
      attempt(() => events.push(text), fail);
    });
    response.on('end', () => {
      attempt(() => {
        events.end();
        resolve(reader.finished());
        // The connection is the next request's from here on.
        over = true;
      }, fail);
    });
  });
  sent.end(body);
  return { answer, cancel: stop };
}

function readRefusal(response: IncomingMessage, fail: (thrown: unknown) => void): void {
  const { statusCode = 0, statusMessage = '', headers } = response;
  const { location } = headers;
  if (location !== undefined && statusCode < 400) {
    fail(new MoiraiError('model_refused', `the model server has moved to ${location}: set model.base_url accordingly`));
    return;
  }
  let body = '';
  response.setEncoding('utf8');
  response.on('data', (text: string) => {
    if (body.length < MOST_OF_A_REFUSAL) body += text;
  });
  response.on('end', () => {
    // The fields that `modelError` reads.
    fail(Object.assign(new Error(statusMessage), { statusCode, responseHeaders: headers, responseBody: body }));
  });
}

/** An exception in a listener of a socket would end the process. */
function attempt(action: () => void, fail: (thrown: unknown) => void): void {
  try {
    action();
  } catch (thrown) {
    fail(thrown);
  }
}
