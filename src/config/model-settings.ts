import { section, setting } from '../settings/declaration.ts';
import { oneOf, optional, price, secret, text, webAddress, whole } from '../settings/kinds.ts';

const provider = oneOf('auto', 'openai', 'anthropic', 'openai-compatible', 'offline');

type Provider = ReturnType<typeof provider.read>;
type Variable = (name: string) => string | null;

export const model = section(
  {
    /** Never `auto` once it is loaded: then it is known which. */
    provider: setting(
      provider,
      'auto',
      '`openai`, `anthropic`, `openai-compatible`, `offline`, or `auto`: openai-compatible when there is a `model.base_url`, else anthropic when `ANTHROPIC_API_KEY` is set, else openai when `OPENAI_API_KEY` is set, else offline',
    ),
    name: setting(optional(text), null, "the model; null takes the provider's usual one"),
    base_url: setting(
      optional(webAddress),
      null,
      "the address of an OpenAI-compatible server, or another address of the provider's",
    ),
    api_key: setting(
      secret(optional(text)),
      null,
      'null takes `ANTHROPIC_API_KEY` or `OPENAI_API_KEY` for the provider it belongs to. An openai-compatible server gets only what stands here',
    ),
    context_window: setting(
      optional(whole(1)),
      null,
      'how many tokens the model can read; null for what is known of it',
    ),
    price_in: setting(
      optional(price),
      null,
      'price of a million tokens read; with both prices, `/usage` shows what a session cost',
    ),
    price_out: setting(optional(price), null, 'price of a million tokens written'),
  },
  {
    rule: ({ provider, baseUrl }) =>
      provider === 'openai-compatible' && baseUrl === null
        ? { key: 'provider', fault: 'nothing without model.base_url, the address of the server' }
        : null,
    complete: (given, { variable }) => {
      const provider = given.provider === 'auto' ? detectProvider(given.baseUrl, variable) : given.provider;
      return { ...given, provider, apiKey: given.apiKey ?? keyOf(provider, variable) };
    },
  },
);

/** Which model answers follows from what is there. */
function detectProvider(baseUrl: string | null, variable: Variable): Provider {
  if (baseUrl !== null) return 'openai-compatible';
  if (variable('ANTHROPIC_API_KEY') !== null) return 'anthropic';
  return variable('OPENAI_API_KEY') === null ? 'offline' : 'openai';
}

/** A key goes only to its own provider: an openai-compatible server gets none but the configured one. */
function keyOf(provider: Provider, variable: Variable): string | null {
  if (provider === 'anthropic') return variable('ANTHROPIC_API_KEY');
  return provider === 'openai' ? variable('OPENAI_API_KEY') : null;
}
