import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PluginContext } from 'moirai';

interface Entry {
  readonly event: string;
  readonly session: string | null;
  readonly platform: string | null;
  readonly reason: string;
  readonly at: string;
}

export function setup(ctx: PluginContext): void {
  const file = join(ctx.folder, 'logbook.jsonl');
  const show = Number(ctx.config.show ?? 5);

  /** What was written so far; nothing before the first session is over. */
  async function entries(): Promise<Entry[]> {
    const text = await readFile(file, 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Entry);
  }

  async function lastOnes(count: number): Promise<string> {
    const lines = (await entries()).slice(-count).map(({ at, session, reason }) => `${at} ${session} ${reason}`);
    return lines.length === 0 ? 'The logbook is empty.' : lines.join('\n');
  }

  // An event can come twice, with the same id: so the book is asked before it is written to.
  ctx.on('on_session_finalize', async ({ id, session_id, platform, reason, at }) => {
    if ((await entries()).some(({ event }) => event === id)) return;
    const entry: Entry = { event: id, session: session_id, platform, reason, at };
    await appendFile(file, `${JSON.stringify(entry)}\n`);
  });

  ctx.command({
    name: 'logbook',
    takes: '[how many]',
    summary: 'shows the last sessions that are over',
    run: ({ args }) => lastOnes(Number(args) || show),
  });

  ctx.tool({
    name: 'read_logbook',
    description: 'Shows the last sessions that are over, one line each.',
    inputSchema: { type: 'object', properties: { count: { type: 'integer', minimum: 1 } } },
    together: true,
    run: ({ count }: { count?: number }) => lastOnes(count ?? show),
  });

  // Nobody but this plugin writes to the book.
  ctx.gate(
    'pre_tool_call',
    ({ args }) => {
      if (!JSON.stringify(args ?? null).includes('logbook.jsonl')) return null;
      return { action: 'block', reason: 'the logbook is read with read_logbook, and written by nobody' };
    },
    { timeout: 1000, onFailure: 'closed' },
  );
}
