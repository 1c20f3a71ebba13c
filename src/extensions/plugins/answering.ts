import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Inbox, InboxMessage, PluginToolContext } from './api.ts';
import type { PluginMemoryProvider } from './memory-types.ts';
import type { Call, MemoryCall, PlatformCall } from './protocol.ts';
import { dangerText, type Observer, type Registrations } from './registrations.ts';

/** Events of which some observers still have to be called again. */
const MOST_UNFINISHED = 1000;

/** Does what the gateway calls for, with what the plugin registered. Lives in the plugin's process. */
export class Answering {
  readonly #registered: Registrations;
  readonly #receive: (platform: string, message: InboxMessage) => Promise<void>;
  /** By event: who has taken it, while somebody else has not. */
  readonly #taken = new Map<string, Set<Observer>>();

  /** Memory providers that have something to close. */
  readonly #initialized = new Set<PluginMemoryProvider>();

  constructor(registered: Registrations, receive: (platform: string, message: InboxMessage) => Promise<void>) {
    this.#registered = registered;
    this.#receive = receive;
  }

  async answer(call: Call, signal: AbortSignal): Promise<unknown> {
    const { tools, commands, gates } = this.#registered;
    switch (call.what) {
      case 'event':
        return this.#tell(call.event, signal);
      case 'tool_done':
        return this.#toolDone(call.done, signal);
      case 'gate':
        return gates.filter(({ gate }) => gate === call.gate)[call.index]?.answer(call.question, signal);
      case 'tool':
        return textOf(await here(tools, call.name).run(call.args, { ...call.context, signal } as PluginToolContext));
      case 'danger':
        return this.#dangerOf(call.name, call.args);
      case 'command':
        return textOf(await here(commands, call.name).run(call.call, signal));
      case 'memory':
      case 'memory_tool':
        return this.#remember(call, signal);
      case 'platform_start':
      case 'platform_stop':
      case 'send':
        return this.#platform(call, signal);
      case 'unload':
        return this.#leave();
    }
  }

  /** All observers at once, so that none waits for another; next time only those that have not taken it. */
  async #tell(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const taken = this.#taken.get(event.id) ?? new Set();
    this.#keep(event.id, taken);
    const left = this.#registered.observers.filter((observer) => !taken.has(observer));
    const outcomes = await Promise.allSettled(
      left.map(async (observer) => {
        const heard = observer.view(event);
        if (heard !== null) await observer.hear(heard, signal);
        taken.add(observer);
      }),
    );
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    this.#taken.delete(event.id);
  }

  #keep(id: string, taken: Set<Observer>): void {
    this.#taken.set(id, taken);
    const [oldest] = this.#taken.keys();
    if (this.#taken.size > MOST_UNFINISHED && oldest !== undefined) this.#taken.delete(oldest);
  }

  async #toolDone(done: unknown, signal: AbortSignal): Promise<void> {
    const observers = this.#registered.observers.filter(({ name }) => name === 'post_tool_call');
    await Promise.all(observers.map(async ({ hear }) => hear(done, signal)));
  }

  async #dangerOf(name: string, args: unknown): Promise<string | null> {
    const { dangerous } = here(this.#registered.tools, name);
    return dangerText(name, typeof dangerous === 'function' ? await dangerous(args) : dangerous);
  }

  async #remember(call: MemoryCall, signal: AbortSignal): Promise<unknown> {
    const provider = here(this.#registered.memoryProviders, call.provider);
    if (call.what === 'memory_tool') {
      const tool = provider.tools?.find(({ name }) => name === call.tool);
      if (tool === undefined) throw gone(call.tool);
      return textOf(await tool.run(call.args, { ...call.context, signal } as Parameters<typeof tool.run>[1]));
    }
    // As it is now: what an older version of the plugin had, this one may lack.
    const method = provider[call.method as 'prefetch'] as ((...args: unknown[]) => unknown) | undefined;
    if (call.method === 'shutdown') this.#initialized.delete(provider);
    const value = await method?.apply(provider, [...call.args, signal]);
    if (call.method === 'initialize') this.#initialized.add(provider);
    return value;
  }

  async #platform(call: PlatformCall, signal: AbortSignal): Promise<unknown> {
    const platform = here(this.#registered.platforms, call.name);
    if (call.what === 'send') {
      return platform.send(call.target, call.text, signal);
    }
    if (call.what === 'platform_stop') {
      await platform.stop?.();
    } else {
      const inbox: Inbox = { receive: (message) => this.#receive(call.name, message) };
      await platform.start?.(inbox, signal);
    }
    return null;
  }

  /** Every one gets its chance, whatever the one before it did. */
  async #leave(): Promise<void> {
    const memories = [...this.#initialized].map((provider) => () => provider.shutdown?.());
    const failures: unknown[] = [];
    for (const leave of [...memories, ...this.#registered.leavers]) {
      try {
        await leave();
      } catch (thrown) {
        failures.push(thrown);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

function here<T>(all: ReadonlyMap<string, T>, name: string): T {
  const found = all.get(name);
  if (found === undefined) throw gone(name);
  return found;
}

function gone(name: string): MoiraiError {
  return new MoiraiError('plugin_unavailable', `the plugin does not offer ${name} any more`);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value, null, 2);
}
