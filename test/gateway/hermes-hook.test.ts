import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { hasPython } from '../support/python.ts';
import { Scene } from './scene.ts';

let scene: Scene;

afterEach(() => scene.close());

const DAY = 86_400_000;
const MANIFEST = 'name: test-session-end\nevents: [session:start, session:end]\n';
/** As people have them for other gateways. */
const HANDLER = `import json
import os
import time
from pathlib import Path


async def handle(event_type, context):
    home = Path(os.environ.get("MOIRAI_HOME", str(Path.home())))
    with open(home / "session-events.jsonl", "a") as f:
        f.write(json.dumps({"event": event_type, "ts": time.time(), "ctx": context}) + "\\n")
`;

interface Line {
  readonly event: string;
  readonly ctx: Readonly<Record<string, unknown>>;
}

function withHook(home: string): void {
  const folder = join(home, 'hooks', 'test-session-end');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'HOOK.yaml'), MANIFEST);
  writeFileSync(join(folder, 'handler.py'), HANDLER);
}

async function heard(count: number): Promise<Line[]> {
  const file = join(scene.home, 'session-events.jsonl');
  const lines = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []);
  await scene.until(`the hook wrote ${count} lines`, () => lines().length >= count);
  return lines().map((line) => JSON.parse(line) as Line);
}

test.skipIf(!hasPython())(
  'a Python hook written for another gateway hears of a session that goes idle with nobody writing',
  async () => {
    scene = await Scene.open({ sessions: { reset: { mode: 'idle', idle: '24h' } } }, withHook);
    await scene.ask('1', 'hello');
    const { id, key } = await scene.sessionOf('1');
    scene.later(DAY);
    await scene.gateway.engine.expire('watcher');
    const [start, end] = await heard(2);
    const known = { platform: 'pigeon', user_id: 'user-1', session_id: id, session_key: key };
    expect(start).toMatchObject({ event: 'session:start', ctx: known });
    expect(end).toMatchObject({ event: 'session:end', ctx: { ...known, reason: 'idle_expiry' } });
  },
);

test.skipIf(!hasPython())(
  'it hears the end of an overdue session before the start of the one a message begins',
  async () => {
    scene = await Scene.open({ sessions: { reset: { mode: 'idle', idle: '24h' } } }, withHook);
    await scene.ask('1', 'hello');
    const old = await scene.sessionOf('1');
    scene.later(DAY);
    await scene.ask('1', 'again');
    const fresh = await scene.sessionOf('1');
    expect((await heard(3)).map(({ event, ctx }) => [event, ctx.session_id, ctx.reason])).toEqual([
      ['session:start', old.id, undefined],
      ['session:end', old.id, 'auto_reset'],
      ['session:start', fresh.id, undefined],
    ]);
  },
);
