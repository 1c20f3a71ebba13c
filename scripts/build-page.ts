import { fileURLToPath } from 'node:url';

/** Builds the page into `web/`. Where Vite is not installed (`npm ci --omit=dev`) the gateway works without it, and says so. */
const { build } = await import('vite').catch(() => ({ build: null }));
if (build === null) console.warn('vite is not installed: the page at / is not built, everything else works');
else
  await build({
    root: fileURLToPath(new URL('../src/space/page', import.meta.url)),
    configFile: false,
    base: './',
    logLevel: 'warn',
    build: {
      outDir: fileURLToPath(new URL('../web', import.meta.url)),
      emptyOutDir: true,
      target: 'es2023',
      // Nothing is written into the document: the content security policy allows files only.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
  });
