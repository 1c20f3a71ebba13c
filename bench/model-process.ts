import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { startOpenAiServer } from '../test/fakes/openai-server.ts';

/** A model that answers at once, in a process of its own so that its work is not ours. */
export async function startModelProcess(): Promise<{ url: string; close(): void }> {
  const child = fork(fileURLToPath(import.meta.url), { stdio: 'inherit' });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => resolve(String(message)));
    child.once('exit', (code) => reject(new TypeError(`the model exited with ${code}`)));
  });
  return { url, close: () => child.kill() };
}

if (import.meta.main) {
  const fake = await startOpenAiServer([{ text: 'Here you are.' }]);
  // It remembers every request for tests; here that would be all there is in memory.
  setInterval(() => fake.requests.splice(0), 100).unref();
  process.send?.(fake.url);
  process.on('disconnect', () => process.exit());
}
