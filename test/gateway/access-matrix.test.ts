import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { portTools } from '../../src/agent/tools/port-tools.ts';
import { toolPorts } from '../../src/gateway/tool-ports.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { ownerOf, scopeOf } from '../../src/memory/scope.ts';
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
  scene = await PeopleScene.open([ROLES.paired, ROLES.admin, ROLES.revoked, OTHER]);
  await scene.promote(ROLES.admin);
  for (const spot of ['dm', 'group', 'topic'] as const) {
    for (const person of [ROLES.paired, ROLES.admin, ROLES.revoked, OTHER]) {
      scene.say(person, `secret${person}${spot}`, spot);
      await handled();
    }
  }
  await scene.until('all are answered', async () => scene.runner.tasks.length === 12 && (await unfinished()) === 0);
  await scene.revoke(ROLES.revoked);
}, 60_000);

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

/** Fills the cells of a surface; a place in which it cannot happen has a dash. */
async function each(surface: string, observe: (role: Role, place: Place) => Promise<string>): Promise<void> {
  for (const role of roles) for (const place of PLACES) set(surface, role, place, await observe(role, place));
}

/** The conversation in which a person's words are at a place; in a direct chat of another, that other's. */
function keyAt(person: number, place: Place): string {
  if (place === 'topic') return 'agent:main:telegram:thread:-200:5';
  if (place === 'group') return `agent:main:telegram:group:-100:${person}`;
  return `agent:main:telegram:dm:${place === 'own chat' ? person : OTHER}`;
}

async function sessionAt(person: number, place: Place): Promise<Session> {
  const session = await scene.gateway.store.read('openSession', { key: keyAt(person, place) });
  if (session === null) throw new TypeError(`nobody has spoken in ${keyAt(person, place)}`);
  return session;
}

const mayTalk = (role: Role): Promise<boolean> =>
  scene.gateway.gateway.chat.access.admits({
    ...{
      platform: 'telegram',
      userId: String(ROLES[role]),
      bot: false,
      place: { type: 'dm', chat: String(ROLES[role]) },
    },
  });

function ports() {
  return toolPorts({
    ...{ engine: scene.gateway.gateway.engine, rules: { groupPerUser: true, threadPerUser: false } },
    workspace: WORKSPACE,
    platform: () => null,
    children: () => {
      throw new TypeError('no work is delegated');
    },
  });
}

const WORKSPACE = { folder: '/workspaces', perConversation: true };

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
  const person = own && (await mayTalk(role)) ? ROLES[role] : OTHER;
  const key = keyAt(person, place);
  scene.say(person, '/queue please ask', SPOTS[place] ?? 'dm');
  const waiting = () => scene.gateway.store.read('waitingApprovals', { key });
  await scene.until('it is asked', async () => (await waiting()).length === 1);
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
const readAt = (place: Place): Place => (place === "another's chat" ? 'own chat' : place);
/** Whose words or files are meant: their own in their own chat, elsewhere another's. */
const spokenBy = (role: Role, place: Place): number => (place === 'own chat' ? ROLES[role] : OTHER);

test('files, memories and past words are read', async () => {
  await each('file', async (role, place) => {
    if (!(await mayTalk(role))) return 'no';
    const { id, platform, userId } = await sessionAt(ROLES[role], readAt(place));
    const reads = await ports().workspaceOf?.({ sessionId: id, turnId: 'turn', platform, userId });
    const kept = workspaceFor(WORKSPACE, await sessionAt(spokenBy(role, place), place));
    return reads === kept ? 'yes' : 'no';
  });
  await each('memory', async (role, place) => {
    if (!(await mayTalk(role))) return 'no';
    const userId = String(ROLES[role]);
    const reads = ownerOf(scopeOf({ ...(await sessionAt(ROLES[role], readAt(place))), userId }));
    return reads === ownerOf(scopeOf(await sessionAt(spokenBy(role, place), place))) ? 'yes' : 'no';
  });
  await each('search', async (role, place) => {
    if (!(await mayTalk(role))) return 'no';
    const { id, platform } = await sessionAt(ROLES[role], readAt(place));
    const asker = { sessionId: id, turnId: 'turn', platform, userId: String(ROLES[role]) };
    const words = `secret${spokenBy(role, place)}${SPOTS[place] ?? 'dm'}`;
    return ((await ports().searchSessions?.(words, asker, 5)) ?? []).length > 0 ? 'yes' : 'no';
  });
}, 60_000);

test('something is sent', async () => {
  const [tool] = portTools({ sendMessage: async () => '' });
  await each('send', async (role, place) => {
    if (!(await mayTalk(role))) return 'no';
    const target = place === 'own chat' ? 'origin' : place === "another's chat" ? `telegram:${OTHER}` : 'telegram:-100';
    if (tool?.dangerous({ target, text: 'hello' }) === null) return 'yes';
    const own = await scene.gateway.gateway.chat.access.mayApproveOwn('telegram', String(ROLES[role]));
    return own ? 'if they allow it' : 'if an admin allows it';
  });
});

test('the matrix is the one of docs/access-matrix.md', () => {
  const surfaces = [...new Set([...cells.keys()].map((key) => key.split('/').slice(0, -2).join('/')))];
  const lines = surfaces.flatMap((surface) =>
    roles.map((role) => {
      const row = PLACES.map((place) => cells.get(`${surface}/${role}/${place}`) ?? '?');
      return `| ${[surface, role, ...row].join(' | ')} |`;
    }),
  );
  const table = [`| surface | role | ${PLACES.join(' | ')} |`, `|${'---|'.repeat(PLACES.length + 2)}`, ...lines].join(
    '\n',
  );
  process.stdout.write(`${table}\n`);
  expect(lines).toHaveLength(9 * roles.length);
  const docs = readFileSync(join(import.meta.dirname, '../../docs/access-matrix.md'), 'utf8');
  expect(docs).toContain(`${table}\n`);
});
