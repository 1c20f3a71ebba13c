import { z } from '@hono/zod-openapi';
import { isWithin } from '../../lifecycle/namespace.ts';
import { APPROVAL_ANSWERS } from '../../lifecycle/states.ts';
import { approvalView } from '../../people/approval-view.ts';
import type { Api, ApiParts } from '../api.ts';
import { cursorParam, limitParam } from '../query.ts';
import { json, jsonBody, pageOf, route } from '../schemas.ts';

const time = z.string().openapi({ format: 'date-time', description: 'ISO 8601, UTC' });

const approvalSchema = z
  .object({
    id: z.string(),
    session_id: z.string().openapi({ description: 'The session whose people are asked.' }),
    session_key: z.string(),
    turn_id: z.string(),
    tool: z.string(),
    summary: z.string().openapi({ description: 'What would be done.' }),
    asked_at: time,
    expires_at: time,
    decision: z.string().nullable().openapi({ description: 'Null while it waits.' }),
    by: z.string().nullable(),
  })
  .openapi('Approval');

const list = route('get', '/v1/approvals', 'listApprovals', {
  summary: 'What waits for a person to allow it, oldest first',
  access: 'see',
  request: { query: z.object({ limit: limitParam, cursor: cursorParam }) },
  responses: { 200: json(pageOf(approvalSchema), 'One page.') },
});

const answer = route('post', '/v1/approvals/{id}', 'answerApproval', {
  summary: 'Allows or refuses what waits; the first answer counts',
  access: 'admin',
  request: {
    params: z.object({ id: z.string().max(512) }),
    body: jsonBody(
      z.strictObject({
        decision: z.enum(APPROVAL_ANSWERS),
        reason: z.string().max(2000).nullish().openapi({ description: 'Why, for the agent that is refused.' }),
      }),
      true,
    ),
  },
  responses: { 200: json(approvalSchema, 'The question with its answer.') },
});

/** What agents ask people to allow. */
export function addApprovalRoutes(app: Api, { backend }: ApiParts): void {
  app.openapi(list, async (c) => {
    const { limit, cursor } = c.req.valid('query');
    const within = c.get('within');
    const all = (await backend.approvals.waiting()).filter(({ sessionKey }) => isWithin(sessionKey, within));
    const rest = all.slice(all.findIndex(({ id }) => id === cursor) + 1);
    const data = rest.slice(0, limit);
    const next = rest.length > limit ? (data.at(-1)?.id ?? null) : null;
    return c.json({ data: data.map(approvalView), next }, 200);
  });
  app.openapi(answer, async (c) => {
    const { decision, reason } = c.req.valid('json');
    const answered = await backend.approvals.answer(c.req.valid('param').id, decision, reason ?? null);
    return c.json(approvalView(answered), 200);
  });
}
