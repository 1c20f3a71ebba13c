import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { patience } from '../support/patience.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { describeInBrowser, openChromium, photograph } from './browser.ts';
import { NAMES, rowsOf, Stage } from './stage.ts';

describeInBrowser('Space over gateways that share a store', () => {
  const stage = new Stage();
  let browser: Browser;
  let database: TestDatabase;

  beforeAll(async () => {
    browser = await openChromium();
    database = await createDatabase();
    await stage.raise(() => ({ store: { url: database.url } }), 2);
    await stage.openSpace();
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await stage.close();
    await database.drop();
  });

  test('shows each session once, and those of a killed gateway as the store says', { timeout: 120_000 }, async () => {
    const [lost, left] = stage.gateways;
    for (let i = 0; i < 12; i++) await lost!.chat({ text: 'hello', conversation: `c${i}` });
    stage.hold();
    // Nobody answers this one until much later; its gateway will be gone by then.
    const cut = lost!.chat({ text: 'wait for it', conversation: 'c3' }).catch(() => null);
    const page = await browser.newPage({ viewport: { width: 1440, height: 2000 } });
    await page.goto(`${stage.space}/#sessions`);
    const rows = () => rowsOf(page);
    await until('one thinks', async () => [...(await rows()).values()].includes('thinking'), patience(15_000));
    expect((await rows()).size).toBe(12);
    await lost!.end('SIGKILL');
    await cut;
    const grey = page.locator('.chips [data-state=grey]');
    await until('its room is grey', async () => (await grey.count()) === 1, 10_000);
    expect(await grey.innerText()).toContain(NAMES[0]);
    await until(
      'the page is what the other gateway reads in the store',
      async () => {
        const [seen, stored] = [await rows(), await stage.truth([left!])];
        return seen.size === 12 && [...stored].every(([id, phase]) => seen.get(id) === phase);
      },
      patience(20_000),
    );
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${stage.space}/#space`);
    await page.waitForTimeout(600);
    await photograph(page, 'space-shared-store.png');
    stage.letGo();
  });
});
