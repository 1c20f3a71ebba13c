import type { Picture } from '../runner.ts';
import type { ModelServer } from './model-server.ts';
import { streamStep } from './step.ts';

const QUESTION = 'Describe this picture in one short sentence, as for somebody who cannot see it. Only the sentence.';
const MOST_TOKENS = 200;
const LONGEST = 300;
const NO_TOOLS = new Map();

/** Asks the model what it sees; null when it does not say. Throws what the server throws at models that cannot see. */
export async function describePicture(
  server: ModelServer,
  { bytes, mime }: Picture,
  signal: AbortSignal,
  silenceMs: number,
): Promise<string | null> {
  const { text } = await streamStep({
    api: await server.api(),
    model: await server.defaultModel(),
    system: '',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: QUESTION },
          { type: 'picture', mime, bytes },
        ],
      },
    ],
    tools: NO_TOOLS,
    maxTokens: MOST_TOKENS,
    signal,
    silenceMs,
    onText: () => undefined,
    onReasoning: () => undefined,
  });
  const description = text.trim().slice(0, LONGEST);
  return description === '' ? null : description;
}
