import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { eventView } from '../../engine/views.ts';
import { hasCode } from '../../errors/moirai-error.ts';
import { parseTypes } from '../../lifecycle/list-filters.ts';
import type { Store } from '../../store/port.ts';
import type { SequencedEvent } from '../../store/transactions/reading.ts';
import { inStore } from '../command.ts';
import { eventLine } from '../event-text.ts';
import { whole } from '../options.ts';
import { outputGone, printLine } from '../print.ts';
import { stopSignal } from '../stop-signal.ts';
import type { StoreSession } from '../store-session.ts';

interface EventsOptions {
  readonly follow?: boolean;
  readonly after?: number | 'now';
  readonly types?: readonly string[];
  readonly session?: string;
  readonly limit?: number;
}

const PAGE = 500;
const POLL_MS = 250;
const SETTLE_MS = 1000;

export function define(command: Command): void {
  command
    .description('Shows the log: every event of every session, oldest first.')
    .option('-f, --follow', 'go on with what happens next, until interrupted')
    .option('--after <seq>', 'only what came after this number; "now" for nothing that is past', (text) =>
      text === 'now' ? text : whole('--after', 0)(text),
    )
    .option('--types <types>', 'such as session:end, session:*,agent:*', (text) => parseTypes(text))
    .option('--session <id>', 'one session: its id, or any unique beginning of it')
    .option('--limit <n>', 'stop after so many (default: all)', whole('--limit', 1, 1e9))
    .addHelpText('after', EXAMPLES)
    .action(inStore(events));
}

const EXAMPLES = `
With --json each event is one line.

Examples:
  moirai events --types session:end
  moirai events --follow --after now --json`;

async function events(here: StoreSession, options: EventsOptions): Promise<undefined> {
  const { store, settings } = here;
  const { after = 0, types = ['*'], session, limit = Number.POSITIVE_INFINITY } = options;
  const sessionId = session === undefined ? null : await findInLog(store, session);
  const start = after === 'now' ? await store.read('lastSeq', {}) : after;
  let shown = 0;
  const follow = options.follow ? AbortSignal.any([stopSignal(), outputGone]) : null;
  for await (const event of readLog(here, start, { types, sessionId }, follow)) {
    await printLine(settings.json ? JSON.stringify(eventView(event)) : eventLine(event, true));
    if (++shown >= limit || outputGone.aborted) return;
  }
}

/** Also a session that was removed: by its whole id, since the log is all that knows of it. */
async function findInLog(store: Store, idOrPrefix: string): Promise<string> {
  try {
    return (await store.read('findSession', { idOrPrefix })).id;
  } catch (thrown) {
    if (!hasCode(thrown, 'session_not_found')) throw thrown;
    const { events: known } = await store.read('listEvents', { after: 0, limit: 1, types: [], sessionId: idOrPrefix });
    if (known.length === 0) throw thrown;
    return idOrPrefix;
  }
}

/** The log from a number on, to its end; with a signal it goes on with what is written later, until aborted. */
async function* readLog(
  here: StoreSession,
  start: number,
  wanted: { readonly types: readonly string[]; readonly sessionId: string | null },
  follow: AbortSignal | null,
): AsyncGenerator<SequencedEvent> {
  let after = start;
  let settledAt = performance.now();
  while (!follow?.aborted) {
    // Everything up to here is in the page below or not wanted: next time the search begins behind it.
    const newest = await here.store.read('lastSeq', {});
    if (newest > after) {
      const page = await here.store.read('listEvents', { after, limit: PAGE, ...wanted });
      yield* page.events;
      const full = page.events.length === PAGE;
      after = full ? page.next : Math.max(page.next, newest);
      if (full) continue;
    }
    if (follow === null) return;
    await setTimeout(POLL_MS, undefined, { signal: follow }).catch(() => undefined); // Aborted: the pause is over.
    if (performance.now() - settledAt < SETTLE_MS) continue;
    await here.settle();
    settledAt = performance.now();
  }
}
