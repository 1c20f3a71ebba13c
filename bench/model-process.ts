import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

/** A model that answers at once, in a process of its own so that its work is not ours. */
export async function startModelProcess(): Promise<{ url: string; close(): void }> {
  const child = fork(fileURLToPath(import.meta.url), { stdio: 'inherit' });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => resolve(String(message)));
    child.once('exit', (code) => reject(new TypeError(`the model exited with ${code}`)));
  });
  return { url, close: () => child.kill() };
}

const head = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'fake-model' };
const deltas = [{ role: 'assistant', content: '' }, { content: 'Here ' }, { content: 'you ' }, { content: 'are.' }, {}];
const chunks = deltas.map((delta, index) => {
  const finish_reason = index === deltas.length - 1 ? 'stop' : null;
  return { ...head, choices: [{ index: 0, delta, finish_reason }] };
});
const usage = { ...head, choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } };

/** What is measured shares two cores with this: it reads nothing of what it is asked, and its answer is made once. */
const ANSWER = [...chunks, usage].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).concat('data: [DONE]\n\n');

function serve(): void {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      for (const event of ANSWER) response.write(event);
      response.end();
    });
  });
  server.listen(0, '127.0.0.1', () => {
    process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  });
  process.on('disconnect', () => process.exit());
}

if (import.meta.main) serve();
