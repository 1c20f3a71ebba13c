import { MoiraiError } from '../../errors/moirai-error.ts';
import {
  assertPattern,
  EVENT_TYPES,
  type EventFields,
  type EventType,
  type FixedEventType,
  isNumbered,
  type MoiraiEvent,
} from '../../lifecycle/events.ts';

const SESSION = 'ses_sample';
const TURN = {
  ...{ turn_id: 'trn_sample', chat_id: '42', thread_id: null, chat_type: 'dm', message: 'Where is the harbour?' },
};
const PLACE = { name: 'telegram', chat_id: '42', thread_id: null };
const INSTANCE = { platforms: ['telegram'], reason: null };
const APPROVAL = {
  ...{ approval_id: 'apr_sample', turn_id: TURN.turn_id, tool: 'run_command', summary: 'make harbour' },
  expires_at: '2026-01-01T00:05:00.000Z',
};
const FAILURE = { subscriber: 'hook:another', event_id: `${SESSION}:4`, attempts: 8, error: 'it threw', dead: true };

/** One of each, with every field it has; the type keeps the table complete. */
const FIELDS: { readonly [T in FixedEventType]: EventFields[T] } = {
  'session:start': { parent_id: null, lineage: null, origin: { chat: '42' } },
  'session:end': {
    ...{ reason: 'idle_expiry', cause: null, trigger: 'watcher', duration_ms: 86_400_000, message_count: 2 },
    successor_id: null,
  },
  'session:reset': { old_session_id: 'ses_before', new_session_id: SESSION },
  'session:resume_pending': { reason: 'restart', turn_id: TURN.turn_id },
  'session:resume': { turn_id: TURN.turn_id },
  'session:suspend': { reason: 'stuck_loop', turn_id: 'trn_sample' },
  'session:release': { reason: 'operator' },
  'session:compress': { before_tokens: 90_000, after_tokens: 12_000, count: 1 },
  'session:title': { title: 'The harbour' },
  'agent:start': TURN,
  'agent:end': { ...TURN, outcome: 'done', response: 'Behind you.', model: 'sample', usage: { input: 9, output: 3 } },
  'agent:step': { turn_id: TURN.turn_id, iteration: 1, tool_names: ['read_file'] },
  'delivery:sent': { delivery_id: 'dlv_sample', attempts: 1, error: null },
  'delivery:failed': { delivery_id: 'dlv_sample', attempts: 5, error: 'the chat is gone' },
  'approval:asked': APPROVAL,
  'approval:answered': { ...APPROVAL, decision: 'once', by: 'telegram:42' },
  'work:set_aside': { work: 'delivery', id: 'dlv_sample', attempts: 3, error: 'its row cannot be read' },
  'hook:failed': FAILURE,
  'gateway:startup': INSTANCE,
  'gateway:draining': { ...INSTANCE, reason: 'restart' },
  'gateway:shutdown': { ...INSTANCE, reason: 'restart' },
  'platform:place': { ...PLACE, change: 'added', reason: null },
  'platform:message': { ...PLACE, change: 'deleted', message_id: '7' },
  'platform:reaction': { ...PLACE, change: 'added', message_id: '7', by: '42', reaction: '👍' },
  'platform:member': { ...PLACE, change: 'joined', by: '42' },
  'gateway:platform': { name: 'telegram', phase: 'degraded', problem: 'no answer', last_success_at: null },
  'instance:lost': { instance: 'ins_before', sessions: 1 },
};

const OF_NO_SESSION = ['gateway:', 'instance:'];

/** An event as it might be, for trying a hook. Throws `unknown_event`, and `bad_input` for a pattern. */
export function sampleEvent(type: string, at: string): MoiraiEvent {
  assertPattern(type);
  if (type.endsWith('*')) throw new MoiraiError('bad_input', `"${type}" is a pattern; one event is needed`);
  const nowhere = OF_NO_SESSION.some((prefix) => type.startsWith(prefix));
  return {
    ...{ id: `${SESSION}:5`, session_seq: isNumbered(type as EventType) ? 5 : null, type: type as EventType, at },
    ...{ session_id: SESSION, session_key: 'agent:main:telegram:dm:42', platform: 'telegram', user_id: '42' },
    ...{ kind: 'chat', instance: 'ins_sample' },
    ...(nowhere ? { session_id: null, session_key: null, platform: null, user_id: null, kind: null } : {}),
    ...fieldsOf(type),
  };
}

function fieldsOf(type: string): object {
  const known = EVENT_TYPES.find((each) => each === type);
  return known === undefined ? { command: type.slice('command:'.length), args: '' } : FIELDS[known];
}
