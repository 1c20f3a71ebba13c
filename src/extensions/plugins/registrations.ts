import { MoiraiError } from '../../errors/moirai-error.ts';
import { callGateway, type Method, notOffered } from '../host/serve.ts';
import type {
  GateFunction,
  GateName,
  GateOptions,
  InboxMessage,
  PluginCommandDefinition,
  PluginContext,
  PluginLog,
  PluginMemoryProvider,
  PluginMemoryTool,
  PluginPlatformDefinition,
  PluginToolContext,
  PluginToolDefinition,
} from './api.ts';
import { EventObservers } from './event-observers.ts';
import { assertGate, LONGEST_GATE_MS, MEMORY_METHODS, methodOf, OFFER_WORDS, type OfferKind } from './names.ts';
import type { GateOffer, MemoryOffer, Offer, PluginTask, ToolOffer } from './offer.ts';

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const USUAL_TEXT = 4000;
const SHORTEST_TEXT = 100;
/** More messages of its platforms than these wait here for their turn, and not in the gateway. */
const MOST_RECEIVING = 64;

type MemoryToolCall = Omit<Parameters<PluginMemoryTool['run']>[1], 'signal'>;
type Offers = { readonly [Kind in OfferKind]: Map<string, () => Offer[Kind][number]> };

/** What a plugin registers in its `setup`, and the methods that call it. Lives in the plugin's process. */
export class Registrations {
  /** What the gateway can call. */
  readonly methods = new Map<string, Method>();
  readonly #observers = new EventObservers();
  readonly #gates: GateOffer[] = [];
  readonly #offers: Offers = {
    tools: new Map(),
    commands: new Map(),
    memoryProviders: new Map(),
    platforms: new Map(),
  };
  readonly #leavers: (() => unknown)[] = [];
  /** Memory providers that have something to close. */
  readonly #initialized = new Set<PluginMemoryProvider>();
  readonly #waiting: (() => void)[] = [];
  #receiving = 0;
  #sealed = false;

  constructor() {
    this.methods.set('event', (event, signal) => this.#observers.tell(event, signal));
    this.methods.set('tool_done', (done, signal) => this.#observers.tellToolDone(done, signal));
    this.methods.set('unload', () => this.#leave());
  }

  /** From now on nothing more is taken: the gateway has been told what there is. */
  seal(declared: readonly GateOffer[]): Offer {
    this.#sealed = true;
    for (const { gate } of declared) {
      if (this.#gates.some((registered) => registered.gate === gate)) continue;
      throw refused(`plugin.yaml declares the gate "${gate}", and setup registers none: ctx.gate("${gate}", ...)`);
    }
    const described = <Kind extends OfferKind>(kind: Kind): Offer[Kind][number][] =>
      [...this.#offers[kind].values()].map((describe) => describe());
    return {
      events: this.#observers.patterns,
      hearsTools: this.#observers.hearTools,
      gates: this.#gates,
      tools: described('tools'),
      commands: described('commands'),
      memoryProviders: described('memoryProviders'),
      platforms: described('platforms'),
    };
  }

  contextFor({ name, folder, home, config, gates }: PluginTask, log: PluginLog): PluginContext {
    return {
      ...{ name, folder, home, config, log },
      on: (event, hear) => {
        this.#assertOpen();
        this.#observers.add(event, aFunction(hear, `on("${event}")`));
      },
      gate: (gate, answer, options = {}) => this.#gate(gate, answer, options, gates),
      tool: (tool) => this.#tool(tool as PluginToolDefinition),
      command: (command) => this.#command(command),
      memoryProvider: (provider) => this.#memoryProvider(provider),
      platform: (platform) => this.#platform(platform),
      onUnload: (leave) => {
        this.#assertOpen();
        this.#leavers.push(aFunction(leave, 'onUnload'));
      },
    };
  }

  #gate<Name extends GateName>(
    name: Name,
    answer: GateFunction<Name>,
    options: GateOptions,
    declaredGates: readonly GateOffer[],
  ): void {
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
    const index = this.#gates.filter(({ gate }) => gate === name).length;
    this.methods.set(methodOf('gates', name, index), aFunction(answer, `gate("${name}")`));
    const declared = declaredGates.find(({ gate }) => gate === name);
    this.#gates.push({
      gate: name,
      timeoutMs: timeout ?? declared?.timeoutMs ?? null,
      onFailure: declared?.onFailure === 'closed' ? 'closed' : onFailure,
    });
  }

  #tool(tool: PluginToolDefinition): void {
    const { name, dangerous } = tool;
    if (!TOOL_NAME.test(name)) throw refused(`the tool "${name}": a name is letters, digits, _ and -, at most 64`);
    if (typeof tool.description !== 'string') throw refused(`the tool "${name}" has no description`);
    if (typeof tool.inputSchema !== 'object' || tool.inputSchema === null) {
      throw refused(`the tool "${name}" has no inputSchema`);
    }
    aFunction(tool.run, `the run of tool "${name}"`);
    this.#add('tools', name, () => toolOffer(tool), {
      run: async (args: unknown, context: Omit<PluginToolContext, 'signal'>, signal: AbortSignal) =>
        textOf(await tool.run(args, { ...context, signal })),
      danger: async (args) => dangerText(name, typeof dangerous === 'function' ? await dangerous(args) : dangerous),
    });
  }

  #command(command: PluginCommandDefinition): void {
    const name = checkedName(command, 'command');
    const { takes, summary } = command;
    if (typeof summary !== 'string') throw refused(`the command "${name}" has no summary`);
    aFunction(command.run, `the run of command "${name}"`);
    this.#add('commands', name, () => ({ name, summary, ...(takes === undefined ? {} : { takes: String(takes) }) }), {
      run: async (call, signal) => textOf(await command.run(call, signal)),
    });
  }

  #memoryProvider(provider: PluginMemoryProvider): void {
    const name = checkedName(provider, 'provider');
    const method =
      (method: (typeof MEMORY_METHODS)[number]) =>
      async (...args: never[]) => {
        if (method === 'shutdown') this.#initialized.delete(provider);
        const value = await (provider[method] as Method | undefined)?.apply(provider, args);
        if (method === 'initialize') this.#initialized.add(provider);
        return value;
      };
    this.#add('memoryProviders', name, () => memoryOffer(provider), {
      ...Object.fromEntries(MEMORY_METHODS.map((each) => [each, method(each)])),
      tool: async (name: string, args: unknown, context: MemoryToolCall, signal: AbortSignal) => {
        const tool = provider.tools?.find((each) => each.name === name);
        if (tool === undefined) throw notOffered(name);
        return textOf(await tool.run(args, { ...context, signal }));
      },
    });
  }

  #platform(platform: PluginPlatformDefinition): void {
    const name = checkedName(platform, 'platform');
    const { maxText = USUAL_TEXT, markdown = false } = platform;
    if (!Number.isInteger(maxText) || maxText < SHORTEST_TEXT) {
      throw refused(`maxText of the platform "${name}" is a number, and at least ${SHORTEST_TEXT}`);
    }
    aFunction(platform.send, `the send of platform "${name}"`);
    const inbox = { receive: (message: InboxMessage) => this.#receive(name, message) };
    this.#add('platforms', name, () => ({ name, maxText, markdown: Boolean(markdown) }), {
      start: async (signal) => void (await platform.start?.(inbox, signal)),
      stop: async () => void (await platform.stop?.()),
      send: (target, text, signal) => platform.send(target, text, signal),
    });
  }

  #add<Kind extends OfferKind>(
    kind: Kind,
    name: string,
    describe: () => Offer[Kind][number],
    functions: Readonly<Record<string, Method>>,
  ): void {
    this.#assertOpen();
    const offers: Map<string, () => Offer[Kind][number]> = this.#offers[kind];
    if (offers.has(name)) throw refused(`it offers the ${OFFER_WORDS[kind]} "${name}" twice`);
    offers.set(name, describe);
    for (const [func, run] of Object.entries(functions)) this.methods.set(methodOf(kind, name, func), run);
  }

  #assertOpen(): void {
    if (this.#sealed) throw refused('everything is registered in setup(ctx), before it is over');
  }

  /** Resolves when the gateway has made the message durable. */
  async #receive(platform: string, message: InboxMessage): Promise<void> {
    while (this.#receiving >= MOST_RECEIVING) await new Promise<void>((next) => this.#waiting.push(next));
    this.#receiving++;
    try {
      await callGateway('receive', platform, message);
    } finally {
      this.#receiving--;
      this.#waiting.shift()?.();
    }
  }

  /** Every one gets its chance, whatever the one before it did. */
  async #leave(): Promise<void> {
    const memories = [...this.#initialized].map((provider) => () => provider.shutdown?.());
    const failures: unknown[] = [];
    for (const leave of [...memories, ...this.#leavers]) {
      try {
        await leave();
      } catch (thrown) {
        failures.push(thrown);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

function toolOffer(tool: PluginToolDefinition): ToolOffer {
  const { name, description, inputSchema, together = false, dangerous } = tool;
  const schema = typeof inputSchema.toJSONSchema === 'function' ? inputSchema.toJSONSchema() : inputSchema;
  const { $schema: _, ...rest } = JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
  const text = dangerText(name, dangerous);
  const danger = typeof dangerous === 'function' ? 'depends' : text === null ? null : { text };
  return { name, description, parallelSafe: Boolean(together), inputSchema: rest, danger };
}

/** What a person is asked to allow; null when no person has to be asked. */
function dangerText(name: string, dangerous: unknown): string | null {
  if (dangerous === true) return name;
  return typeof dangerous === 'string' && dangerous !== '' ? dangerous : null;
}

function memoryOffer(provider: PluginMemoryProvider): MemoryOffer {
  const { name, kinds, tools = [] } = provider;
  return {
    ...{ name, ...(kinds === undefined ? {} : { kinds: [...kinds] }) },
    methods: MEMORY_METHODS.filter((method) => typeof provider[method] === 'function'),
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  };
}

function checkedName({ name }: { readonly name: string }, what: string): string {
  if (NAME.test(name)) return name;
  throw refused(`the ${what} "${name}": a name is small letters, digits, _ and -, at most 32`);
}

function aFunction<T>(value: T, what: string): T {
  if (typeof value !== 'function') throw refused(`${what} needs a function`);
  return value;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value, null, 2);
}

function refused(fault: string): MoiraiError {
  return new MoiraiError('plugin_invalid', fault);
}
