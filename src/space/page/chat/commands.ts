import { postJson, type Source } from '../data/source.ts';
import type { Outcome } from './send-message.ts';

/** `takes` is what stands behind the name. */
export type Command = ReturnType<typeof parseHelp>[number];

/** The commands a gateway has, those of its plugins too: what its `/help` says. It leaves no session behind. */
export async function askForCommands(source: Source): Promise<Command[]> {
  const { reply } = await postJson<Outcome>(source, '/v1/chat', { text: '/help', platform: 'web', stream: false });
  return parseHelp(reply);
}

/** Lines such as `/new, /reset [title] - end this session`; every name is a command of its own. */
export function parseHelp(text: string) {
  return text.split('\n').flatMap((line) => {
    const dash = line.indexOf(' - ');
    const [names = ''] = /^(?:\/[\w-]+(?:, )?)+/.exec(line.slice(0, Math.max(dash, 0))) ?? [];
    const [takes, summary] = [line.slice(names.length, dash).trim(), line.slice(dash + 3)];
    return (names.match(/[\w-]+/g) ?? []).map((name) => ({ name, takes, summary }));
  });
}

/** What is being typed, as long as it is the name of a command: its beginning. */
export function beginningOf(text: string): string | null {
  return /^\/([\w-]*)$/.exec(text)?.[1]?.toLowerCase() ?? null;
}

/** Commands that begin so, those that contain it behind them. */
export function matching(commands: readonly Command[], beginning: string): Command[] {
  const first = commands.filter(({ name }) => name.startsWith(beginning));
  const others = commands.filter(({ name }) => !name.startsWith(beginning) && name.includes(beginning));
  // Every name contains some one letter.
  return beginning.length < 2 ? first : [...first, ...others];
}
