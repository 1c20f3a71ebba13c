import { MoiraiError } from '../errors/moirai-error.ts';
import { integer, json, nullableInteger, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';

/** A place of a platform that somebody has talked in, or that was named by hand. */
const PLACES = new Table('places', {
  platform: text,
  /** `chat` or `chat:thread`. */
  id: text,
  /** In the platform's own words. */
  place: json<Readonly<Record<string, unknown>>>(),
  /** As its people call it: from outside. */
  name: nullableText,
  /** As the operator calls it. */
  alias: nullableText,
  seenAt: integer,
  /** When it turned out that nothing can be sent there any more. */
  goneAt: nullableInteger,
  goneBecause: nullableText,
});

export type KnownPlace = RowOf<typeof PLACES>;

/** Somebody talked there: it is known from now on, and reachable again. */
export function* seePlace(ctx: TxContext, args: Pick<KnownPlace, 'platform' | 'id' | 'place' | 'name'>): Tx<void> {
  yield [
    PLACES.insert(
      { ...args, alias: null, seenAt: ctx.now, goneAt: null, goneBecause: null },
      `ON CONFLICT (platform, id) DO UPDATE SET place = excluded.place, name = COALESCE(excluded.name, places.name),
         seen_at = excluded.seen_at, gone_at = NULL, gone_because = NULL`,
    ),
  ];
}

/** The platform says that it is there: it can be named, though nobody may have talked in it yet. */
export function* listPlace(ctx: TxContext, args: Pick<KnownPlace, 'platform' | 'id' | 'place' | 'name'>): Tx<void> {
  yield [
    PLACES.insert(
      { ...args, alias: null, seenAt: ctx.now, goneAt: null, goneBecause: null },
      `ON CONFLICT (platform, id) DO UPDATE SET name = COALESCE(excluded.name, places.name), gone_at = NULL,
         gone_because = NULL`,
    ),
  ];
}

/** Nothing can be sent there any more; or again, with `because` null. */
export function* markPlace(ctx: TxContext, args: { platform: string; id: string; because: string | null }): Tx<void> {
  yield* query(
    'UPDATE places SET gone_at = ?, gone_because = ? WHERE platform = ? AND id = ?',
    args.because === null ? null : ctx.now,
    args.because,
    args.platform,
    args.id,
  );
}

/** The operator's own name for a place; null takes it away. Throws `bad_input` where another place has it. */
export function* namePlace(_ctx: TxContext, args: { platform: string; id: string; alias: string | null }): Tx<void> {
  const taken = args.alias === null ? undefined : yield* PLACES.selectOne('WHERE alias = ?', args.alias);
  if (taken !== undefined && (taken.platform !== args.platform || taken.id !== args.id)) {
    throw new MoiraiError('bad_input', `${taken.platform}:${taken.id} is called ${args.alias} already`);
  }
  const named = yield* query(
    'UPDATE places SET alias = ? WHERE platform = ? AND id = ? RETURNING id',
    args.alias,
    args.platform,
    args.id,
  );
  if (named.length === 0) throw new MoiraiError('bad_input', `nobody has talked in ${args.platform}:${args.id} yet`);
}

export function* listPlaces(_ctx: TxContext, args: { platform: string | null }): Tx<KnownPlace[]> {
  const order = `ORDER BY platform, seen_at DESC, id LIMIT ${MOST_LISTED}`;
  return args.platform === null
    ? yield* PLACES.select(order)
    : yield* PLACES.select(`WHERE platform = ? ${order}`, args.platform);
}

export function* findPlace(_ctx: TxContext, args: { platform: string; id: string }): Tx<KnownPlace | null> {
  return (yield* PLACES.selectOne('WHERE platform = ? AND id = ?', args.platform, args.id)) ?? null;
}

/** By its alias, or as `<platform>:<id>`. */
export function* placeNamed(_ctx: TxContext, { name }: { name: string }): Tx<KnownPlace | null> {
  const [platform = '', ...id] = name.split(':');
  const byAlias = yield* PLACES.selectOne('WHERE alias = ?', name);
  return byAlias ?? (yield* PLACES.selectOne('WHERE platform = ? AND id = ?', platform, id.join(':'))) ?? null;
}

/** A chat that goes on under another id. Its conversations keep the key that they began with. */
const MOVED_CHATS = new Table('moved_chats', { platform: text, chat: text, knownAs: text, movedAt: integer });

/** A chat is another one from now on; what it was known as before is what it is known as. */
export function* moveChat(
  ctx: TxContext,
  { platform, from, to }: { platform: string; from: string; to: string },
): Tx<{ readonly knownAs: string }> {
  const before = yield* MOVED_CHATS.selectOne('WHERE platform = ? AND chat = ?', platform, from);
  const known = before?.knownAs ?? from;
  yield [
    MOVED_CHATS.insert(
      { platform, chat: to, knownAs: known, movedAt: ctx.now },
      'ON CONFLICT (platform, chat) DO NOTHING',
    ),
  ];
  return { knownAs: known };
}

/** Where a chat has moved, by what it is now or by what it is known as. */
export function* movesOf(
  _ctx: TxContext,
  { platform, chat }: { platform: string; chat: string },
): Tx<RowOf<typeof MOVED_CHATS>[]> {
  return yield* MOVED_CHATS.select('WHERE platform = ? AND (chat = ? OR known_as = ?)', platform, chat, chat);
}

const MOST_LISTED = 1000;
