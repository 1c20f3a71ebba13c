import type { ToolEvent } from '../agent/runner.ts';
import type { Elapsed, Observer } from '../turns/observer.ts';
import type { TurnEvent } from '../turns/turn-event.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import { spanIdOf, traceIdOf } from './span-ids.ts';
import type { Span, Tracer } from './tracer.ts';

type Attributes = Span['attributes'];

/** Names that models make up are no texts, and no names either. */
const LONGEST_NAME = 64;

/**
 * Turns what passes through the gateway into traces: one for each message, from where it is received through its turn to
 * where the reply leaves. See docs/decisions/0017-traces.md for how the parts find each other.
 */
export function traces(tracer: Tracer, instance: string): Partial<Observer> {
  return {
    received: ({ id, platform, kind }, turn, elapsed) =>
      tracer.record({
        ...{ name: 'receive', kind: 'server', ...at(turn.id), ...elapsed, parentId: null, error: null },
        id: spanIdOf('receive', turn.id),
        attributes: { ...nameOf(id, turn.id), 'moirai.platform': platform, 'moirai.kind': kind },
      }),
    started: (run) => {
      const trace = new RunTrace(run, tracer);
      run.channel.subscribe((event) => trace.see(event));
      run.channel.onEnd(() => tracer.record(turnSpan(run, instance)));
    },
    tried: ({ id, sessionId, turnId, platform }, attempt, outcome, elapsed) =>
      tracer.record({
        ...{ name: 'deliver', kind: 'client', ...at(turnId ?? id), ...elapsed },
        id: spanIdOf(`deliver ${attempt}`, id),
        // What is no turn's reply, such as a notice, is a trace of its own.
        parentId: turnId === null ? null : spanIdOf('turn', turnId),
        attributes: {
          ...{ ...nameOf(sessionId, turnId), 'moirai.platform': platform },
          ...{ 'moirai.attempts': attempt, 'moirai.outcome': outcome.state },
        },
        error: outcome.state === 'sent' ? null : 'not_sent',
      }),
  };
}

/**
 * The process that brings a turn to its end writes its span, so that there is one, whatever was cut on the way.
 * A run that was cut, or taken away from us, is a part of it.
 */
function turnSpan({ session, turn, ending, finished, elapsed }: TurnRun, instance: string): Span {
  const attributes = {
    ...{ ...nameOf(session.id, turn.id), 'moirai.platform': session.platform, 'moirai.kind': session.kind },
    ...{ 'moirai.instance': instance, 'moirai.outcome': ending, 'moirai.cuts': turn.cuts },
    ...(finished?.model == null ? {} : { 'gen_ai.response.model': finished.model }),
    ...(finished?.usage == null ? {} : usageOf(finished.usage)),
  };
  const error = finished?.error ?? null;
  if (finished === null) return { ...partOf(turn.id, 'cut', turn.cuts, elapsed), attributes, error };
  // The run of a job was not received from a person: its trace begins here.
  const parentId = session.kind === 'cron' ? null : spanIdOf('receive', turn.id);
  const place = { ...at(turn.id), id: spanIdOf('turn', turn.id), parentId, ...whole(turn, elapsed) };
  return { name: 'turn', kind: 'internal', ...place, attributes, error };
}

/** A turn that was cut reaches back to where it came from: its first runs are in it. */
function whole({ cuts, createdAt }: TurnRun['turn'], elapsed: Elapsed): Elapsed {
  if (cuts === 0) return elapsed;
  return { began: createdAt, ms: elapsed.began + elapsed.ms - createdAt };
}

/** What the model and the tools of one run do. */
class RunTrace {
  readonly #run: TurnRun;
  readonly #tracer: Tracer;
  readonly #tools = new Map<string, number>();
  /** When the model had all it needed to go on. */
  #ready = 0;
  #parts = 0;

  constructor(run: TurnRun, tracer: Tracer) {
    this.#run = run;
    this.#tracer = tracer;
  }

  see(event: TurnEvent): void {
    if (event.type === 'step') {
      this.#part('model', this.#ready, { 'moirai.step': event.iteration }, null);
      this.#ready = this.#run.elapsed.ms;
    } else if (event.type === 'tool') this.#seeTool(event);
  }

  #seeTool(event: ToolEvent): void {
    if (event.state === 'start') {
      this.#tools.set(event.id, this.#run.elapsed.ms);
      return;
    }
    const name = { 'gen_ai.tool.name': event.name.slice(0, LONGEST_NAME) };
    this.#part('tool', this.#tools.get(event.id) ?? this.#ready, name, event.ok ? null : 'tool_failed');
    this.#tools.delete(event.id);
    this.#ready = this.#run.elapsed.ms;
  }

  #part(name: string, from: number, attributes: Attributes, error: string | null): void {
    const { turn, elapsed } = this.#run;
    const ms = elapsed.ms - from;
    this.#parts += 1;
    const part = partOf(turn.id, name, `${turn.cuts} ${this.#parts}`, { began: elapsed.began + from, ms });
    this.#tracer.record({ ...part, attributes, error });
  }
}

function partOf(
  turnId: string,
  name: string,
  which: string | number,
  elapsed: Elapsed,
): Omit<Span, 'attributes' | 'error'> {
  const id = spanIdOf(`${name} ${which}`, turnId);
  return { name, kind: 'internal', ...at(turnId), id, parentId: spanIdOf('turn', turnId), ...elapsed };
}

function at(id: string): { traceId: string } {
  return { traceId: traceIdOf(id) };
}

function nameOf(sessionId: string, turnId: string | null): Attributes {
  return { 'moirai.session_id': sessionId, ...(turnId === null ? {} : { 'moirai.turn_id': turnId }) };
}

function usageOf({ input, output }: { readonly input: number; readonly output: number }): Attributes {
  return { 'gen_ai.usage.input_tokens': input, 'gen_ai.usage.output_tokens': output };
}
