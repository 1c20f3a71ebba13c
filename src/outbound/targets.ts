import { MoiraiError } from '../errors/moirai-error.ts';
import { keyFor, splitPlatformName } from '../lifecycle/session-key.ts';
import type { Place } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';
import { accountOf, deliverable } from '../turns/reply-target.ts';
import { findHome } from './home-channel.ts';
import type { KnownPlace } from './place-store.ts';

/** Where something goes that is no reply. */
export interface TargetPlace {
  readonly platform: string;
  readonly target: Readonly<Record<string, unknown>>;
  /** The conversation that is to know of it; null where there is not one but many. */
  readonly key: string | null;
}

export interface TargetDeps {
  readonly store: Store;
  readonly rules: { readonly groupPerUser: boolean; readonly threadPerUser: boolean };
  /** The session that asks; null where nobody does. */
  readonly asker: (Parameters<typeof deliverable>[0] & { readonly key: string }) | null;
}

/**
 * The place that a target names: `origin`, `home`, `<platform>` for its home channel, `<platform>:<chat>[:<thread>]`, or a
 * name or alias of the directory. Behind one of these, `:new=<title>[;tags=<tag>,<tag>]` opens a place in it, as a post in a
 * forum. Null for `local`: nothing is sent. Throws `target_unknown`.
 */
export async function resolveTarget(text: string, deps: TargetDeps): Promise<TargetPlace | null> {
  const target = text.trim();
  if (target === 'local') return null;
  if (target === 'origin') return originOf(deps);
  const home = await findHome(deps.store);
  if (target === 'home' || target === home?.platform) {
    if (home === null) throw unknown(target, 'there is no home channel; /sethome makes one');
    return { key: null, ...home };
  }
  const opening = openingIn(target);
  if (opening === null) return targetPlace(await findPlace(target, deps.store), deps);
  const { platform, place } = await findPlace(opening.within, deps.store);
  return { platform, target: { ...place, opens: opening.opens }, key: null };
}

const OPENING = ':new=';
const TAGS = ';tags=';

function openingIn(target: string): { within: string; opens: NonNullable<Place['opens']> } | null {
  const at = target.indexOf(OPENING);
  if (at < 0) return null;
  const [title = '', tags = ''] = target.slice(at + OPENING.length).split(TAGS, 2);
  const named = tags.split(',').map((tag) => tag.trim());
  if (title.trim() === '') throw unknown(target, 'what it opens needs a title');
  return { within: target.slice(0, at), opens: { title: title.trim(), tags: named.filter((tag) => tag !== '') } };
}

function originOf({ asker }: TargetDeps): TargetPlace {
  if (asker === null || !deliverable(asker)) throw unknown('origin', 'nothing can be sent to where this comes from');
  return { platform: accountOf(asker), target: asker.origin ?? {}, key: asker.key };
}

async function findPlace(target: string, store: Store): Promise<KnownPlace> {
  const exact = await store.read('placeNamed', { name: target });
  if (exact !== null) return exact;
  const places = await store.read('listPlaces', { platform: null });
  const words = target.toLowerCase();
  const named = places.filter(({ name }) => name?.toLowerCase() === words);
  const [found, another] =
    named.length > 0 ? named : places.filter(({ name }) => name?.toLowerCase().startsWith(words));
  if (found === undefined) throw unknown(target, 'nobody has talked there, and nothing is called so');
  if (another !== undefined) {
    throw unknown(target, `that could be ${found.platform}:${found.id} or ${another.platform}:${another.id}`);
  }
  return found;
}

function targetPlace({ platform, place }: KnownPlace, { rules }: TargetDeps): TargetPlace {
  return { platform, target: place, key: keyOfPlace(platform, place as unknown as Place, rules) };
}

/**
 * The key of the conversation at a place; null where everybody has one of their own, and nobody can say whose it would be.
 * `name` is that of the platform, with its account.
 */
export function keyOfPlace(
  name: string,
  { type, chat, scope, thread }: Place,
  rules: TargetDeps['rules'],
): string | null {
  const own = thread === undefined && type !== 'thread' ? rules.groupPerUser : rules.threadPerUser;
  if (type !== 'dm' && own) return null;
  const place = { ...(scope === undefined ? {} : { scope }), ...(thread === undefined ? {} : { thread }) };
  return keyFor({ ...splitPlatformName(name), type, chat, ...place }, rules);
}

function unknown(target: string, why: string): MoiraiError {
  return new MoiraiError('target_unknown', `there is no target "${target}": ${why}`);
}
