import { z } from '@hono/zod-openapi';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { parseDuration } from '../../lifecycle/duration.ts';
import { TURN_OUTCOMES, TURN_STATES } from '../../lifecycle/states.ts';
import type { Api, ApiContext, ApiParts } from '../api.ts';
import type { ReadTurn } from '../backend.ts';
import { wantsStream } from '../event-stream.ts';
import { errorOfReply, nameTurn, streamTurn } from '../replies.ts';
import { json, jsonOrStream, route } from '../schemas.ts';
import { chatWriter } from './chat.ts';

const turnSchema = z
  .object({
    id: z.string(),
    session_id: z.string(),
    state: z.enum(TURN_STATES),
    outcome: z.enum(TURN_OUTCOMES).nullable().openapi({ description: 'Null until it is over.' }),
    reply: z.string().nullable().openapi({ description: 'Null until it is over, and where it failed.' }),
    error: z.object({ code: z.string(), message: z.string(), hint: z.string() }).nullable(),
  })
  .openapi('Turn');

const params = z.object({ id: z.string().max(512) });
/** A request that waits longer is taken for a dead one by most of what is between here and the client. */
const MAX_WAIT_MS = 300_000;

const read = route('get', '/v1/turns/{id}', 'readTurn', {
  summary: 'One turn: how far it is, or what came of it',
  access: 'see',
  request: {
    params,
    query: z.object({
      wait: z.string().optional().openapi({ description: 'Wait so long for its end: `30s`, at most `5m`.' }),
    }),
  },
  responses: {
    200: jsonOrStream(turnSchema, 'The turn. As a stream, from its beginning: `session`, `text`, `tool` and `done`.'),
  },
});

const stop = route('post', '/v1/turns/{id}/stop', 'stopTurn', {
  summary: 'Stops a turn, wherever it runs; one that is over stays as it is',
  access: 'chat',
  request: { params },
  responses: { 200: json(turnSchema, 'The turn afterwards.') },
});

/** Turns, for clients that lost the connection to theirs. */
export function addTurnRoutes(app: Api, parts: ApiParts): void {
  const { turns } = parts.backend;
  app.openapi(read, async (c) => {
    const { id } = c.req.valid('param');
    await assertOwn(c, parts, id);
    if (wantsStream(c)) {
      const accepted = await turns.follow(id);
      nameTurn(c, accepted);
      return streamTurn(c, parts, accepted, chatWriter(accepted));
    }
    const { wait } = c.req.valid('query');
    const waitMs = wait === undefined ? 0 : Math.min(parseDuration(wait), MAX_WAIT_MS);
    const gone = new AbortController();
    c.env.outgoing.once('close', () => gone.abort());
    const turn = await turns.wait(id, waitMs, AbortSignal.any([gone.signal, parts.closing]));
    return c.json(turnView(turn), 200);
  });
  app.openapi(stop, async (c) => {
    const { id } = c.req.valid('param');
    await assertOwn(c, parts, id);
    return c.json(turnView(await turns.stop(id)), 200);
  });
}

/** A key sees turns of the conversations that it sees; of others it does not learn that they are there. */
async function assertOwn(c: ApiContext, { backend, engine }: ApiParts, turnId: string): Promise<void> {
  const within = c.get('within');
  const { sessionId } = await backend.turns.find(turnId);
  try {
    await engine.store.read('findSession', { idOrPrefix: sessionId, within });
  } catch (thrown) {
    if (!hasCode(thrown, 'session_not_found')) throw thrown;
    throw new MoiraiError('turn_not_found', `there is no turn ${turnId}`);
  }
}

function turnView({ turnId, sessionId, state, reply }: ReadTurn) {
  const error = reply === null ? null : errorOfReply(reply);
  return {
    id: turnId,
    session_id: sessionId,
    state,
    outcome: reply?.outcome ?? null,
    reply: reply === null || error !== null ? null : reply.text,
    error: error === null ? null : { ...error },
  };
}
