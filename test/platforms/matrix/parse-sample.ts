import { localpartOf } from '../../../src/platforms/matrix/ids.ts';
import {
  type EventContext,
  type KnownEvent,
  knowEvent,
  type Parsed,
  parseEvent,
} from '../../../src/platforms/matrix/parse.ts';
import { parseSync } from '../../../src/platforms/matrix/parse-sync.ts';

export const SELF = { userId: '@agent:example.org', displayName: 'Agent' };

/** What the last event of a sync becomes, when those before it are known. */
export function parseSample(payload: unknown): Parsed | null {
  const batch = parseSync(payload, SELF.userId);
  const [piece] = batch?.rooms ?? [];
  const [left] = batch?.departures ?? [];
  const events = piece?.events ?? (left?.event == null ? [] : [left.event]);
  const last = events.at(-1);
  const room = piece?.room ?? left?.room ?? '';
  if (last === undefined) return null;
  const known = new Map(
    events.slice(0, -1).flatMap((event): [string, KnownEvent][] => {
      const one = knowEvent(event);
      return one === null ? [] : [[one.id, one]];
    }),
  );
  const context: EventContext = {
    ...{ self: SELF, room, direct: room === '!dm0:example.org' },
    roomName: room === '!dm0:example.org' ? null : 'Group',
    nameOf: localpartOf,
    known: (id) => (id === null ? null : (known.get(id) ?? null)),
  };
  return parseEvent(last, context);
}
