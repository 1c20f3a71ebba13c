import type { Engine } from '../engine/engine.ts';
import type { Logger } from '../log/logger.ts';
import { measureAt } from '../platforms/abilities.ts';
import type { Place, Platform } from '../platforms/platform.ts';
import { splitText } from '../platforms/split-text.ts';
import { INTERRUPTED_TEXTS } from '../turns/texts.ts';
import type { LiveHandle } from './live-reply-store.ts';
import type { LiveReplyMemory } from './presentation.ts';

const CALL_MS = 30_000;
const AT_ONCE = 100;

/** Where replies grow, kept in the store: no stream of a platform stays open because a process died. */
export class LiveReplies implements LiveReplyMemory {
  readonly #engine: Engine;
  readonly #log: Logger;

  constructor(engine: Engine, log: Logger) {
    this.#engine = engine;
    this.#log = log;
  }

  async find(turnId: string): Promise<LiveHandle | null> {
    return (await this.#engine.store.read('liveReplyOf', { turnId }))?.handle ?? null;
  }

  async keep(turnId: string, platform: string, place: Place, handle: LiveHandle): Promise<void> {
    const context = this.#engine.commandContext();
    await this.#engine.store.write('keepLiveReply', { context, turnId, platform, target: { ...place }, handle });
  }

  async abandon(turnId: string, platform: Platform, place: Place, handle: LiveHandle, text: string): Promise<void> {
    // A message that was changed stays as it is; a stream would go on for ever.
    if ('stream' in handle) {
      const [words = INTERRUPTED_TEXTS.ended] = splitText(text, measureAt(platform, place));
      await platform.resumeStream?.(place, handle.stream).finish({ text: words }, AbortSignal.timeout(CALL_MS));
    }
    await this.#engine.store.write('forgetLiveReply', { turnId });
  }

  /** Ends those on a platform whose turn is over and whose reply is not on its way. */
  async sweep(platform: Platform): Promise<void> {
    const left = await this.#engine.store.read('abandonedLiveReplies', { platform: platform.name, limit: AT_ONCE });
    for (const { turnId, target, handle, response } of left) {
      try {
        await this.abandon(turnId, platform, target as unknown as Place, handle, response ?? INTERRUPTED_TEXTS.ended);
      } catch (error) {
        this.#log.warn('a growing reply was not ended; it is tried at the next start', { turn: turnId, error });
      }
    }
  }
}
