import { MoiraiError } from '../../errors/moirai-error.ts';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { Handler, HandlerDeps } from './handler.ts';
import { exitText, HandlerProcess } from './handler-process.ts';

/** Waits for a line on descriptor 3 and becomes the handler, with the same process id; the end of 3 ends it. */
const GATE = 'read -r _ <&3 || exit 125; exec "$@" 3<&-';
const LAST_LINE = 300;

/** Starts an executable for every event: the event on its standard input, exit 0 for done. */
export class ExecutableHandler implements Handler {
  readonly #command: readonly string[];
  readonly #deps: HandlerDeps;
  readonly #running = new Set<HandlerProcess>();

  constructor(command: readonly string[], deps: HandlerDeps) {
    this.#command = command;
    this.#deps = deps;
  }

  get processes(): number {
    return this.#running.size;
  }

  async run(event: MoiraiEvent, signal: AbortSignal): Promise<void> {
    let complaint = '';
    const sink: HandlerDeps['sink'] = (stream, line) => {
      if (stream === 'stderr' && line.trim() !== '') complaint = `: ${line.trim().slice(0, LAST_LINE)}`;
      this.#deps.sink(stream, line);
    };
    const process = await HandlerProcess.start(
      ['/bin/sh', '-c', GATE, 'moirai-hook', ...this.#command],
      { ...this.#deps, sink },
      { stdin: 'pipe', env: { MOIRAI_EVENT: event.type } },
    );
    this.#running.add(process);
    try {
      await this.#finish(process, event, signal, () => complaint);
    } finally {
      this.#running.delete(process);
    }
  }

  async retire(): Promise<void> {
    await Promise.all([...this.#running].map(({ gone }) => gone));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map((process) => process.kill()));
  }

  async #finish(process: HandlerProcess, event: MoiraiEvent, signal: AbortSignal, complaint: () => string) {
    const { name, timeoutMs, timers } = this.#deps;
    let late = false;
    const kill = (): void => void process.kill();
    signal.addEventListener('abort', kill, { once: true });
    if (signal.aborted) kill();
    const cancel = timers.after(timeoutMs, () => {
      late = true;
      kill();
    });
    process.stdin?.end(`${JSON.stringify(event)}\n`);
    process.channel.end('go\n');
    const exit = await process.gone;
    cancel();
    signal.removeEventListener('abort', kill);
    if (late) {
      throw new MoiraiError('subscriber_timeout', `${name} did not finish ${event.id} in ${timeoutMs} ms; killed`);
    }
    if (exit.code !== 0) throw new MoiraiError('subscriber_failed', `${name} ${exitText(exit)}${complaint()}`);
  }
}
