import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { HostedProcess } from '../host/extension-host.ts';
import type { OutputStream } from '../host/protocol.ts';
import { type Handler, type HookDeps, hookProcess, timeoutOf } from './handler.ts';
import type { UsableHook } from './hook-kind.ts';

const LAST_LINE = 300;

/** Starts an executable for every event: the event on its standard input, exit 0 for done. */
export class ExecutableHandler implements Handler {
  readonly #hook: UsableHook;
  readonly #deps: HookDeps;
  readonly #running = new Set<HostedProcess>();

  constructor(hook: UsableHook, deps: HookDeps) {
    this.#hook = hook;
    this.#deps = deps;
  }

  get processes(): number {
    return this.#running.size;
  }

  async run(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    const { name } = this.#hook;
    const { host, environment, sink } = this.#deps;
    const timeoutMs = timeoutOf(this.#hook, this.#deps);
    let complaint = '';
    const spec = {
      ...hookProcess(this.#hook, this.#deps),
      stdin: `${JSON.stringify(event)}\n`,
      environment: { ...environment, MOIRAI_EVENT: event.type },
    };
    const process = host.start(spec, undefined, (stream: OutputStream, line) => {
      if (stream === 'stderr' && line.trim() !== '') complaint = `: ${line.trim().slice(0, LAST_LINE)}`;
      sink?.(stream, line);
    });
    this.#running.add(process);
    const late = `did not finish ${event.id} in ${timeoutMs} ms and was killed`;
    const giveUp = (reason: string): void => process.kill(reason === 'late' ? late : 'was called off');
    const { code, why, lost } = await host.wait(process.gone, { timeoutMs, signal, giveUp });
    this.#running.delete(process);
    if (why === late) throw new MoiraiError('subscriber_timeout', `${name} ${why}`);
    if (code !== 0)
      throw new MoiraiError(lost ? 'subscriber_unavailable' : 'subscriber_failed', `${name} ${why}${complaint}`);
  }

  async retire(): Promise<void> {
    await Promise.all([...this.#running].map(({ gone }) => gone));
  }

  async close(): Promise<void> {
    for (const process of this.#running) process.kill('was stopped');
    await this.retire();
  }
}
