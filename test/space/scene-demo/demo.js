// A made-up world for the scene: ?n=200&rooms=4&churn=100&seed=1. JavaScript, since the types of a browser must not
// be seen by the rest of the tests.
import { PHASES } from '../../../src/space/page/protocol.ts';
import { Scene } from '../../../src/space/page/scene/scene.ts';

const asked = new URLSearchParams(location.search);
const number = (name, otherwise) => Number(asked.get(name) ?? otherwise);
const PLATFORMS = ['telegram', 'cli', 'api', 'cron', 'discord', 'matrix'];
const TOOLS = ['bash', 'read_file', 'web_search', 'write_file'];
const REASONS = ['idle_expiry', 'user_reset', 'daily_reset', 'shutdown'];
const LABELS = ['Ada', 'Bertrand', 'Clotho', 'release notes', 'نور', 'who broke the build?', 'Μοῖραι', '🧵 threads'];

// Mulberry32: the same world every time.
let state = number('seed', 1);
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
}
const pick = (list) => list[Math.floor(random() * list.length)];

const canvas = document.querySelector('canvas');

// Counts frames in which the scene really drew on its canvas.
let touched = false;
for (const name of ['drawImage', 'fillRect']) {
  const original = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...args) {
    if (this.canvas === canvas) {
      touched = true;
      demo.calls++;
    }
    return original.apply(this, args);
  };
}

let made = 0;
function newSession(rooms) {
  const phase = random() < 0.6 ? 'idle' : pick(PHASES);
  const room = rooms[Math.floor(random() ** 1.3 * rooms.length)].id;
  return {
    id: `session-${++made}`,
    room,
    platform: PLATFORMS[Math.floor(random() ** 2 * Math.min(PLATFORMS.length, number('platforms', 4)))],
    phase,
    tool: phase === 'tool' ? pick(TOOLS) : null,
    label: pick(LABELS),
  };
}

function makeRooms(count) {
  return Array.from({ length: count }, (_, index) => ({
    id: `room-${index}`,
    name: ['atropos', 'clotho', 'lachesis', 'themis'][index] ?? `gateway ${index}`,
    live: index !== 3,
    note: index === 3 ? 'lost: not heard of for 2 minutes' : 'ready · 0.1.0 · here',
  }));
}

const demo = {
  scene: null,
  world: null,
  picked: [],
  drawn: 0,
  frames: 0,
  calls: 0,
  errors: [],
  make(count = number('n', 200), rooms = makeRooms(number('rooms', 4))) {
    const sessions = new Map();
    for (let index = 0; index < count; index++) {
      const session = newSession(rooms);
      sessions.set(session.id, session);
    }
    this.show({ rooms, sessions });
  },
  show(world) {
    this.world = world;
    this.scene.show(world);
  },
  /** Changes some; now and then one ends and another comes. Returns how long the scene took, in milliseconds. */
  change(count, ends = true) {
    const { rooms } = this.world;
    const sessions = new Map(this.world.sessions);
    const ids = [...sessions.keys()];
    const ended = [];
    for (let index = 0; index < count; index++) {
      const id = pick(ids);
      const before = sessions.get(id);
      if (before === undefined) continue;
      if (ends && random() < 0.1) {
        sessions.delete(id);
        ended.push({ id, reason: pick(REASONS) });
        const next = newSession(rooms);
        sessions.set(next.id, next);
        continue;
      }
      const phase = pick(PHASES);
      sessions.set(id, { ...before, phase, tool: phase === 'tool' ? pick(TOOLS) : null });
    }
    this.world = { rooms, sessions };
    const start = performance.now();
    this.scene.show(this.world);
    this.scene.farewell(ended);
    return performance.now() - start;
  },
  /** Frames a second that the scene drew, over so many milliseconds. */
  measure(duration) {
    const { drawn, frames, calls } = this;
    const start = performance.now();
    return new Promise((done) => {
      setTimeout(() => {
        const seconds = (performance.now() - start) / 1000;
        const per = (now, before) => (now - before) / seconds;
        done({ drawn: per(this.drawn, drawn), frames: per(this.frames, frames), calls: per(this.calls, calls) });
      }, duration);
    });
  },
};
window.demo = demo;
addEventListener('error', (event) => demo.errors.push(String(event.message)));
addEventListener('unhandledrejection', (event) => demo.errors.push(String(event.reason)));

demo.scene = new Scene(canvas, (id) => demo.picked.push(id));
if (asked.has('still')) demo.scene.setStill(true);
demo.make();
if (number('churn', 0) > 0) setInterval(() => demo.change(number('churn', 0) / 10), 100);

requestAnimationFrame(function count() {
  demo.frames++;
  if (touched) demo.drawn++;
  touched = false;
  requestAnimationFrame(count);
});
