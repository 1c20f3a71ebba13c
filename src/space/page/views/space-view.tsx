import { useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { reasonOf } from '../data/kept-session.ts';
import { labelOf, roomsOf, sceneRoom, sceneSession } from '../data/rooms.ts';
import type { World, WorldSession } from '../data/world.ts';
import { PHASES } from '../protocol.ts';
import type { SceneSession, SceneWorld } from '../scene/port.ts';
import { Scene } from '../scene/scene.ts';
import { closeSession, mediaSignal, openSession, selectedId } from '../ui.ts';
import { Ago, PHASE_WORDS, PhaseDot, PlainText, SessionLink, ViewFrame } from './parts.tsx';

/** The picture, what its signs mean, and which sessions have ended. */
export function SpaceView() {
  return (
    <ViewFrame name="space-view" title="Space">
      <Picture />
      <div class="below-picture">
        <Legend />
        <RecentEnds />
      </div>
    </ViewFrame>
  );
}

/** What the person has asked their system about things that move. */
const still = mediaSignal('(prefers-reduced-motion: reduce)');
const ARROWS = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' } as const;

function Picture() {
  const { world } = useSpace();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scene = useRef<Scene | null>(null);
  const stepped = useRef<string | null>(null);
  useEffect(() => {
    if (canvas.current === null) return;
    const drawn = new Scene(canvas.current, (id) => (id === null ? closeSession() : openSession(id)));
    scene.current = drawn;
    const drawing = new Drawing(world);
    drawn.show(drawing.draw());
    drawn.select(selectedId.peek());
    const stopShowing = world.version.subscribe(() => drawn.show(drawing.draw()));
    const stopFarewells = world.onFarewell((ends) => drawn.farewell(ends));
    const stopStill = still.subscribe((value) => drawn.setStill(value));
    return () => {
      stopShowing();
      stopFarewells();
      stopStill();
      scene.current = null;
      drawn.dispose();
    };
  }, [world]);
  useSignalEffect(() => {
    stepped.current = selectedId.value;
    scene.current?.select(selectedId.value);
  });
  const press = (event: KeyboardEvent): void => {
    const direction = ARROWS[event.key as keyof typeof ARROWS];
    if (direction !== undefined) stepped.current = scene.current?.step(direction) ?? null;
    else if (event.key === 'Enter' && stepped.current !== null) openSession(stepped.current);
    else return;
    event.preventDefault();
  };
  return (
    <div class="picture">
      {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: arrow keys belong to the picture */}
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label="Gateways as rooms, and the sessions in them. Arrow keys choose one, Enter opens it. The table of sessions has the same."
        onKeyDown={press}
      />
    </div>
  );
}

/** What the scene is shown. A session that has not changed stays the same object, so the scene need not look twice. */
class Drawing {
  readonly #world: World;
  readonly #sessions = new Map<string, SceneSession>();
  readonly #drawnFrom = new Map<string, WorldSession>();

  constructor(world: World) {
    this.#world = world;
  }

  draw(): SceneWorld {
    const inhabited = new Set<string>();
    for (const [id, session] of this.#world.sessions) {
      inhabited.add(session.room);
      if (this.#drawnFrom.get(id) === session) continue;
      this.#drawnFrom.set(id, session);
      this.#put(id, sceneSession(session));
    }
    for (const id of this.#drawnFrom.keys()) {
      if (this.#world.sessions.has(id)) continue;
      this.#drawnFrom.delete(id);
      this.#sessions.delete(id);
    }
    return { rooms: roomsOf(this.#world.sources, inhabited, Date.now()).map(sceneRoom), sessions: this.#sessions };
  }

  #put(id: string, next: SceneSession): void {
    const before = this.#sessions.get(id);
    // Most changes (a token more, a heartbeat) cannot be seen in the picture.
    const same =
      before !== undefined && (Object.keys(next) as (keyof SceneSession)[]).every((one) => before[one] === next[one]);
    if (!same) this.#sessions.set(id, next);
  }
}

function Legend() {
  return (
    <section class="legend" aria-labelledby="legend-title">
      <h2 id="legend-title">What they are doing</h2>
      <ul>
        {PHASES.map((phase) => (
          <li key={phase}>
            <PhaseDot phase={phase} />
            <strong>{PHASE_WORDS[phase]}</strong>
            <span class="faint">{MEANINGS[phase]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const MEANINGS: Readonly<Record<string, string>> = {
  idle: 'rests until somebody writes',
  queued: 'a message waits for its turn',
  thinking: 'the model works',
  tool: 'a tool runs',
  replying: 'the answer is being written',
  resume_pending: 'was cut off, goes on soon',
  suspended: 'held back on purpose',
};

function RecentEnds() {
  const { world } = useSpace();
  void world.calm.value;
  return (
    <section class="recent" aria-labelledby="recent-title">
      <h2 id="recent-title">Ended just now</h2>
      {world.ends.length === 0 ? (
        <p class="empty">Nobody since this page was opened.</p>
      ) : (
        <ul>
          {world.ends.map(({ id, view, reason, cause, at }) => (
            <li key={id}>
              <SessionLink id={id} label={view === null ? id : labelOf(view)} />
              <PlainText as="span" class="reason" text={reasonOf(reason, cause)} />
              <Ago at={at} faint />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
