import { MoiraiError } from '../errors/moirai-error.ts';
import { pageSize } from '../store/limits.ts';
import { integer, nullableText, type RowOf, Table, text } from '../store/table.ts';
import { query, type Tx, type TxContext } from '../store/transaction.ts';
import { lockKey } from '../store/transactions/sessions.ts';

/** Something that is remembered beyond the session it was said in. */
const FACTS = new Table('facts', {
  id: text,
  /** Whose it is: it is recalled for this owner only. */
  owner: text,
  text,
  /** The session it comes from, if it comes from one. */
  source: nullableText,
  at: integer,
});

export type Fact = RowOf<typeof FACTS>;

const OWNERS = new Table('facts', { owner: text, facts: integer });

/** The longest text of one fact, in UTF-16 units. */
const MAX_FACT_CHARS = 4000;
/** More words of a question than this do not make the answer better. */
const MAX_WORDS = 32;

/**
 * Keeps a fact; false when its owner has one with this id or this text already. So it may be repeated safely, also
 * after `store_outcome_unknown`.
 */
export function* rememberFact(ctx: TxContext, args: Omit<Fact, 'at'>): Tx<boolean> {
  const fact = args.text.trim();
  assertFact({ ...args, text: fact });
  // Two writers of one owner could both find that the text is not there yet.
  yield* lockKey(ctx, `facts:${args.owner}`);
  const known = yield* FACTS.selectOne('WHERE owner = ? AND (id = ? OR text = ?) LIMIT 1', args.owner, args.id, fact);
  if (known !== undefined) return false;
  yield* query(
    'INSERT INTO facts (id, owner, text, words, source, at) VALUES (?, ?, ?, ?, ?, ?)',
    args.id,
    args.owner,
    fact,
    wordsOf(fact).join(' '),
    args.source,
    ctx.now,
  );
  return true;
}

/** An owner's facts that have any of the words, best match first; the newest ones where the text has no word. */
export function* recallFacts(ctx: TxContext, args: { owner: string; text: string; limit: number }): Tx<Fact[]> {
  const limit = pageSize(args.limit);
  // Long words say more: where a question has too many, the short ones are left out.
  const byLength = wordsOf(args.text).sort((a, b) => b.length - a.length);
  const words = byLength.slice(0, MAX_WORDS);
  if (words.length === 0) return yield* FACTS.select('WHERE owner = ? ORDER BY no DESC LIMIT ?', args.owner, limit);
  const { sql, params } = ctx.dialect.recallFacts(FACTS.listOf('facts'), args.owner, words, limit);
  return yield* FACTS.selectAs(sql, ...params);
}

/** Who has facts, and how many; whoever got the latest one first. */
export function* factOwners(_ctx: TxContext, args: { limit: number }): Tx<RowOf<typeof OWNERS>[]> {
  return yield* OWNERS.selectAs(
    'SELECT owner, count(*) FROM facts GROUP BY owner ORDER BY max(no) DESC LIMIT ?',
    pageSize(args.limit),
  );
}

/** Forgets one fact of an owner; false when there is none with this id. */
export function* forgetFact(_ctx: TxContext, args: { owner: string; id: string }): Tx<boolean> {
  const gone = yield* query('DELETE FROM facts WHERE owner = ? AND id = ? RETURNING id', args.owner, args.id);
  return gone.length > 0;
}

function assertFact({ id, owner, text }: Pick<Fact, 'id' | 'owner' | 'text'>): void {
  if (id === '' || owner === '') throw new MoiraiError('bad_input', 'a fact needs an id and an owner');
  if (text === '') throw new MoiraiError('bad_input', 'a fact needs a text');
  if (text.length <= MAX_FACT_CHARS) return;
  throw new MoiraiError('bad_input', `a fact has ${text.length} characters; at most ${MAX_FACT_CHARS} are kept`);
}

/** The words as they are looked for. Found here, and not by the engines, which differ in what a word is. */
function wordsOf(text: string): string[] {
  const plain = text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase();
  return [...new Set(plain.match(/[\p{L}\p{M}\p{N}]+/gu))];
}
