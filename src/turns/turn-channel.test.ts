import { expect, test } from 'vitest';
import { createLogger } from '../log/logger.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { TurnChannel } from './turn-channel.ts';
import type { TurnEvent } from './turn-event.ts';

const log = createLogger({ level: 'silent', format: 'json' });

function recording(): { events: TurnEvent[]; listener: (event: TurnEvent) => void } {
  const events: TurnEvent[] = [];
  return { events, listener: (event) => void events.push(event) };
}

test('a late subscriber gets what was so far, its text in one piece, and then what happens', () => {
  const channel = new TurnChannel('trn_1', log, () => 0);
  channel.publish({ type: 'accepted', sessionId: 'ses_1', turnId: 'trn_1' });
  channel.publish({ type: 'text', text: 'Hel' });
  channel.publish({ type: 'text', text: 'lo' });
  channel.publish({ type: 'tool', state: 'start', id: '1', name: 'read_file', args: {} });
  const { events, listener } = recording();
  const stop = channel.subscribe(listener);
  channel.publish({ type: 'text', text: ' there' });
  stop();
  channel.publish({ type: 'text', text: ', unheard' });
  expect(events).toEqual([
    { type: 'accepted', sessionId: 'ses_1', turnId: 'trn_1' },
    { type: 'text', text: 'Hello' },
    { type: 'tool', state: 'start', id: '1', name: 'read_file', args: {} },
    { type: 'text', text: ' there' },
  ]);
});

test('a listener that throws keeps nothing from the others', () => {
  const channel = new TurnChannel('trn_1', log, () => 0);
  const { events, listener } = recording();
  channel.subscribe(() => {
    throw new TypeError('broken');
  });
  channel.subscribe(listener);
  channel.publish({ type: 'text', text: 'hi' });
  expect(events).toEqual([{ type: 'text', text: 'hi' }]);
});

test('the activity follows the events', () => {
  const channel = new TurnChannel('trn_1', log, () => 0);
  expect(channel.activity).toEqual({ phase: 'thinking', tool: null });
  channel.publish({ type: 'text', text: 'hi' });
  expect(channel.activity).toEqual({ phase: 'replying', tool: null });
  channel.publish({ type: 'tool', state: 'start', id: '1', name: 'fetch_url', args: {} });
  expect(channel.activity).toEqual({ phase: 'tool', tool: 'fetch_url' });
  channel.publish({ type: 'tool', state: 'end', id: '1', name: 'fetch_url', ok: true });
  expect(channel.activity).toEqual({ phase: 'thinking', tool: null });
});

test('the end of the turn resolves who waits for it, and a closed channel resolves them with null', async () => {
  const turn = { id: 'trn_1', outcome: 'done' } as TurnResultRow;
  const channel = new TurnChannel('trn_1', log, () => 0);
  channel.publish({ type: 'finished', turn });
  channel.close();
  expect(await channel.ended).toBe(turn);
  const other = new TurnChannel('trn_2', log, () => 0);
  other.close();
  expect(await other.ended).toBeNull();
});
