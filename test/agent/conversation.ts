import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRunner, type RunnerConfig, type RunnerTiming } from '../../src/agent/create-runner.ts';
import type {
  AgentRunner,
  Approval,
  ApprovalRequest,
  StepEvent,
  TurnContext,
  TurnReport,
} from '../../src/agent/runner.ts';
import type { ToolPorts } from '../../src/agent/tools/ports.ts';
import { userRow } from '../../src/agent/transcript.ts';
import type { AgentConfig, ModelConfig } from '../../src/config/config.ts';
import type { Message, MessageToAppend } from '../../src/store/transactions/messages.ts';

export interface SayOptions {
  readonly note?: string | null;
  readonly signal?: AbortSignal;
  readonly model?: string;
  readonly turnId?: string;
}

/** A session as a gateway would keep it, in memory, with a record of everything the agent asked and told. */
export class Conversation {
  readonly sessionId: string;
  transcript: Message[] = [];
  readonly shown: StepEvent[] = [];
  readonly asked: ApprovalRequest[] = [];
  /** What happened, in order: `keep user,assistant`, `approve`, and whatever a test adds. */
  readonly order: string[] = [];
  steering: string[] = [];
  approval: Approval = { allowed: false, reason: 'nobody answered in time' };
  onKeep: (rows: readonly MessageToAppend[]) => Promise<void> | void = () => undefined;
  onShow: (progress: StepEvent) => void = () => undefined;
  readonly #runner: AgentRunner;
  #turns = 0;

  constructor(runner: AgentRunner, sessionId = 's1') {
    this.#runner = runner;
    this.sessionId = sessionId;
  }

  async say(text: string | null, options: SayOptions = {}): Promise<TurnReport> {
    const report = await this.#runner.run({ ...this.#task(options), text, note: options.note ?? null });
    this.append(report.messages);
    return report;
  }

  compress(options: SayOptions = {}) {
    return this.#runner.compress(this.#task(options));
  }

  append(rows: readonly MessageToAppend[]): void {
    const last = this.transcript.findLast(({ sessionId }) => sessionId === this.sessionId)?.position ?? 0;
    this.transcript = this.transcript.concat(
      // As the store gives them back: what JSON cannot say is gone.
      rows.map((row, i) => ({
        ...{ sessionId: this.sessionId, position: last + i + 1, role: row.role, text: row.text, at: 0 },
        ...{ turnId: row.turnId, data: row.data ? JSON.parse(JSON.stringify(row.data)) : null },
      })),
    );
  }

  get roles(): string[] {
    return this.transcript.map(({ role }) => role);
  }

  get shownText(): string {
    return this.shown.map((progress) => (progress.type === 'text' ? progress.text : '')).join('');
  }

  #task({ signal, model, turnId }: SayOptions) {
    this.#turns += 1;
    return {
      ...{ sessionId: this.sessionId, turnId: turnId ?? `t${this.#turns}`, platform: 'api', userId: 'u1' },
      ...{ transcript: this.transcript, model: model ?? null, context: this.#context() },
      signal: signal ?? new AbortController().signal,
    };
  }

  #context(): TurnContext {
    return {
      keep: async (rows) => {
        this.order.push(`keep ${rows.map(({ role }) => role).join(',')}`);
        await this.onKeep(rows);
        this.append(rows);
      },
      takeSteering: async () => {
        const rows = this.steering.splice(0).map((text) => userRow(null, text));
        this.append(rows);
        return rows;
      },
      channel: {
        publish: (event) => {
          this.shown.push(event);
          this.onShow(event);
        },
      },
      approve: async (request) => {
        this.order.push('approve');
        this.asked.push(request);
        return this.approval;
      },
    };
  }
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'moirai-agent-'));
}

export function agentConfig(changes: Partial<AgentConfig> = {}): AgentConfig {
  return {
    ...{ maxSteps: 10, turnTimeoutMs: 60_000, busyMode: 'queue', systemPrompt: null, allowCommands: [] },
    ...{ sandbox: 'off', sandboxNetwork: false },
    cache: { maxSize: 16, idleTtlMs: 60_000, maxBytes: 10_000_000 },
    workspace: { folder: temporaryFolder(), perConversation: false },
    maxReceived: 500_000_000,
    approvalTimeoutMs: 1_000,
    ...changes,
  };
}

export function modelConfig(changes: Partial<ModelConfig> = {}): ModelConfig {
  return {
    provider: 'openai-compatible',
    name: 'fake-model',
    baseUrl: null,
    apiKey: 'sk-secret',
    contextWindow: null,
    priceIn: null,
    priceOut: null,
    ...changes,
  };
}

interface Setup {
  readonly model?: Partial<ModelConfig>;
  readonly agent?: Partial<AgentConfig>;
  readonly mcp?: RunnerConfig['mcp']['servers'];
  readonly ports?: ToolPorts;
  readonly timing?: RunnerTiming;
}

/** A runner whose waits take no time. */
export function runnerAt(url: string, { model, agent, mcp = {}, ports = {}, timing }: Setup = {}) {
  const waits: number[] = [];
  const logged: string[] = [];
  const wait = async (ms: number): Promise<void> => void waits.push(ms);
  const runner = createRunner(
    { model: modelConfig({ baseUrl: url, ...model }), agent: agentConfig(agent), mcp: { servers: mcp } },
    ports,
    { warn: (message, fields) => void logged.push(fields?.server ? `${message}: ${fields.server}` : message) },
    { wait, ...timing },
  );
  return { runner, waits, logged };
}
