import type { Phase } from '../protocol.ts';

/** A gateway, drawn as a room. */
export interface SceneRoom {
  readonly id: string;
  readonly name: string;
  /** False draws it grey: the gateway is not heard, and what is in it is what was last known. */
  readonly live: boolean;
  /** A few words under the name: its state, or why it is grey. */
  readonly note: string;
}

export interface SceneSession {
  readonly id: string;
  readonly room: string;
  readonly platform: string;
  readonly phase: Phase;
  readonly tool: string | null;
  /** What it is called where there is space for it; anything at all, from people. */
  readonly label: string;
}

/** A session that has just ended: it says why, and leaves. */
export interface SceneFarewell {
  readonly id: string;
  readonly reason: string;
}

export interface SceneWorld {
  readonly rooms: readonly SceneRoom[];
  readonly sessions: ReadonlyMap<string, SceneSession>;
}
