import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { ModelAnswer, PendingAnswer } from '../../src/agent/model/model-api.ts';
import { openAiApi } from '../../src/agent/model/openai-api.ts';

const LAST = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

interface AskedQuestion extends PendingAnswer {
  readonly said: () => string;
}

/** A server that answers as it is told, and counts the connections made to it. */
async function withServer(
  answer: (response: ServerResponse) => void,
  action: (ask: (onText?: (text: string) => void) => AskedQuestion, connections: () => number) => Promise<void>,
): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => answer(response));
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const api = openAiApi(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, 'key');
  const ask = (onText: (text: string) => void = () => undefined): AskedQuestion => {
    let said = '';
    const pending = api(
      { model: 'm', system: 's', messages: [{ role: 'user', content: 'hi' }], tools: new Map() },
      {
        onText: (text) => {
          said += text;
          onText(text);
        },
        onReasoning: () => undefined,
        onActivity: () => undefined,
      },
    );
    return { ...pending, said: () => said };
  };
  try {
    await action(ask, () => connections);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const chunk = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

test('one connection serves one question after the other', async () => {
  await withServer(
    (response) => void response.end(chunk('hello') + LAST),
    async (ask, connections) => {
      for (let i = 0; i < 3; i++) {
        const asked = ask();
        await asked.answer;
        asked.cancel();
        expect(asked.said()).toBe('hello');
      }
      expect(connections()).toBe(1);
    },
  );
});

test('letters that are cut between two packets arrive whole', async () => {
  const bytes = Buffer.from(chunk('grüße 👋') + LAST);
  const send = (response: ServerResponse, at = 0): void => {
    if (at === bytes.length) {
      response.end();
      return;
    }
    response.write(bytes.subarray(at, at + 1));
    setImmediate(() => send(response, at + 1));
  };
  await withServer(
    (response) => void send(response),
    async (ask) => {
      const asked = ask();
      await asked.answer;
      expect(asked.said()).toBe('grüße 👋');
    },
  );
});

test('a cancelled question closes its connection, and nothing more is heard of it', async () => {
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  const answer = (response: ServerResponse): void => {
    response.on('close', close);
    response.write(chunk('one') + chunk('two'));
  };
  await withServer(answer, async (ask) => {
    let asked: AskedQuestion | null = null;
    const { promise: heard, resolve: hear } = Promise.withResolvers<void>();
    asked = ask(() => {
      asked?.cancel();
      hear();
    });
    asked.answer.catch(() => undefined);
    await heard;
    await closed;
    expect(asked.said()).toBe('one');
  });
});

test('a listener that throws fails its question and nothing else', async () => {
  await withServer(
    (response) => void response.end(chunk('hello') + LAST),
    async (ask) => {
      const failed = ask(() => {
        throw new RangeError('the screen is gone');
      });
      await expect(failed.answer).rejects.toThrow('the screen is gone');
      const asked: Promise<ModelAnswer> = ask().answer;
      await expect(asked).resolves.toMatchObject({ finishReason: 'stop' });
    },
  );
});

test('a server that has moved is named with its new address', async () => {
  await withServer(
    (response) => void response.writeHead(308, { location: 'https://elsewhere.example/v1' }).end(),
    async (ask) => {
      await expect(ask().answer).rejects.toMatchObject({
        code: 'model_refused',
        message: expect.stringContaining('https://elsewhere.example/v1'),
      });
    },
  );
});

test('an address that is none is told when it is asked, not when it is configured', async () => {
  const { answer } = openAiApi('nowhere', '')(
    { model: 'm', system: '', messages: [], tools: new Map() },
    { onText: () => undefined, onReasoning: () => undefined, onActivity: () => undefined },
  );
  await expect(answer).rejects.toThrow('Invalid URL');
});
