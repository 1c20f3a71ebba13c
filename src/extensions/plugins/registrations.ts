import { MoiraiError } from '../../errors/moirai-error.ts';
import type {
  GateFunction,
  GateName,
  GateOptions,
  PluginCommandDefinition,
  PluginContext,
  PluginLog,
  PluginPlatformDefinition,
  PluginToolDefinition,
} from './api.ts';
import type { PluginMemoryProvider } from './memory-types.ts';
import { assertGate, LONGEST_GATE_MS, type Observed, observedUnder } from './names.ts';
import type { DeclaredGates, GateOffer, MemoryOffer, Offer, PluginTask, ToolOffer } from './protocol.ts';

export interface Observer extends Observed {
  readonly name: string;
  readonly hear: (event: unknown, signal: AbortSignal) => unknown;
}

export interface Gate extends GateOffer {
  readonly answer: (question: unknown, signal: AbortSignal) => unknown;
}

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const USUAL_TEXT = 4000;
const SHORTEST_TEXT = 100;

/** What a plugin registers in its `setup`. Lives in the plugin's process. */
export class Registrations {
  readonly observers: Observer[] = [];
  readonly gates: Gate[] = [];
  readonly tools = new Map<string, PluginToolDefinition>();
  readonly commands = new Map<string, PluginCommandDefinition>();
  readonly memoryProviders = new Map<string, PluginMemoryProvider>();
  readonly platforms = new Map<string, PluginPlatformDefinition>();
  readonly leavers: (() => unknown)[] = [];
  #declared: DeclaredGates = {};
  #sealed = false;

  /** From now on nothing more is taken: the gateway has been told what there is. */
  seal(): Offer {
    this.#sealed = true;
    for (const name of Object.keys(this.#declared)) {
      if (this.gates.some(({ gate }) => gate === name)) continue;
      throw refused(`plugin.yaml declares the gate "${name}", and setup registers none: ctx.gate("${name}", ...)`);
    }
    return {
      events: [...new Set(this.observers.flatMap(({ patterns }) => patterns))],
      hearsTools: this.observers.some(({ name }) => name === 'post_tool_call'),
      gates: this.gates.map(({ gate, timeoutMs, onFailure }) => ({ gate, timeoutMs, onFailure })),
      tools: [...this.tools.values()].map(toolOffer),
      commands: [...this.commands.values()].map(({ name, takes, summary }) => ({
        ...{ name, summary },
        ...(takes === undefined ? {} : { takes }),
      })),
      memoryProviders: [...this.memoryProviders.values()].map(memoryOffer),
      platforms: [...this.platforms.values()].map(({ name, maxText = USUAL_TEXT, markdown = false }) => ({
        ...{ name, maxText, markdown },
      })),
    };
  }

  contextFor({ name, folder, home, config, gates }: PluginTask, log: PluginLog): PluginContext {
    this.#declared = gates;
    return {
      ...{ name, folder, home, config, log },
      on: (event, hear) => this.#on(event, hear as Observer['hear']),
      gate: (gate, answer, options = {}) => this.#gate(gate, answer, options),
      tool: (tool) => this.#add('tool', this.tools, checkedTool(tool as PluginToolDefinition)),
      command: (command) => this.#add('command', this.commands, checkedCommand(command)),
      memoryProvider: (provider) => this.#add('memory provider', this.memoryProviders, checked(provider, 'provider')),
      platform: (platform) => this.#add('platform', this.platforms, checkedPlatform(platform)),
      onUnload: (leave) => {
        this.#assertOpen();
        this.leavers.push(aFunction(leave, 'onUnload'));
      },
    };
  }

  #on(name: string, hear: Observer['hear']): void {
    this.#assertOpen();
    this.observers.push({ name, hear: aFunction(hear, `on("${name}")`), ...observedUnder(String(name)) });
  }

  #gate<Name extends GateName>(name: Name, answer: GateFunction<Name>, options: GateOptions): void {
    this.#assertOpen();
    const { timeout = null, onFailure = 'open' } = options;
    assertGate(String(name));
    if (timeout !== null && !(timeout > 0 && timeout <= LONGEST_GATE_MS)) {
      throw refused(`the timeout of gate("${name}") is from 1 to ${LONGEST_GATE_MS} milliseconds`);
    }
    if (onFailure !== 'open' && onFailure !== 'closed') throw refused(`onFailure of gate("${name}") is open or closed`);
    if (name === 'pre_llm_call' && onFailure === 'closed') {
      throw refused('pre_llm_call only adds context: it keeps nothing from happening, and cannot be closed');
    }
    aFunction(answer, `gate("${name}")`);
    const declared = this.#declared[name];
    this.gates.push({
      gate: name,
      timeoutMs: timeout ?? declared?.timeoutMs ?? null,
      onFailure: declared?.onFailure === 'closed' ? 'closed' : onFailure,
      answer: answer as Gate['answer'],
    });
  }

  #add<T extends { readonly name: string }>(what: string, all: Map<string, T>, one: T): void {
    this.#assertOpen();
    if (all.has(one.name)) throw refused(`it offers the ${what} "${one.name}" twice`);
    all.set(one.name, one);
  }

  #assertOpen(): void {
    if (this.#sealed) throw refused('everything is registered in setup(ctx), before it is over');
  }
}

function toolOffer(tool: PluginToolDefinition): ToolOffer {
  const { name, description, inputSchema, together = false, dangerous = null } = tool;
  const schema = isSchemaMaker(inputSchema) ? inputSchema.toJSONSchema() : inputSchema;
  const { $schema: _, ...rest } = JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
  return { name, description, parallelSafe: together, inputSchema: rest, danger: dangerOf(name, dangerous) };
}

function isSchemaMaker(schema: PluginToolDefinition['inputSchema']): schema is { toJSONSchema(): unknown } {
  return typeof (schema as { toJSONSchema?: unknown }).toJSONSchema === 'function';
}

function dangerOf(name: string, dangerous: PluginToolDefinition['dangerous'] | null): ToolOffer['danger'] {
  if (typeof dangerous === 'function') return 'depends';
  const text = dangerText(name, dangerous);
  return text === null ? null : { text };
}

/** What a person is asked to allow; null when nobody has to be asked. */
export function dangerText(name: string, dangerous: unknown): string | null {
  if (dangerous === true) return name;
  return typeof dangerous === 'string' && dangerous !== '' ? dangerous : null;
}

export const MEMORY_METHODS = [
  ...['initialize', 'systemPromptBlock', 'prefetch', 'onTurnStart', 'syncTurn', 'onPreCompress'],
  ...['onSessionEnd', 'onSessionSwitch', 'remember', 'shutdown'],
] as const;

function memoryOffer(provider: PluginMemoryProvider): MemoryOffer {
  const { name, kinds, tools = [] } = provider;
  return {
    ...{ name, ...(kinds === undefined ? {} : { kinds }) },
    methods: MEMORY_METHODS.filter((method) => typeof provider[method] === 'function'),
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  };
}

function checkedTool(tool: PluginToolDefinition): PluginToolDefinition {
  if (!TOOL_NAME.test(tool.name))
    throw refused(`the tool "${tool.name}": a name is letters, digits, _ and -, at most 64`);
  if (typeof tool.description !== 'string') throw refused(`the tool "${tool.name}" has no description`);
  if (typeof tool.inputSchema !== 'object' || tool.inputSchema === null) {
    throw refused(`the tool "${tool.name}" has no inputSchema`);
  }
  aFunction(tool.run, `the run of tool "${tool.name}"`);
  return tool;
}

function checkedCommand(command: PluginCommandDefinition): PluginCommandDefinition {
  checked(command, 'command');
  if (typeof command.summary !== 'string') throw refused(`the command "${command.name}" has no summary`);
  aFunction(command.run, `the run of command "${command.name}"`);
  return command;
}

function checkedPlatform(platform: PluginPlatformDefinition): PluginPlatformDefinition {
  checked(platform, 'platform');
  const { maxText = USUAL_TEXT } = platform;
  if (!Number.isInteger(maxText) || maxText < SHORTEST_TEXT) {
    throw refused(`maxText of the platform "${platform.name}" is a number, and at least ${SHORTEST_TEXT}`);
  }
  aFunction(platform.send, `the send of platform "${platform.name}"`);
  return platform;
}

function checked<T extends { readonly name: string }>(one: T, what: string): T {
  if (NAME.test(one.name)) return one;
  throw refused(`the ${what} "${one.name}": a name is small letters, digits, _ and -, at most 32`);
}

function aFunction<T>(value: T, what: string): T {
  if (typeof value !== 'function') throw refused(`${what} needs a function`);
  return value;
}

function refused(fault: string): MoiraiError {
  return new MoiraiError('plugin_invalid', fault);
}
