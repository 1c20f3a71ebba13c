import type { Picture } from '../runner.ts';
import type { ModelServer } from './model-server.ts';

const QUESTION = 'Describe this picture in one short sentence, as for somebody who cannot see it. Only the sentence.';
const MOST_TOKENS = 200;
const LONGEST = 300;

/** Asks the model what it sees; null when it does not say. Throws what the server throws at models that cannot see. */
export async function describePicture(
  server: ModelServer,
  { bytes, mime }: Picture,
  signal: AbortSignal,
): Promise<string | null> {
  const { generateText } = await import('ai');
  const model = await server.open(await server.defaultModel());
  const { text } = await generateText({
    model,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: QUESTION },
          { type: 'file', data: bytes, mediaType: mime },
        ],
      },
    ],
    maxOutputTokens: MOST_TOKENS,
    maxRetries: 0,
    abortSignal: signal,
  });
  const description = text.trim().slice(0, LONGEST);
  return description === '' ? null : description;
}
