import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findHome } from '../../src/outbound/home-channel.ts';
import { workspaceFor } from '../../src/people/workspaces.ts';
import { PeopleScene, type Spot } from './people-scene.ts';

const ROLES = { stranger: 10, paired: 11, admin: 12, revoked: 13 } as const;
const OTHER = 14;
const PLACES = ['own chat', "another's chat", 'group', 'topic'] as const;
type Role = keyof typeof ROLES;
type Place = (typeof PLACES)[number];
const SPOTS: Readonly<Record<Place, Spot | null>> = {
  'own chat': 'dm',
  "another's chat": null,
  group: 'group',
  topic: 'topic',
};
const roles = Object.keys(ROLES) as Role[];
const cells = new Map<string, string>();

let scene: PeopleScene;

beforeAll(async () => {
  const talkers = [ROLES.paired, ROLES.admin, ROLES.revoked, OTHER];
  scene = await PeopleScene.open(talkers, { memory: { provider: 'sqlite', review_every: 0 } });
  await scene.promote(ROLES.admin);
  for (const spot of ['dm', 'group', 'topic'] as const) {
    for (const person of talkers) {
      const [file, text] = [fileOf(person, spot), `kept ${secretOf(person, spot)}`];
      scene.say(person, `/queue ${markOf(person, spot)} said ${secretOf(person, spot)}`, spot);
      await callTool(person, spot, 'write_file', { path: file, text });
      await callTool(person, spot, 'remember', { fact: `${markOf(person, spot)} told ${secretOf(person, spot)}` });
    }
  }
  await scene.revoke(ROLES.revoked);
}, 60_000);

/** By which the words of a person at a place are asked for. */
const markOf = (person: number, spot: Spot): string => `mark${person}${spot}`;
/** What only those are to learn who may. */
const secretOf = (person: number, spot: Spot): string => `secret${person}${spot}`;
const fileOf = (person: number, spot: Spot): string => `file-${person}-${spot}.txt`;

afterAll(() => scene.close());

/** Every update was taken or refused. */
async function handled(): Promise<void> {
  await scene.until('all updates are handled', () => scene.bot.pending.length === 0);
}

async function unfinished(): Promise<number> {
  return (await scene.gateway.store.read('unfinishedTurns', { limit: 100 })).length;
}

function set(surface: string, role: Role, place: Place, value: string): void {
  cells.set(`${surface}/${role}/${place}`, value);
}

/** Fills the cells of a surface, which are those of the docs; a place in which it cannot happen has a dash. */
async function each(surface: string, observe: (role: Role, place: Place) => Promise<string>): Promise<void> {
  for (const role of roles) for (const place of PLACES) set(surface, role, place, await observe(role, place));
  expect(rowsOf(surface)).toEqual(DOCS.split('\n').filter((line) => line.startsWith(`| ${surface} | `) && isRow(line)));
}

const DOCS = readFileSync(join(import.meta.dirname, '../../docs/access-matrix.md'), 'utf8');
/** One of the table of roles, and not of the one that explains the places. */
const isRow = (line: string): boolean => roles.some((role) => line.includes(` | ${role} | `));

function rowsOf(surface: string): string[] {
  return roles.map((role) => {
    const row = PLACES.map((place) => cells.get(`${surface}/${role}/${place}`) ?? '?');
    return `| ${[surface, role, ...row].join(' | ')} |`;
  });
}

/** The conversation in which a person's words are at a place; in a direct chat of another, that other's. */
function keyAt(person: number, place: Place): string {
  if (place === 'topic') return 'agent:main:telegram:thread:-200:5';
  if (place === 'group') return `agent:main:telegram:group:-100:${person}`;
  return `agent:main:telegram:dm:${place === 'own chat' ? person : OTHER}`;
}

/** Has the agent call a tool for a person at a place: what it answers, or null when the agent was given nothing to do. */
async function callTool(person: number, spot: Spot, tool: string, args: object): Promise<string | null> {
  const before = scene.runner.tasks.length;
  const answers = scene.runner.toolAnswers.length;
  // A command does not wait for more of the same message.
  scene.say(person, `/queue please call ${tool} ${JSON.stringify(args)}`, spot);
  await handled();
  await scene.until('it is done', async () => (await unfinished()) === 0);
  if (scene.runner.tasks.length === before) return null;
  expect(scene.runner.toolAnswers).toHaveLength(answers + 1);
  return scene.runner.toolAnswers.at(-1) ?? '';
}

test('a message is answered', async () => {
  await each('message', async (role, place) => {
    const spot = SPOTS[place];
    if (spot === null) return '-';
    const before = scene.runner.tasks.length;
    const shown = scene.seen(ROLES[role]).length;
    scene.say(ROLES[role], `words of ${role}`, spot);
    await handled();
    if ((await unfinished()) > 0 || scene.runner.tasks.length > before) {
      await scene.until('it is answered', async () => (await unfinished()) === 0);
      return scene.runner.tasks.length > before ? 'yes' : 'no';
    }
    const last = scene.seen(ROLES[role]).at(-1) ?? '';
    return scene.seen(ROLES[role]).length > shown && last.includes('pairing approve') ? 'a code' : 'no';
  });
}, 60_000);

test('a command that concerns the conversation, and an operator’s', async () => {
  await each('command', async (role, place) => {
    const spot = SPOTS[place];
    if (spot === null) return '-';
    const before = scene.runner.tasks.length;
    scene.say(ROLES[role], `/queue by ${role}`, spot);
    await handled();
    await scene.until('it is done', async () => (await unfinished()) === 0);
    return scene.runner.tasks.length > before ? 'yes' : 'no';
  });
  await each('/sethome, /restart', async (role, place) => {
    const spot = SPOTS[place];
    if (spot === null) return '-';
    const { store } = scene.gateway;
    await store.write('keepSetting', { name: 'home_channel', value: JSON.stringify({ platform: 'none', target: {} }) });
    scene.say(ROLES[role], '/sethome', spot);
    await handled();
    return (await findHome(store))?.platform === 'telegram' ? 'yes' : 'no';
  });
}, 60_000);

/** The agent asks, at a place: for the person's own work in their own chat and the group, else for another's. */
async function ask(role: Role, place: Place): Promise<string> {
  const own = place === 'own chat' || place === 'group';
  const person = own && role !== 'stranger' ? ROLES[role] : OTHER;
  // Who is shut out asked for it before that.
  if (person === ROLES.revoked) await scene.pair(person);
  const key = keyAt(person, place);
  scene.say(person, '/queue please ask', SPOTS[place] ?? 'dm');
  const waiting = () => scene.gateway.store.read('waitingApprovals', { key });
  await scene.until('it is asked', async () => (await waiting()).length === 1);
  if (person === ROLES.revoked) await scene.revoke(person);
  return (await waiting())[0]?.id ?? '';
}

/** What came of a question; one that is open still is refused by an admin. */
async function settled(id: string): Promise<string> {
  const decision = (await scene.gateway.store.read('findApproval', { id }))?.decision ?? null;
  if (decision === null) await scene.answer(scene.press(ROLES.admin, `approval:deny:${id}`));
  await scene.until('its turn is over', async () => (await unfinished()) === 0);
  return decision === 'once' ? 'yes' : decision === 'deny' ? 'may refuse' : 'no';
}

test('a question is answered by its button, and by /approve', async () => {
  await each('button', async (role, place) => {
    const id = await ask(role, place);
    const press = (answer: string) => scene.press(ROLES[role], `approval:${answer}:${id}`, SPOTS[place] ?? 'dm');
    if ((await scene.answer(press('once'))) !== 'Allowed.') await scene.answer(press('deny'));
    return settled(id);
  });
  await each('/approve', async (role, place) => {
    const spot = SPOTS[place];
    if (spot === null) return '-';
    const id = await ask(role, place);
    for (const answer of ['/approve', '/deny']) {
      scene.say(ROLES[role], answer, spot);
      await handled();
    }
    return settled(id);
  });
}, 90_000);

/** Where the person reads from: at the place itself, and from their own chat where the place is another's. */
const readAt = (place: Place): Spot => SPOTS[place] ?? 'dm';
/** Whose words or files are meant: their own in their own chat, elsewhere another's. */
const spokenBy = (role: Role, place: Place): number => (place === 'own chat' ? ROLES[role] : OTHER);

/** Tries tools one after the other: `yes` when one of them answers with the secret of the place. */
async function tryTools(role: Role, place: Place, calls: readonly (readonly [string, object])[]): Promise<string> {
  const secret = secretOf(spokenBy(role, place), readAt(place));
  const answers = [];
  for (const [tool, args] of calls) answers.push(await callTool(ROLES[role], readAt(place), tool, args));
  return answers.some((answer) => answer?.includes(secret)) ? 'yes' : 'no';
}

test('files are read', async () => {
  const workspace = { folder: join(scene.gateway.home, 'workspaces'), perConversation: true };
  const folderOf = (person: number, place: Place): string =>
    workspaceFor(workspace, { kind: 'chat', key: keyAt(person, place) });
  await each('file', (role, place) => {
    const person = spokenBy(role, place);
    const [folder, file] = [folderOf(person, place), fileOf(person, readAt(place))];
    const paths = [file, join('..', basename(folder), file), join(folder, file)];
    return tryTools(
      role,
      place,
      paths.map((path) => ['read_file', { path }] as const),
    );
  });
  // What nobody else could read was there all the time.
  for (const place of PLACES) {
    const [folder, spot] = [folderOf(OTHER, place === 'own chat' ? "another's chat" : place), readAt(place)];
    expect(readFileSync(join(folder, fileOf(OTHER, spot)), 'utf8')).toContain(secretOf(OTHER, spot));
  }
}, 60_000);

test('memories come back, by a tool and by themselves', async () => {
  await each('memory', async (role, place) => {
    const mark = markOf(spokenBy(role, place), readAt(place));
    const before = scene.runner.tasks.length;
    const found = await tryTools(role, place, [['memory', { action: 'recall', text: mark }]]);
    const secret = secretOf(spokenBy(role, place), readAt(place));
    const prompts = scene.runner.tasks.slice(before).map(({ note, about }) => `${note} ${about}`);
    expect(prompts.some((prompt) => prompt.includes(secret)) ? 'yes' : 'no').toBe(found);
    return found;
  });
}, 60_000);

test('past words are found', async () => {
  await each('search', (role, place) =>
    tryTools(role, place, [['search_sessions', { text: markOf(spokenBy(role, place), readAt(place)) }]]),
  );
}, 60_000);

const TARGETS: Readonly<Record<Place, string>> = {
  'own chat': 'origin',
  "another's chat": `telegram:${OTHER}`,
  group: 'telegram:-100',
  topic: 'telegram:-200:5',
};

test('something is sent from the own chat', async () => {
  await each('send', async (role, place) => {
    const person = ROLES[role];
    const text = `sent by ${role} to ${place}`;
    const chat = place === 'own chat' ? person : place === "another's chat" ? OTHER : place;
    const arrived = (): boolean => scene.seen(chat).some((seen) => seen.endsWith(text));
    const waiting = () => scene.gateway.store.read('waitingApprovals', { key: keyAt(person, 'own chat') });
    const before = scene.runner.tasks.length;
    scene.say(person, `/queue please call send_message ${JSON.stringify({ target: TARGETS[place], text })}`);
    await handled();
    await scene.until('it is done or asked', async () => (await unfinished()) === 0 || (await waiting()).length > 0);
    if (scene.runner.tasks.length === before) return 'no';
    const [question] = await waiting();
    if (question === undefined) return scene.until('it arrives', arrived).then(() => 'yes');
    expect(arrived()).toBe(false);
    const allow = (by: number) => scene.answer(scene.press(by, `approval:once:${question.id}`));
    const own = (await allow(person)) === 'Allowed.';
    if (!own) expect(await allow(ROLES.admin)).toBe('Allowed.');
    await scene.until('it arrives', arrived);
    return own ? 'if they allow it' : 'if an admin allows it';
  });
}, 60_000);

test('the matrix is the one of docs/access-matrix.md', () => {
  const surfaces = [...new Set([...cells.keys()].map((key) => key.split('/').slice(0, -2).join('/')))];
  const lines = surfaces.flatMap(rowsOf);
  const head = [`| surface | role | ${PLACES.join(' | ')} |`, `|${'---|'.repeat(PLACES.length + 2)}`];
  const table = [...head, ...lines].join('\n');
  process.stdout.write(`${table}\n`);
  expect(lines).toHaveLength(9 * roles.length);
  expect(DOCS).toContain(`${table}\n`);
});
