import type { Command } from 'commander';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { approveCode } from '../../people/pairing.ts';
import type { Pairing } from '../../people/pairing-store.ts';
import type { Store } from '../../store/port.ts';
import { type Answer, inStore, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { printable, relativeTime, table } from '../print.ts';
import type { StoreSession } from '../store-session.ts';

export function define(group: Command): void {
  group
    .command('list')
    .summary('who waits, and who was let in')
    .description('Lists who asked to talk to the agent and waits, and who was let in.')
    .addHelpText(
      'after',
      '\nWho is named in access.allow or in the allow of a platform is not listed: they need no pairing.',
    )
    .action(inStore(list));
  group
    .command('approve')
    .summary('let somebody in')
    .description('Lets somebody in who was given a code.')
    .usage('[platform] <code>')
    .argument(
      '<words...>',
      'the code they tell you, or the request id of `moirai pairing list`; before it the platform, where people wait on several',
    )
    .addHelpText(
      'after',
      '\nWho is let in while there is no admin becomes one.\nFive wrong codes in a row close the door of a platform for an hour.',
    )
    .action(inStore(approve));
  group
    .command('revoke')
    .summary('shut somebody out')
    .description('Shuts somebody out again, or takes back a request. What they have under way is not begun any more.')
    .usage('[platform] <user>')
    .argument('<words...>', WHO)
    .action(inStore(revoke));
  group
    .command('promote')
    .summary('make somebody an admin')
    .description('Makes somebody who was let in an admin, who may allow what agents ask for and give every command.')
    .usage('[platform] <user>')
    .argument('<words...>', WHO)
    .action(inStore((here: StoreSession, words: readonly string[]) => setAdmin(here, words, true)));
  group
    .command('demote')
    .summary('take the rights of an admin back')
    .description('Makes an admin somebody like the others again. Who is named in access.admins stays one.')
    .usage('[platform] <user>')
    .argument('<words...>', WHO)
    .action(inStore((here: StoreSession, words: readonly string[]) => setAdmin(here, words, false)));
}

const WHO = 'the id that `moirai pairing list` shows; before it the platform, where several know the user';

async function list({ store }: StoreSession): Promise<Answer> {
  const pairings = await store.read('listPairings', {});
  const rows = pairings.map(({ platform, userId, name, requestId, requestedAt, approvedAt, admin }) => [
    platform,
    userId,
    name ?? '-',
    approvedAt === null ? 'waits' : admin ? 'admin' : 'let in',
    relativeTime(approvedAt ?? requestedAt),
    approvedAt === null ? requestId : '-',
  ]);
  const text = table(['PLATFORM', 'USER', 'NAME', 'STATE', 'SINCE', 'REQUEST'], rows);
  return listing({ data: pairings.map(viewOf), text, none: 'Nobody waits, and nobody was let in.' });
}

async function approve({ store, settings }: StoreSession, words: readonly string[]): Promise<Answer> {
  const { platform: given, word: code } = readWords(words, 'code');
  const waiting = (await store.read('listPairings', {})).filter(({ approvedAt }) => approvedAt === null);
  const [waitedOn, another] = new Set(waiting.map((each) => each.platform));
  const platform = given ?? waitedOn;
  if (platform === undefined) throw new MoiraiError('pairing_unknown', 'nobody waits to be let in');
  if (given === undefined && another !== undefined) {
    throw new MoiraiError('usage', `people wait on ${platform} and on ${another}: say which platform the code is of`);
  }
  const { admins } = (await readConfig(settings)).access;
  const pairing = await approveCode(store, platform, code, admins.length === 0);
  const who = printable(pairing.name === null ? pairing.userId : `${pairing.name} (${pairing.userId})`);
  const admin = pairing.admin
    ? '\nThey are the first, and so an admin: they may allow what agents ask for, and give every command. `moirai pairing demote` takes that back.'
    : '';
  return { json: viewOf(pairing), text: `${who} on ${platform} may talk to the agent now.${admin}` };
}

async function revoke({ store }: StoreSession, words: readonly string[]): Promise<Answer> {
  const { platform, userId } = await findPerson(store, words);
  await store.write('revokePairing', { platform, userId });
  return {
    json: { platform, user_id: userId, state: 'revoked' },
    text: `${userId} on ${platform} may not talk to the agent any more.`,
  };
}

async function setAdmin({ store }: StoreSession, words: readonly string[], admin: boolean): Promise<Answer> {
  const { platform, userId } = await findPerson(store, words);
  if (!(await store.write('setPairedAdmin', { platform, userId, admin }))) {
    throw new MoiraiError('pairing_unknown', `${userId} on ${platform} waits and was not let in yet`);
  }
  const text = admin ? `${userId} on ${platform} is an admin now.` : `${userId} on ${platform} is no admin any more.`;
  return { json: { platform, user_id: userId, admin }, text };
}

/** The person that `[platform] <user>` names, among those who were let in or wait. */
async function findPerson(store: Store, words: readonly string[]): Promise<Pairing> {
  const { platform: given, word: userId } = readWords(words, 'user');
  const known = (await store.read('listPairings', {})).filter((pairing) => pairing.userId === userId);
  const [found, another] = known.filter(({ platform }) => given === undefined || platform === given);
  if (found === undefined) throw new MoiraiError('pairing_unknown', `nobody called ${userId} was let in or waits`);
  if (another !== undefined) {
    throw new MoiraiError('usage', `${userId} is on ${found.platform} and on ${another.platform}: say which`);
  }
  return found;
}

/** Reads `[platform] <word>`. */
function readWords(words: readonly string[], what: string): { platform: string | undefined; word: string } {
  const [first = '', second, ...rest] = words;
  if (rest.length > 0) throw new MoiraiError('usage', `one platform and one ${what} at a time`);
  return second === undefined ? { platform: undefined, word: first } : { platform: first, word: second };
}

function viewOf({ platform, userId, name, requestId, requestedAt, expiresAt, approvedAt, admin }: Pairing) {
  return {
    platform,
    user_id: userId,
    name,
    request_id: requestId,
    state: approvedAt === null ? 'waiting' : 'approved',
    requested_at: isoTime(requestedAt),
    expires_at: isoTime(expiresAt),
    approved_at: isoTime(approvedAt),
    admin,
  };
}
