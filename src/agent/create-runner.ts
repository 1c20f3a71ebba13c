import type { Config, ModelConfig } from '../config/config.ts';
import { AiRunner, type AiRunnerParts } from './ai-runner.ts';
import { type ModelProvider, openModelServer } from './model/model-server.ts';
import { wait } from './model/retry.ts';
import { OfflineRunner } from './offline-runner.ts';
import type { AgentRunner } from './runner.ts';
import type { Log, ToolPorts } from './tools/ports.ts';

export type RunnerConfig = Pick<Config, 'model' | 'agent' | 'mcp'>;

/** Time, for tests that have none to lose. */
export type RunnerTiming = Partial<Pick<AiRunnerParts, 'wait' | 'silenceMs' | 'now'>>;

/** A turn that stands still ends as such: what waits for the model in it gives up later than the turn itself. */
const AFTER_TURN_MS = 1000;
/** A model that is silent for longer has lost us; a slow one says something now and then. */
const LONGEST_SILENCE_MS = 300_000;

const QUIET: Log = { warn: () => undefined };

/** The runner that the configuration asks for. */
export function createRunner(
  config: RunnerConfig,
  ports: ToolPorts,
  log: Log = QUIET,
  timing: RunnerTiming = {},
): AgentRunner {
  const provider = providerOf(config.model);
  if (provider === 'offline') return new OfflineRunner();
  const { model, agent, mcp } = config;
  return new AiRunner({
    model,
    agent,
    log,
    server: openModelServer(model, provider),
    openToolBox: async () => new (await import('./tools/tool-box.ts')).ToolBox({ agent, mcp, ports, log }),
    wait: timing.wait ?? wait,
    silenceMs: timing.silenceMs ?? Math.min(agent.turnTimeoutMs + AFTER_TURN_MS, LONGEST_SILENCE_MS),
    now: timing.now ?? Date.now,
  });
}

/** What `auto` means: an address is a server of the OpenAI kind, a key tells whose it is, nothing is offline. */
function providerOf({ provider, baseUrl, apiKey }: ModelConfig): ModelProvider | 'offline' {
  if (provider !== 'auto') return provider;
  if (baseUrl !== null) return 'openai-compatible';
  if (apiKey === null || apiKey === '') return 'offline';
  return apiKey.startsWith('sk-ant-') ? 'anthropic' : 'openai';
}
