import { getPriority } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Upkeep } from '../../src/engine/upkeep.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { processTimers } from '../../src/queue/timers.ts';
import { hasPython } from '../support/python.ts';
import { manifest, noting, Scene, until } from './scene.ts';

const PYTHON = hasPython();
const EVENTS = 'session:start, agent:end, session:end';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open({
    ...DEFAULT_RESET_RULES,
    reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: 60_000 },
  });
});

afterEach(() => scene.close());

const PY = `
import json, os

def handle(event_type, context):
    with open(os.environ["MOIRAI_HOME"] + "/notes", "a") as notes:
        notes.write(json.dumps({"eventType": event_type, "context": context, "pid": os.getpid()}) + "\\n")
`;

const SH = `read -r event
printf '{"eventType":"%s","context":%s,"pid":%s}\\n' "$MOIRAI_EVENT" "$event" "$$" >> "$MOIRAI_HOME/notes"
`;

describe.each([
  ['handler.ts', noting(), true],
  ['handler.py', PY, PYTHON],
  ['handler.sh', SH, true],
  ['handler', `#!/bin/sh\n${SH}`, true],
])('%s', (file, code, there) => {
  test.skipIf(!there)('hears each event once and in order, also what was written while nobody listened', async () => {
    scene.hook('noter', { 'HOOK.yaml': manifest(EVENTS), [file]: code });
    await scene.start();
    const ids = [await scene.talk(1), await scene.talk(2), await scene.talk(1)];
    await until('the first five were heard', () => scene.lines('notes').length === 5);
    await scene.crash();
    await scene.engine.end(ids[0] ?? '', { reason: 'admin_close', trigger: 'api' });
    await scene.talk(2);
    await scene.start();
    await until('all were heard', () => scene.lines('notes').length === 7);
    const { events } = await scene.opened.store.read('listEvents', {
      ...{ after: 0, limit: 100, types: EVENTS.split(', '), sessionId: null },
    });
    const heard = scene.lines('notes').map(({ context }) => context);
    for (const key of new Set(heard.map(({ session_key }) => session_key))) {
      const logged = events.map(({ event }) => event).filter((event) => event.session_key === key);
      // The whole event, and nothing that would differ from one attempt to the next.
      expect(heard.filter(({ session_key }) => session_key === key)).toEqual(logged);
    }
    expect(scene.lines('notes').every(({ eventType, context }) => eventType === context.type)).toBe(true);
    const processes = new Set(
      scene
        .lines('notes')
        .slice(0, 5)
        .map(({ pid }) => pid),
    );
    expect(processes.size).toBe(file.startsWith('handler.') && file !== 'handler.sh' ? 1 : 5);
  });
});

test('a handler that stays loaded runs at low priority, with nothing of the gateway in its environment', async () => {
  scene.hook('env', {
    'HOOK.yaml': manifest('session:start'),
    'handler.ts': noting("note('env', Object.keys(process.env).sort()); console.log('my words');"),
  });
  await scene.start({ environment: { PATH: process.env.PATH, LANG: 'C', OPENAI_API_KEY: 'sk-secret', TZ: 'UTC' } });
  await scene.talk(1);
  await until('it was heard', () => scene.lines('notes').length === 1);
  expect(scene.lines('env')[0]).toEqual(['HOME', 'LANG', 'MOIRAI_EXTENSION', 'MOIRAI_HOME', 'PATH', 'TZ']);
  expect(getPriority(scene.lines('notes')[0].pid)).toBe(10);
  await until('its words are in the log', () => scene.logged.some((line) => line.includes('my words')));
  expect(JSON.parse(scene.logged.find((line) => line.includes('my words')) ?? '')).toMatchObject({
    ...{ hook: 'env', stream: 'stdout', line: 'my words' },
  });
  await until('its answer is there', () => scene.hooks?.list()[0]?.handled === 1);
  expect(scene.hooks?.list()).toMatchObject([{ name: 'env', state: 'ready', processes: 1, handled: 1, failed: 0 }]);
});

test.skipIf(!PYTHON)('a hook of another gateway hears the expiry of a session that nobody writes to', async () => {
  await scene.close();
  scene = await Scene.open({
    ...DEFAULT_RESET_RULES,
    reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: 300 },
  });
  scene.hook('test-session-end', {
    'HOOK.yaml': 'name: test-session-end\nevents: [session:start, session:end]\n',
    'handler.py': `import json
import time
from pathlib import Path

async def handle(event_type, context):
    with open(Path.home() / "session-events.jsonl", "a") as log:
        log.write(json.dumps({"event": event_type, "ts": time.time(), "ctx": context}) + "\\n")
`,
  });
  await scene.start();
  const upkeep = new Upkeep(scene.engine, {
    ...{ heartbeatMs: 1000, timers: processTimers, wallClock: Date.now, expire: true },
    failed: (error) => console.error(error),
    lost: () => undefined,
  });
  await upkeep.start();
  try {
    const id = await scene.talk(7);
    await until('it was told of the end', () => scene.lines('session-events.jsonl').length === 2);
    const place = { session_id: id, session_key: 'agent:main:telegram:dm:7', platform: 'telegram', user_id: 'user-7' };
    expect(scene.lines('session-events.jsonl')).toMatchObject([
      { event: 'session:start', ts: expect.any(Number), ctx: place },
      { event: 'session:end', ts: expect.any(Number), ctx: { ...place, reason: 'idle_expiry' } },
    ]);
  } finally {
    await upkeep.stop();
  }
});
