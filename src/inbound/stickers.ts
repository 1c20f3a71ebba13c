import type { AgentRunner } from '../agent/runner.ts';
import type { Logger } from '../log/logger.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { IncomingFile } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';

export interface StickersDeps {
  readonly store: Store;
  readonly log: Logger;
  readonly runner: () => AgentRunner;
}

/** What models can see; a sticker that moves is known by its emoji alone. */
const VISIBLE: ReadonlySet<string> = new Set(['image/webp', 'image/png', 'image/jpeg']);
const MAX_BYTES = 1024 * 1024;
const FETCH_MS = 10_000;
const LOOK_MS = 15_000;
const LONGEST = 300;

/** What stickers show. Each is looked at once: people send the same ones again and again. */
export class Stickers {
  readonly #deps: StickersDeps;

  constructor(deps: StickersDeps) {
    this.#deps = deps;
  }

  /** Null when nobody can say. */
  async describe(
    platform: string,
    file: IncomingFile,
    open: (maxBytes: number, ms: number) => Promise<Uint8Array>,
  ): Promise<string | null> {
    const { store, log, runner } = this.#deps;
    if (file.kind !== 'sticker' || !VISIBLE.has(file.mime ?? '') || runner().describe === undefined) return null;
    const name = `sticker:${platform}:${file.id}`;
    try {
      const known = await store.read('findSetting', { name });
      if (known !== null) return known;
      const bytes = await open(MAX_BYTES, FETCH_MS);
      const said = await runner().describe?.({ bytes, mime: file.mime ?? '' }, AbortSignal.timeout(LOOK_MS));
      if (said === null || said === undefined) return null;
      const description = sanitize(said, LONGEST);
      await store.write('keepSetting', { name, value: description });
      return description;
    } catch (error) {
      log.warn('a sticker was not looked at', { platform, error });
      return null;
    }
  }
}
