import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Abilities } from '../../src/platforms/platform.ts';
import { SERVED } from '../../src/platforms/served.ts';
import type { Plays } from './contract/scene.ts';
import type { SubmissionSubject } from './contract/submitting.ts';
import type { PlatformSubject } from './subject.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const page = fileURLToPath(new URL('../../docs/platforms/README.md', import.meta.url));

type AnySubject = PlatformSubject | SubmissionSubject;

/** Every platform as its suites try it. */
async function readSubjects(): Promise<AnySubject[]> {
  const files = globSync('*/subject.ts', { cwd: here }).sort();
  return Promise.all(files.map(async (file) => ((await import(`${here}${file}`)) as { subject: AnySubject }).subject));
}

const YES = 'yes';
const NO = '–';
const shown = (is: boolean | undefined): string => (is ? YES : NO);

/** Of those on which people talk. */
const OF_CHATS: readonly (readonly [string, (subject: PlatformSubject) => string])[] = [
  ['direct chats', ({ keys }) => shown(keys.dm !== undefined)],
  ['groups', ({ keys }) => shown(keys.group !== undefined)],
  ['threads', ({ keys }) => shown(keys.thread !== undefined)],
  ['strangers are kept out', () => YES],
  ['pairing', ({ keys }) => shown(keys.dm !== undefined)],
  ['approval by button', ({ descriptor }) => shown(descriptor.abilities.buttons)],
  [
    'live replies',
    ({ descriptor: { abilities } }) => (abilities.streams ? 'streamed' : abilities.edit ? 'edited' : NO),
  ],
  ['typing', ({ descriptor }) => shown(descriptor.abilities.typing)],
  ['signs at messages', ({ descriptor }) => shown(descriptor.abilities.reactions)],
  ['files in', ({ descriptor }) => shown(descriptor.abilities.files.in)],
  ['files out', ({ descriptor }) => shown(descriptor.abilities.files.out)],
  ['changed messages', ({ modes }) => played(modes, ({ changes }) => changes)],
  ['what happens beside messages', ({ modes }) => modes[0]?.plays.happenings?.join(', ') || NO],
  ['sent once after a lost answer', ({ descriptor, modes }) => sentOnce(descriptor.abilities, modes)],
  ['answers only for a while', ({ descriptor }) => shown(descriptor.abilities.needsReply === 'window')],
];

/** What is tried of each: a column says yes only where a test of the suites has seen it. */
const COLUMNS: readonly (readonly [string, (subject: AnySubject) => string])[] = [
  ['connected', ({ modes }) => modes.map(({ title }) => title).join('; ')],
  ['programs bring work', (subject) => shown('kind' in subject)],
  ...OF_CHATS.map(([title, of]) => [title, (subject: AnySubject) => ('kind' in subject ? NO : of(subject))] as const),
];

function played(modes: PlatformSubject['modes'], of: (plays: Plays) => boolean | undefined): string {
  return shown(modes.every(({ plays }) => of(plays)));
}

/** By a key that the server knows, or because it is looked for before it is sent again. */
function sentOnce({ idempotent = false }: Abilities, modes: PlatformSubject['modes']): string {
  if (idempotent !== false) return 'by its key';
  return modes.every(({ plays }) => plays.searched) ? 'by looking for it' : NO;
}

function matrixOf(subjects: readonly AnySubject[]): string {
  const head = ['', ...subjects.map(({ descriptor: { label, name } }) => `[${label}](${name}.md)`)];
  const rows = COLUMNS.map(([title, of]) => [title, ...subjects.map(of)]);
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

test('every platform is tried by the suites', async () => {
  const tried = (await readSubjects()).map(({ descriptor }) => descriptor.name);
  expect(tried.sort()).toEqual(SERVED.map(({ name }): string => name).sort());
});

test('no platform claims what none of its modes plays', async () => {
  for (const subject of await readSubjects()) {
    if ('kind' in subject) continue;
    for (const { title, plays, abilities = subject.descriptor.abilities } of subject.modes) {
      const { lostAnswers = false, searched = false, window = false } = plays;
      const claimed = [(abilities.idempotent ?? false) !== false || searched, abilities.needsReply === 'window'];
      const played = [lostAnswers, window];
      expect([title, claimed.map((is, i) => !is || played[i])]).toEqual([title, [true, true]]);
    }
  }
});

test('docs/platforms/README.md says what the suites have seen (npx vitest run test/platforms/matrix -u writes it)', async () => {
  const text = readFileSync(page, 'utf8');
  const table = /(?<=<!-- made by test\/platforms\/matrix\.test\.ts -->\n)(?:\|.*\n)+/;
  expect(text).toMatch(table);
  const matrix = matrixOf(await readSubjects());
  await expect(text.replace(table, () => `${matrix}\n`)).toMatchFileSnapshot(page);
});
