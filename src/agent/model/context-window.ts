/** How many tokens a model can read, by the beginning of its name. The longest beginning that fits decides. */
const WINDOWS: Readonly<Record<string, number>> = {
  'claude-': 200_000,
  'gpt-4o': 128_000,
  'gpt-4.1': 1_000_000,
  'gpt-5': 272_000,
  o1: 200_000,
  o3: 200_000,
  o4: 200_000,
  'gemini-': 1_000_000,
  'mistral-': 128_000,
  'llama-3': 128_000,
  llama3: 128_000,
  qwen: 32_000,
  deepseek: 64_000,
  gemma: 8_000,
};

const USUAL_WINDOW = 128_000;

/** The configured window, else a known one, else the usual one. Vendor prefixes such as `openai/` do not count. */
export function contextWindow(model: string, configured: number | null): number {
  if (configured !== null) return configured;
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  const fits = Object.keys(WINDOWS).filter((start) => name.startsWith(start));
  const best = fits.sort((a, b) => b.length - a.length)[0];
  return best === undefined ? USUAL_WINDOW : (WINDOWS[best] ?? USUAL_WINDOW);
}

/** A token is about four characters of prose; close enough to decide when to make room. */
export function estimateTokens(characters: number): number {
  return Math.ceil(characters / 4);
}
