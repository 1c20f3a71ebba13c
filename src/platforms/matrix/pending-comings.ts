import { fieldsOf, listOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { roomIdOf, userIdOf } from './ids.ts';
import type { Invite } from './parse-sync.ts';

/** A room that we are about to come into: somebody has invited us, or it takes the place of another one. */
export type Coming =
  | { readonly room: string; readonly invite: Invite }
  | { readonly room: string; readonly from: string; readonly via: string | null };

const KEY = 'comings';
const MOST = 200;

/** The rooms that nothing waits for although we may still come into them: the next process goes on with them. */
export class PendingComings {
  readonly #runtime: PlatformRuntime;
  #comings: readonly Coming[] = [];
  #writing: Promise<unknown> = Promise.resolve();

  constructor(runtime: PlatformRuntime) {
    this.#runtime = runtime;
  }

  /** What the last process has left. Rejects where that cannot be read now. */
  async read(): Promise<readonly Coming[]> {
    this.#comings = readComings(await this.#runtime.recall(KEY));
    return this.#comings;
  }

  /** Resolves when it is durable. */
  add(coming: Coming): Promise<void> {
    return this.#change((comings) => [...comings.filter(({ room }) => room !== coming.room), coming].slice(-MOST));
  }

  async remove(room: string): Promise<void> {
    if (this.#comings.some((coming) => coming.room === room)) {
      await this.#change((comings) => comings.filter((coming) => coming.room !== room));
    }
  }

  #change(change: (comings: readonly Coming[]) => readonly Coming[]): Promise<void> {
    const done = this.#writing.then(async () => {
      const comings = change(this.#comings);
      await this.#runtime.keep(KEY, comings.length === 0 ? null : JSON.stringify(comings));
      this.#comings = comings;
    });
    this.#writing = done.catch(() => undefined);
    return done;
  }
}

function readComings(text: string | null): readonly Coming[] {
  try {
    return text === null ? [] : listOf(JSON.parse(text)).flatMap((value) => comingIn(value) ?? []);
  } catch {
    return [];
  }
}

function comingIn(value: unknown): Coming | null {
  const fields = fieldsOf(value);
  const invite = fieldsOf(fields?.invite);
  const [room, from, inviter] = [roomIdOf(fields?.room), roomIdOf(fields?.from), userIdOf(invite?.inviter)];
  if (room === null) return null;
  if (from !== null) return { room, from, via: typeof fields?.via === 'string' ? fields.via : null };
  if (inviter === null) return null;
  const replaces = roomIdOf(invite?.replaces);
  return { room, invite: { room, inviter, isEncrypted: invite?.isEncrypted === true, replaces } };
}
