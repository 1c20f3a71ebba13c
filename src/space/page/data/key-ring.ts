import { signal } from '@preact/signals';
import { keepItem } from './keep-item.ts';

/** `sessionStorage` or `localStorage`. */
type Drawer = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** Why a person is asked for the key. */
export interface KeyRequest {
  readonly why: 'missing' | 'wrong';
}

const NAME = 'moirai-key';

/** The key to the gateways, and whether the person has to be asked for it. It never appears in an address. */
export class KeyRing {
  readonly asking = signal<KeyRequest | null>(null);
  /** Counts the keys given: who was refused waits for the next one. */
  readonly given = signal(0);
  readonly known = signal(false);
  readonly #drawers: { readonly session: Drawer; readonly lasting: Drawer };
  #key: string | null;

  constructor(session: Drawer, lasting: Drawer) {
    this.#drawers = { session, lasting };
    this.#key = session.getItem(NAME) ?? lasting.getItem(NAME);
    this.known.value = this.#key !== null;
  }

  /** The header of a request; none while no key is known, which a gateway on the same machine may accept. */
  headers(): Record<string, string> {
    return this.#key === null ? {} : { authorization: `Bearer ${bytesOf(this.#key)}` };
  }

  give(key: string, remember: boolean): void {
    this.#change(key, null);
    keepItem(remember ? this.#drawers.lasting : this.#drawers.session, NAME, key);
  }

  forget(): void {
    this.#change(null, { why: 'missing' });
  }

  /** An answer to a request made with these headers was 401, or 429 for one wrong key too many. An answer to a key given up since then says nothing. */
  refused(headers: Record<string, string>): void {
    if (headers.authorization !== this.headers().authorization) return;
    this.asking.value = { why: this.#key === null ? 'missing' : 'wrong' };
  }

  /** A key was accepted: the person need not be asked any more. */
  accepted(headers: Record<string, string>): void {
    if (this.asking.value !== null && headers.authorization === this.headers().authorization) this.asking.value = null;
  }

  #change(key: string | null, asking: KeyRequest | null): void {
    this.#drawers.session.removeItem(NAME);
    this.#drawers.lasting.removeItem(NAME);
    this.#key = key;
    this.known.value = key !== null;
    this.asking.value = asking;
    this.given.value++;
  }
}

/** Headers carry bytes and nothing else: a letter that takes several bytes is sent as these. */
function bytesOf(key: string): string {
  return String.fromCharCode(...new TextEncoder().encode(key));
}
