import { isatty } from 'node:tty';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { AddablePlatform } from '../../platforms/registry.ts';

/**
 * The answers to what a platform asks for: those that were given, and the others from the person at the terminal. Throws
 * `usage` where something is missing and nobody can be asked.
 */
export async function askInTerminal(
  { label, name, steps, asks }: AddablePlatform,
  given: ReadonlyMap<string, string>,
  json: boolean,
): Promise<Map<string, string>> {
  const open = asks.filter(({ key }) => !given.has(key));
  const needed = open.filter(({ optional, when }) => optional !== true && when?.(given) !== false);
  const isThere = isatty(0) && isatty(1) && !json;
  if (!isThere || open.length === 0) {
    if (needed.length === 0) return new Map(given);
    const flags = needed.map(({ key }) => `--set ${key}=...`).join(' ');
    throw new MoiraiError('usage', `${label} needs more: moirai platforms add ${name} ${flags}`);
  }
  const { intro, note, text, password, isCancel, cancel } = await import('@clack/prompts');
  intro(`Connecting ${label}`);
  note(steps.map((step, i) => `${i + 1}. ${step}`).join('\n'), 'First');
  const answers = new Map(given);
  for (const { key, question, secret, optional = false, when } of open) {
    if (when?.(answers) === false) continue;
    const validate = (value: string | undefined): string | undefined =>
      optional || (value ?? '').trim() !== '' ? undefined : 'This is needed.';
    const message = optional ? `${question} (may be left empty)` : question;
    const answer = await (secret === undefined ? text({ message, validate }) : password({ message, validate }));
    if (isCancel(answer)) {
      cancel('Nothing was written.');
      throw new MoiraiError('usage', 'it was broken off; nothing was written');
    }
    if ((answer ?? '').trim() !== '') answers.set(key, answer.trim());
  }
  return answers;
}
