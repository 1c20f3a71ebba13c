import type { Fields } from '../fields.ts';
import { ApiError, at, type MatrixApi } from './api.ts';
import { serverOf } from './ids.ts';
import { type InviteRule, mayInvite } from './invite-rule.ts';
import { type Invite, predecessorIn } from './parse-sync.ts';
import type { Rooms } from './rooms.ts';

export interface MembershipDeps {
  readonly api: MatrixApi;
  readonly rooms: Rooms;
  readonly self: string;
  readonly invites: InviteRule;
  readonly signal: AbortSignal;
}

/** What people read in a room whose messages we cannot read. */
export const ENCRYPTED_TEXT =
  'I cannot read encrypted messages, and in an encrypted room I say nothing but this. Please make a room with encryption turned off and invite me there: where it is on, it cannot be turned off.';

/** Into which rooms we go, and what we say where we can be of no use. */
export class Membership {
  readonly #deps: MembershipDeps;

  constructor(deps: MembershipDeps) {
    this.#deps = deps;
  }

  /**
   * Goes where somebody invites us who may, and where a room that we are in goes on; declines what else others offer. Returns
   * the room that goes on there. Rejects when it has to be tried again.
   */
  async answer({ room, inviter, isEncrypted, replaces }: Invite): Promise<string | null> {
    const { api, self, invites, rooms, signal } = this.#deps;
    if (!mayInvite(inviter, self, invites) && !(await this.#goesOnAs(replaces, room))) {
      api.runtime.warn('an invite was declined: the setting `invites` does not name who sent it', { room, inviter });
      const path = at`/_matrix/client/v3/rooms/${room}/leave`;
      await this.#unlessRefused('an invite', () => api.call(path, signal, { method: 'POST', json: {} }));
      return null;
    }
    if (!(await this.#join(room, serverOf(inviter)))) return null;
    if (isEncrypted) {
      await rooms.change(room, { encrypted: true });
      await this.refuseEncrypted(room);
    }
    const from = predecessorIn(await this.#stateOf(room, 'm.room.create'));
    if (from === null || !(await this.#goesOnAs(from, room))) return null;
    await rooms.succeed(from, room);
    return from;
  }

  /**
   * Goes into the room that takes the place of another one, and returns that other one. Null where we may not, or where the
   * new room does not say the same: anybody with a room of their own could name any other. Rejects when it has to be tried
   * again.
   */
  async follow(from: string, to: string, via: string | null): Promise<string | null> {
    const { api, rooms } = this.#deps;
    if (!(await this.#join(to, via))) return null;
    if (predecessorIn(await this.#stateOf(to, 'm.room.create')) !== from) {
      api.runtime.warn('a room names another one that does not take its place', { room: from, named: to });
      return null;
    }
    await rooms.succeed(from, to);
    return from;
  }

  /** Says once that we cannot read what is said there. Rejects when it has to be tried again. */
  async refuseEncrypted(room: string): Promise<void> {
    const { api, rooms, signal } = this.#deps;
    if (await rooms.isNoticed(room)) return;
    // The key is the same for good: the server takes it once, whatever becomes of the answer and of this process.
    const path = at`/_matrix/client/v3/rooms/${room}/send/m.room.message/encrypted-room`;
    const json = { msgtype: 'm.notice', body: ENCRYPTED_TEXT };
    await this.#unlessRefused('the notice that a room is encrypted', () =>
      api.call(path, signal, { method: 'PUT', json }),
    );
    await rooms.change(room, { noticed: true });
  }

  /** Whether a room that we are in says that it goes on as another one. */
  async #goesOnAs(from: string | null, to: string): Promise<boolean> {
    if (from === null) return false;
    return (await this.#stateOf(from, 'm.room.tombstone'))?.replacement_room === to;
  }

  /** Null where the server does not give it to us. Rejects when it has to be asked for again. */
  async #stateOf(room: string, type: string): Promise<Fields | null> {
    const { api, signal } = this.#deps;
    try {
      return await api.call(at`/_matrix/client/v3/rooms/${room}/state/${type}/`, signal);
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.isRefusal) return null;
      throw thrown;
    }
  }

  #join(room: string, via: string | null): Promise<boolean> {
    const { api, signal } = this.#deps;
    const query = { via, server_name: via };
    const path = at`/_matrix/client/v3/join/${room}`;
    return this.#unlessRefused('a room', () => api.call(path, signal, { method: 'POST', json: {}, query }));
  }

  /** False where the server refuses for good. */
  async #unlessRefused(what: string, call: () => Promise<unknown>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || !thrown.isRefusal) throw thrown;
      this.#deps.api.runtime.warn(`the server refused ${what}`, { error: thrown.message });
      return false;
    }
  }
}
