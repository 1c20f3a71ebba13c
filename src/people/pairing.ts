import { randomBytes, randomInt } from 'node:crypto';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Store } from '../store/port.ts';
import { hashCode, type Pairing } from './pairing-store.ts';

/** No letter or digit that is taken for another when it is read aloud. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ';
const CODE_LENGTH = 8;

/** A code for a stranger, who is told it once; null when nothing is to be said. Only its hash is kept. */
export async function offerCode(
  store: Store,
  stranger: { readonly platform: string; readonly userId: string; readonly name: string | null },
): Promise<string | null> {
  const code = Array.from({ length: CODE_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  const salt = randomBytes(16).toString('hex');
  const asked = await store.write('requestPairing', {
    ...stranger,
    requestId: randomBytes(8).toString('hex'),
    ...{ salt, codeHash: hashCode(salt, code) },
  });
  return asked === 'asked' ? code : null;
}

export function pairingText(platform: string, code: string): string {
  return [
    'I do not know you yet. If you should be able to talk to me, give this code to whoever runs me:',
    code,
    `They let you in with: moirai pairing approve ${platform} ${code}`,
    'It counts for an hour.',
  ].join('\n\n');
}

/** Lets in whoever has this code. Throws `pairing_unknown` and `pairing_locked`. */
export async function approveCode(
  store: Store,
  platform: string,
  code: string,
  firstIsAdmin: boolean,
): Promise<Pairing> {
  const answer = await store.write('approvePairing', { platform, code: code.trim(), firstIsAdmin });
  if ('approved' in answer) return answer.approved;
  const until = answer.until === null ? '' : ` until ${new Date(answer.until).toISOString()}`;
  if (answer.refused === 'locked') {
    throw new MoiraiError('pairing_locked', `too many wrong codes for ${platform}: no code counts${until}`);
  }
  const closed = until === '' ? '' : `; that was one too many, and no code counts${until}`;
  throw new MoiraiError('pairing_unknown', `nobody on ${platform} waits with this code${closed}`);
}
