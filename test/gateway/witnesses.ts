import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { until } from '../cli/cli-fixture.ts';
import { type HttpFake, startHttpFake } from '../fakes/http-fake.ts';
import { hasPython } from '../support/python.ts';

/** Everybody who can hear of the end of a session. */
export const WITNESSES = ['hook.ts', 'hook.py', 'hook.sh', 'plugin', 'webhook', 'memory'] as const;
export type Witness = (typeof WITNESSES)[number];

/** What one of them wrote down when it heard something. */
export interface Testimony {
  readonly who: Witness;
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly session_id: string;
    readonly reason?: string;
    readonly old_session_id?: string;
  };
  /** What people had said, as far as it was given to them: only memory gets that. */
  readonly said?: readonly string[];
}

/** Who is there to hear: without Python on the machine there is no hook in it. */
export const PRESENT: readonly Witness[] = WITNESSES.filter((who) => who !== 'hook.py' || hasPython());

const BOOK = 'witnesses.jsonl';
const SECRET = `whsec_${Buffer.from('what the witnesses know').toString('base64')}`;
const HEARING_MS = 20_000;
const EVENTS = ['session:start', 'session:end', 'session:reset'];

const HANDLERS: Readonly<Record<'ts' | 'py' | 'sh', string>> = {
  ts: `import { appendFileSync } from 'node:fs';
export async function handle(eventType: string, event: object) {
  appendFileSync(process.env.MOIRAI_HOME + '/${BOOK}', JSON.stringify({ who: 'hook.ts', event }) + '\\n');
}
`,
  py: `import json, os

async def handle(event_type, context):
    with open(os.path.join(os.environ["MOIRAI_HOME"], "${BOOK}"), "a") as book:
        book.write(json.dumps({"who": "hook.py", "event": context}) + "\\n")
`,
  sh: `#!/bin/sh
read -r event
printf '{"who":"hook.sh","event":%s}\\n' "$event" >> "$MOIRAI_HOME/${BOOK}"
`,
};

const PLUGIN = `import { appendFileSync } from 'node:fs';
import { definePlugin } from 'moirai';

export default definePlugin({
  setup(ctx) {
    const write = (line: object) => appendFileSync(ctx.home + '/${BOOK}', JSON.stringify(line) + '\\n');
    for (const name of ['on_session_start', 'on_session_finalize', 'on_session_reset'] as const) {
      ctx.on(name, (event) => write({ who: 'plugin', event }));
    }
    ctx.memoryProvider({
      name: 'witness',
      kinds: ['chat', 'cli', 'api', 'cron', 'webhook', 'batch', 'child'],
      onSessionEnd({ session, reason, eventId, messages }) {
        const said = messages.filter(({ role }) => role === 'user').map(({ text }) => text);
        write({ who: 'memory', event: { id: eventId, type: 'session:end', session_id: session.id, reason }, said });
      },
    });
  },
});
`;

/** Witnesses for any number of homes; the webhook's receiver is one for all. */
export class Witnesses {
  readonly #receiver: HttpFake;

  private constructor(receiver: HttpFake) {
    this.#receiver = receiver;
  }

  static async gather(): Promise<Witnesses> {
    return new Witnesses(await startHttpFake(async (_, response) => void response.writeHead(204).end()));
  }

  close(): Promise<void> {
    return this.#receiver.close();
  }

  /** What has to be in the configuration. */
  get settings(): Record<string, unknown> {
    const webhook = { name: 'witness', url: this.#receiver.url, secret: SECRET, events: EVENTS };
    return { hooks: { webhooks: [webhook] }, memory: { provider: 'witness', review_every: 0 } };
  }

  /** Puts the hooks and the plugin into a home. */
  moveInto(home: string): void {
    for (const [kind, code] of Object.entries(HANDLERS)) {
      const folder = join(home, 'hooks', `witness-${kind}`);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'HOOK.yaml'), JSON.stringify({ events: EVENTS }));
      writeFileSync(join(folder, `handler.${kind}`), code);
      chmodSync(join(folder, `handler.${kind}`), 0o755);
    }
    const plugin = join(home, 'plugins', 'witness');
    mkdirSync(plugin, { recursive: true });
    writeFileSync(join(plugin, 'plugin.yaml'), JSON.stringify({ name: 'witness' }));
    writeFileSync(join(plugin, 'index.ts'), PLUGIN);
    appendFileSync(join(home, BOOK), '');
  }

  heard(home: string): Testimony[] {
    const book = join(home, BOOK);
    const lines = existsSync(book) ? readFileSync(book, 'utf8').split('\n') : [];
    // The last line may be half written.
    const written = lines.slice(0, -1).map((line) => JSON.parse(line) as Testimony);
    return [...written, ...this.#received()];
  }

  /** Resolves when all of them have heard the end of a session. */
  async untilHeard(home: string, sessionId: string): Promise<void> {
    const missing = (): string[] => {
      const ends = this.heard(home).filter((each) => isEndOf(each, sessionId));
      return PRESENT.filter((witness) => !ends.some(({ who }) => who === witness));
    };
    await until('everybody hears', () => missing().length === 0, HEARING_MS).catch(() => {
      throw new Error(`the end of ${sessionId} was not heard by ${missing().join(', ')}`);
    });
  }

  #received(): Testimony[] {
    return this.#receiver.requests.map(({ raw, headers }) => {
      const event = new Webhook(SECRET).verify(raw, headers as Record<string, string>) as Testimony['event'];
      return { who: 'webhook', event };
    });
  }
}

export function isEndOf({ event }: Testimony, sessionId: string): boolean {
  return event.type === 'session:end' && event.session_id === sessionId;
}
