import { MoiraiError } from '../errors/moirai-error.ts';
import {
  nullableNumber,
  nullableText,
  numberOf,
  query,
  queryOne,
  type Row,
  type Tx,
  type TxContext,
  textOf,
} from '../store/transaction.ts';

/** A place of a platform that somebody has talked in, or that was named by hand. */
export interface KnownPlace {
  readonly platform: string;
  /** `chat` or `chat:thread`. */
  readonly id: string;
  /** In the platform's own words. */
  readonly place: Readonly<Record<string, unknown>>;
  /** As its people call it: from outside. */
  readonly name: string | null;
  /** As the operator calls it. */
  readonly alias: string | null;
  readonly seenAt: number;
  /** When it turned out that nothing can be sent there any more. */
  readonly goneAt: number | null;
  readonly goneBecause: string | null;
}

/** Somebody talked there: it is known from now on, and reachable again. */
export function* seePlace(ctx: TxContext, args: Pick<KnownPlace, 'platform' | 'id' | 'place' | 'name'>): Tx<void> {
  yield* query(
    `INSERT INTO places (platform, id, place, name, seen_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (platform, id) DO UPDATE SET place = excluded.place, name = COALESCE(excluded.name, places.name),
       seen_at = excluded.seen_at, gone_at = NULL, gone_because = NULL`,
    args.platform,
    args.id,
    JSON.stringify(args.place),
    args.name,
    ctx.now,
  );
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
  const taken =
    args.alias === null ? undefined : yield* queryOne('SELECT platform, id FROM places WHERE alias = ?', args.alias);
  if (taken !== undefined && (textOf(taken, 'platform') !== args.platform || textOf(taken, 'id') !== args.id)) {
    throw new MoiraiError(
      'bad_input',
      `${textOf(taken, 'platform')}:${textOf(taken, 'id')} is called ${args.alias} already`,
    );
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
  const where = args.platform === null ? '' : 'WHERE platform = ?';
  const rows = yield* query(
    `SELECT * FROM places ${where} ORDER BY platform, seen_at DESC, id LIMIT ${MOST_LISTED}`,
    ...(args.platform === null ? [] : [args.platform]),
  );
  return rows.map(toPlace);
}

export function* findPlace(_ctx: TxContext, args: { platform: string; id: string }): Tx<KnownPlace | null> {
  const row = yield* queryOne('SELECT * FROM places WHERE platform = ? AND id = ?', args.platform, args.id);
  return row === undefined ? null : toPlace(row);
}

const MOST_LISTED = 1000;

function toPlace(row: Row): KnownPlace {
  return {
    platform: textOf(row, 'platform'),
    id: textOf(row, 'id'),
    place: JSON.parse(textOf(row, 'place')) as Record<string, unknown>,
    name: nullableText(row, 'name'),
    alias: nullableText(row, 'alias'),
    seenAt: numberOf(row, 'seen_at'),
    goneAt: nullableNumber(row, 'gone_at'),
    goneBecause: nullableText(row, 'gone_because'),
  };
}
