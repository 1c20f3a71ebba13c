import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { describe } from 'vitest';

/** The page, built from its sources before the tests began. */
export const BUILT_PAGE = fileURLToPath(new URL('../../web', import.meta.url));

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** Where the browser is; null on a machine without one. */
export function findChromium(): string | null {
  const named = process.env.MOIRAI_TEST_CHROMIUM;
  if (named) return named;
  return PLACES.find((path) => existsSync(path)) ?? null;
}

/** Where everything must run, a browser that is not there is a failure; elsewhere these tests are left out, and counted. */
export const describeInBrowser = describe.skipIf(findChromium() === null && !process.env.MOIRAI_TEST_ALL);

/** A real browser without a GPU and without a window. */
export async function openChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error('no Chromium: install it, or name it in MOIRAI_TEST_CHROMIUM');
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** The path of a picture that a person will look at. */
export function artifact(name: string): string {
  const folder = fileURLToPath(new URL('../../test-artifacts/', import.meta.url));
  mkdirSync(folder, { recursive: true });
  return `${folder}${name}`;
}
