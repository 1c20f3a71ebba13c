import type { Connection } from '../connection.ts';
import { withDeadline } from '../deadline.ts';
import type { Backlog } from './backlog.ts';
import type { BotApi, CallSignal } from './bot-api.ts';
import type { TelegramTrouble } from './failures.ts';
import { UPDATE_KINDS } from './parse.ts';

const POLL_SECONDS = 50;
const POLL_MARGIN_MS = 10_000;
const CALL_MS = 30_000;
const CONFIRM_MS = 1000;

/** Asks for updates until the signal ends it or there is no use in asking. */
export async function poll(
  api: BotApi,
  backlog: Backlog,
  connection: Connection<TelegramTrouble>,
  signal: AbortSignal,
): Promise<void> {
  let webhookInTheWay = true;
  let healthy = false;
  while (!signal.aborted) {
    try {
      if (webhookInTheWay) {
        const order = { drop_pending_updates: false };
        await withDeadline(signal, CALL_MS, (deadline: CallSignal) => api.deleteWebhook(order, deadline));
      }
      webhookInTheWay = false;
      // After trouble the first question is a short one: it shows at once whether all is well.
      const updates = await getUpdates(api, backlog.offset, healthy ? POLL_SECONDS : 0, signal);
      backlog.confirmed(backlog.offset);
      connection.succeeded();
      healthy = true;
      if (await backlog.take(updates, signal)) connection.taken();
      else await connection.untaken(signal);
    } catch (thrown) {
      if (signal.aborted) break;
      healthy = false;
      const trouble = await connection.failed(thrown, signal);
      if (trouble.phase === 'failed') return;
      webhookInTheWay = trouble.webhookInTheWay;
    }
  }
  await confirm(api, backlog);
}

async function getUpdates(
  api: BotApi,
  offset: number | null,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const question = { timeout, allowed_updates: UPDATE_KINDS, ...(offset === null ? {} : { offset }) };
  const updates: unknown = await withDeadline(signal, timeout * 1000 + POLL_MARGIN_MS, (deadline: CallSignal) =>
    api.getUpdates(question, deadline),
  );
  return Array.isArray(updates) ? updates : [];
}

/** Spares the next start what has been taken already. It may fail: what comes again has the same id. */
async function confirm(api: BotApi, { offset }: Backlog): Promise<void> {
  if (offset === null) return;
  const question = { offset, timeout: 0, limit: 1, allowed_updates: UPDATE_KINDS };
  await api.getUpdates(question, AbortSignal.timeout(CONFIRM_MS) as CallSignal).catch(() => undefined);
}
