import type { ModelConfig } from '../../config/config.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ModelApi } from './model-api.ts';
import { modelError, placeOf } from './model-error.ts';

export type ModelProvider = Exclude<ModelConfig['provider'], 'auto' | 'offline'>;

const BASE_URLS: Readonly<Record<ModelProvider, string>> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  'openai-compatible': 'http://127.0.0.1:11434/v1',
};

const DEFAULT_MODELS: Readonly<Partial<Record<ModelProvider, string>>> = {
  openai: 'gpt-5-mini',
  anthropic: 'claude-sonnet-4-5',
};

const LIST_TIMEOUT_MS = 5_000;

/** One server of models: how to reach it, what it is called, what it offers. */
export type ModelServer = ReturnType<typeof openModelServer>;

export function openModelServer(config: ModelConfig, provider: ModelProvider) {
  const baseUrl = (config.baseUrl ?? BASE_URLS[provider]).replace(/(?<!\/)\/+$/, '');
  const list = () => listModels(config, provider, baseUrl);
  const defaultName = config.name ?? DEFAULT_MODELS[provider] ?? null;
  let api: Promise<ModelApi> | null = null;
  let first: string | null = null;
  return {
    provider,
    baseUrl,
    /** The model's name, if it is known without asking the server. */
    defaultName,
    list,
    /** How it is asked; loaded on first use: a gateway that only waits does not pay for it. */
    api(): Promise<ModelApi> {
      api ??= loadApi(provider, baseUrl, config.apiKey ?? '');
      return api;
    },
    /** The model that answers unless a conversation asks for another. */
    async defaultModel(): Promise<string> {
      if (defaultName !== null) return defaultName;
      first ??= (await list())[0] ?? null;
      if (first === null) throw new MoiraiError('model_unknown', `no model is named and ${baseUrl} offers none`);
      return first;
    },
  };
}

/** Which model answers and where it is, for people. */
export function describeServer({ defaultName, baseUrl, provider }: ModelServer): string {
  return `${defaultName ?? 'the first model'} at ${placeOf(baseUrl)} (${provider})`;
}

async function loadApi(provider: ModelProvider, baseUrl: string, apiKey: string): Promise<ModelApi> {
  if (provider === 'anthropic') return (await import('./anthropic-api.ts')).anthropicApi(baseUrl, apiKey);
  return (await import('./openai-api.ts')).openAiApi(baseUrl, apiKey);
}

async function listModels(config: ModelConfig, provider: ModelProvider, baseUrl: string): Promise<string[]> {
  try {
    const response = await fetch(`${baseUrl}/models`, {
      headers: headersOf(provider, config.apiKey),
      signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
    });
    if (!response.ok) throw { statusCode: response.status, responseBody: await response.text() };
    return idsOf(await response.json());
  } catch (error) {
    throw modelError(error, baseUrl, config.apiKey);
  }
}

function headersOf(provider: ModelProvider, apiKey: string | null): Record<string, string> {
  if (provider === 'anthropic')
    return { 'anthropic-version': '2023-06-01', ...(apiKey ? { 'x-api-key': apiKey } : {}) };
  return apiKey ? { authorization: `Bearer ${apiKey}` } : {};
}

function idsOf(body: unknown): string[] {
  const data = (body as { data?: unknown } | null)?.data;
  if (!Array.isArray(data)) return [];
  return data.map((entry: { id?: unknown } | null) => entry?.id).filter((id) => typeof id === 'string');
}
