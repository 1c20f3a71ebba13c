import { setTimeout as delay } from 'node:timers/promises';
import { GatewayProcess } from '../gateway/process.ts';

export interface PollReport {
  readonly sessions: number;
  readonly events: number;
  readonly polls: number;
  readonly dropped: number;
  readonly restarts: number;
  readonly violations: readonly string[];
}

interface LoggedEvent {
  readonly seq: number;
  readonly type: string;
  readonly session_id: string | null;
  readonly [field: string]: unknown;
}

/** What can be known of a session from the log alone. */
interface Rebuilt {
  key: unknown;
  kind: unknown;
  platform: unknown;
  user_id: unknown;
  parent_id: unknown;
  lineage: unknown;
  title: unknown;
  state: string;
  end_reason: unknown;
  end_cause: unknown;
}

/** Somebody who has only the log. A page may come twice or not at all: the cursor moves when a page has arrived whole. */
class Poller {
  readonly sessions = new Map<string, Rebuilt>();
  after = 0;
  events = 0;
  polls = 0;
  dropped = 0;
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** One look; true when there was nothing new. */
  async poll(url: string): Promise<boolean> {
    this.polls += 1;
    const cut = this.#random() < 0.3 ? AbortSignal.timeout(1 + Math.floor(this.#random() * 15)) : null;
    try {
      const answer = await fetch(`${url}/v1/events?after=${this.after}&limit=100`, { signal: cut });
      if (!answer.ok) throw new TypeError(`answered ${answer.status}`);
      // Now and then the line breaks after the answer has begun, whatever chance says.
      if (this.polls % 5 === 0) {
        await answer.body?.cancel();
        throw new TypeError('cut');
      }
      const { data, next } = (await answer.json()) as { data: LoggedEvent[]; next: number };
      for (const event of data) this.#apply(event);
      this.after = next;
      return data.length === 0;
    } catch {
      this.dropped += 1;
      return false;
    }
  }

  #apply(event: LoggedEvent): void {
    this.events += 1;
    if (event.session_id === null) return;
    const session = this.sessions.get(event.session_id);
    if (event.type === 'session:start') this.sessions.set(event.session_id, begun(event));
    else if (session !== undefined) Object.assign(session, changeOf(event));
  }
}

function begun({ session_key, kind, platform, user_id, parent_id, lineage }: LoggedEvent): Rebuilt {
  const facts = { key: session_key, kind, platform, user_id, parent_id, lineage };
  return { ...facts, title: null, state: 'open', end_reason: null, end_cause: null };
}

function changeOf(event: LoggedEvent): Partial<Rebuilt> {
  switch (event.type) {
    case 'session:end':
      return { state: 'ended', end_reason: event.reason, end_cause: event.cause };
    case 'session:resume_pending':
      return { state: 'resume_pending' };
    case 'session:resume':
      return { state: 'open' };
    case 'session:suspend':
      return { state: 'suspended' };
    case 'session:title':
      return { title: event.title };
    default:
      return {};
  }
}

/**
 * People talk to a gateway that is restarted twice, once in good order and once by SIGKILL, while somebody polls its log
 * over a bad line. What he has in the end is compared with the store.
 */
export async function pollThroughRestarts(
  seconds: number,
  random: () => number,
  say: (line: string) => void,
): Promise<PollReport> {
  const gateway = new GatewayProcess({ log: { level: 'error' } });
  const poller = new Poller(random);
  const end = Date.now() + seconds * 1000;
  try {
    await gateway.start();
    const talking = talk(gateway, end, random);
    const polling = pollUntil(gateway, poller, end);
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await delay((seconds * 1000) / 3);
      await gateway.end(signal);
      await gateway.start();
      say(`restarted after ${signal}; ${poller.events} events of ${poller.sessions.size} sessions so far`);
    }
    await Promise.all([talking, polling]);
    await settle(gateway, poller);
    const truth = await everySession(gateway);
    const { events, polls, dropped } = poller;
    return { ...{ sessions: truth.size, events, polls, dropped }, restarts: 2, violations: differences(poller, truth) };
  } finally {
    await gateway.close();
  }
}

const SAYINGS = ['hello', 'and then?', '/new', '/title a name', 'tell me more', '/retry', '/stop'];

async function talk(gateway: GatewayProcess, end: number, random: () => number): Promise<void> {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const people = Array.from({ length: 4 }, async (_, person) => {
    while (Date.now() < end) {
      const conversation = random() < 0.2 ? {} : { conversation: `c${person}-${Math.floor(random() * 4)}` };
      // A gateway that is away answers nobody; people try again.
      await gateway.chat({ text: pick(SAYINGS), ...conversation }).catch(() => undefined);
      await delay(random() * 200);
    }
  });
  await Promise.all(people);
}

async function pollUntil(gateway: GatewayProcess, poller: Poller, end: number): Promise<void> {
  while (Date.now() < end) {
    await poller.poll(gateway.url);
    await delay(1000);
  }
}

/** Nothing is under way any more, and the poller has caught up. */
async function settle(gateway: GatewayProcess, poller: Poller): Promise<void> {
  const patience = Date.now() + 60_000;
  for (let quiet = 0; quiet < 3 && Date.now() < patience; ) {
    quiet = (await poller.poll(gateway.url)) && (await gateway.waiting()) === 0 ? quiet + 1 : 0;
    await delay(200);
  }
}

const KINDS = 'chat,cli,api,cron,webhook,batch,child';

async function everySession(gateway: GatewayProcess): Promise<Map<string, Rebuilt>> {
  const all = new Map<string, Rebuilt>();
  for (let cursor = ''; ; ) {
    const page = await gateway.get<{ data: (Rebuilt & { id: string })[]; next: string | null }>(
      `/v1/sessions?limit=500&kind=${KINDS}${cursor}`,
    );
    for (const session of page.data) all.set(session.id, knowable(session));
    if (page.next === null) return all;
    cursor = `&cursor=${encodeURIComponent(page.next)}`;
  }
}

function knowable(session: Rebuilt): Rebuilt {
  const { key, kind, platform, user_id, parent_id, lineage, title, state, end_reason, end_cause } = session;
  return { key, kind, platform, user_id, parent_id, lineage, title, state, end_reason, end_cause };
}

function differences(poller: Poller, truth: ReadonlyMap<string, Rebuilt>): string[] {
  return [...new Set([...truth.keys(), ...poller.sessions.keys()])].flatMap((id) => {
    const [stored, rebuilt] = [JSON.stringify(truth.get(id)), JSON.stringify(poller.sessions.get(id))];
    return stored === rebuilt ? [] : [`${id}: the store says ${stored}, the log ${rebuilt}`];
  });
}
