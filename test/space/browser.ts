import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { describe } from 'vitest';
import { RUN_ALL } from '../support/share.ts';

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
export const describeInBrowser = describe.skipIf(findChromium() === null && !RUN_ALL);

/** A real browser without a GPU and without a window. */
export async function openChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error('no Chromium: install it, or name it in MOIRAI_TEST_CHROMIUM');
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

/** A picture for people to look at, made in the whole run. */
export async function photograph(
  page: Page,
  name: string,
  part: Parameters<Page['screenshot']>[0] = {},
): Promise<void> {
  if (RUN_ALL) await page.screenshot({ ...part, path: artifact(name) });
}

/** The path of a picture that a person will look at. */
export function artifact(name: string): string {
  return fileURLToPath(new URL(`../../test-artifacts/${name}`, import.meta.url));
}
