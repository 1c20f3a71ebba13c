import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

/** Builds the page as it is now into a folder of its own: `web/` may be older, or be built by somebody else just now. */
export async function buildFreshPage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'moirai-page-'));
  await build({
    root: fileURLToPath(new URL('../../src/space/page', import.meta.url)),
    configFile: false,
    base: './',
    logLevel: 'warn',
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2023',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
  });
  return folder;
}
