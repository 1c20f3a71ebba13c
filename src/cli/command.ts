import type { Command } from 'commander';
import { print, printable, printJson } from './print.ts';
import { type Settings, settingsOf } from './settings.ts';
import { openStoreSession, type StoreSession } from './store-session.ts';

/** What a command answers: data for `--json`, and lines for people. */
export interface Answer {
  readonly json: unknown;
  readonly text: string;
}

/** Commander calls it with the arguments of the command, its options, and the command itself. */
type Action = (...args: unknown[]) => Promise<void>;

/** The action of a command that prints what `run` answers; `run` may also print by itself. */
export function answer<Args extends unknown[]>(
  run: (settings: Settings, ...args: Args) => Promise<Answer | undefined>,
): Action {
  return async (...args) => {
    const settings = settingsOf(args.at(-1) as Command);
    await printAnswer(settings, await run(settings, ...(args as Args)));
  };
}

/** The same for a command that works in the store, which is open while `run` works and while its answer is printed. */
export function inStore<Args extends unknown[]>(
  run: (here: StoreSession, ...args: Args) => Promise<Answer | undefined>,
): Action {
  return async (...args) => {
    const settings = settingsOf(args.at(-1) as Command);
    await openStoreSession(settings, async (here) => printAnswer(settings, await run(here, ...(args as Args))));
  };
}

/** A list: `text` shows its `data`, `none` says that it is empty, and `next` is where the next page begins. */
export function listing(list: { data: readonly unknown[]; text: string; none: string; next?: string | null }): Answer {
  const { data, none, next = null } = list;
  const more = next === null ? '' : `There are more: add --cursor ${printable(next)}\n`;
  return { json: { data, next }, text: data.length === 0 ? none : list.text + more };
}

async function printAnswer(settings: Settings, given: Answer | undefined): Promise<void> {
  if (given === undefined) return;
  if (settings.json) return printJson(given.json);
  return print(given.text.endsWith('\n') ? given.text : `${given.text}\n`);
}
