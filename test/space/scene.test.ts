import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, inflateSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { build, type PreviewServer, preview } from 'vite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { drawSheet, encodePng, scanlines } from '../../scripts/draw-sprites.ts';
import { testInFullRun } from '../support/full-run.ts';
import { share } from '../support/share.ts';
import { artifact, describeInBrowser, openChromium, photograph } from './browser.ts';

const SPRITES = fileURLToPath(new URL('../../src/space/page/scene/sprites.png', import.meta.url));

/** Everything of a PNG but how well it was packed, which differs between machines. */
function contentOf(png: Buffer): Record<string, string> {
  const chunks: Record<string, string> = {};
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    chunks[type] = (type === 'IDAT' ? inflateSync(data) : data).toString('hex');
    at += length + 12;
  }
  return chunks;
}

test('the sprites are what scripts/draw-sprites.ts draws, and small', () => {
  const committed = readFileSync(SPRITES);
  expect(contentOf(committed)).toEqual(contentOf(encodePng(drawSheet())));
  expect(contentOf(committed).IDAT).toBe(scanlines(drawSheet()).toString('hex'));
  expect(committed.length).toBeLessThan(6 * 1024);
});

const HOSTILE = `[
  'x'.repeat(10_000), '\\u202e'.repeat(5000) + 'gnp.exe', 'z' + '\\u0301'.repeat(9000), '\\u0000\\u0007\\u001b[31m',
  '\\ud800', '👩‍👩‍👧'.repeat(900), '<img src=x onerror=alert(1)>', '', 'line\\nbreak\\u2028and another', '\\ufdfd'.repeat(500),
]`;

describeInBrowser('the scene in a browser', () => {
  const root = fileURLToPath(new URL('./scene-demo/', import.meta.url));
  const outDir = mkdtempSync(join(tmpdir(), 'moirai-scene-'));
  let server: PreviewServer;
  let browser: Browser;

  beforeAll(async () => {
    const options = { root, configFile: false, logLevel: 'error', base: './' } as const;
    await build({ ...options, build: { outDir, emptyOutDir: true, target: 'es2023', assetsInlineLimit: 0 } });
    server = await preview({ ...options, build: { outDir }, preview: { host: '127.0.0.1', port: 0 } });
    browser = await openChromium();
  }, 60_000);

  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(outDir, { recursive: true, force: true });
  });

  /** A page with a world in it whose figures are drawn. */
  async function open(query: string, size = { width: 1440, height: 900 }, dark = false): Promise<Page> {
    const page = await browser.newPage({ viewport: size, colorScheme: dark ? 'dark' : 'light' });
    await page.goto(`${server.resolvedUrls?.local[0]}?${query}`);
    await page.waitForFunction(`performance.getEntriesByType('resource').some(({ name }) => name.includes('sprites'))`);
    await page.waitForTimeout(300);
    return page;
  }

  async function close(page: Page): Promise<void> {
    expect(await page.evaluate('demo.errors')).toEqual([]);
    await page.close();
  }

  /** It looks so, now or soon. */
  const becomes = (page: Page, picture: Buffer): Promise<void> =>
    expect.poll(async () => (await page.screenshot()).equals(picture), { timeout: 10_000 }).toBe(true);

  const drawnDuring = (page: Page, milliseconds: number): Promise<number> =>
    page.evaluate(`(async () => {
      const before = demo.drawn;
      await new Promise((done) => setTimeout(done, ${milliseconds}));
      return demo.drawn - before;
    })()`);

  test('its code is small', () => {
    const folder = join(outDir, 'assets');
    const code = readdirSync(folder).filter((name) => name.endsWith('.js'));
    const packed = code.map((name) => gzipSync(readFileSync(join(folder, name))).length);
    // With the made-up world around it, which is a good kilobyte.
    expect(packed.reduce((sum, size) => sum + size, 0)).toBeLessThan(13.5 * 1024);
  });

  testInFullRun('ten thousand sessions move at thirty frames a second', { timeout: 60_000 }, async () => {
    // The fourth room of the made-up world is grey, and does not move.
    const page = await open('n=10000&rooms=3&churn=200');
    const rates: number[] = [];
    // Other tests may have the machine meanwhile; what it can do shows in its best five seconds.
    for (let round = 0; round < 5 && !rates.some((rate) => rate >= 30); round++)
      rates.push(((await page.evaluate('demo.measure(5000)')) as { drawn: number }).drawn);
    const first = await page.screenshot();
    await page.waitForTimeout(250);
    const second = await page.screenshot({ path: artifact('scene-10000.png') });
    expect(Math.max(...rates)).toBeGreaterThanOrEqual(30);
    expect(first.equals(second)).toBe(false);
    await close(page);
  });

  testInFullRun('a word about ten thousand sessions, a hover and a pick are quick', { timeout: 60_000 }, async () => {
    const page = await open('n=10000');
    const shown = (await page.evaluate('Array.from({ length: 20 }, () => demo.change(100, false))')) as number[];
    expect(Math.min(...shown)).toBeLessThan(5);
    const costs = (await page.evaluate(`(async () => {
      const canvas = document.querySelector('canvas');
      const send = (type, x) => canvas.dispatchEvent(
        new PointerEvent(type, { clientX: x, clientY: 200, pointerId: 1, pointerType: 'mouse', button: 0, bubbles: true }));
      const costs = [];
      for (let x = 100; x < 700; x += 60) {
        const start = performance.now();
        send('pointermove', x);
        await new Promise(requestAnimationFrame);
        send('pointerdown', x);
        send('pointerup', x);
        costs.push(performance.now() - start);
      }
      return costs;
    })()`)) as number[];
    const picked = (await page.evaluate('demo.picked')) as (string | null)[];
    expect(picked.filter((id) => id !== null).length).toBeGreaterThan(5);
    expect(costs.toSorted((one, other) => one - other)[costs.length >> 1]).toBeLessThan(100);
    await close(page);
  });

  test('whoever is clicked is picked, and nobody where nobody is', async () => {
    const page = await open('n=5&rooms=1&still', { width: 600, height: 400 });
    await page.mouse.click(20, 20);
    expect(await page.evaluate('demo.picked')).toEqual([null]);
    for (let y = 70; y < 400; y += 30) for (let x = 15; x < 600; x += 30) await page.mouse.click(x, y);
    const picked = (await page.evaluate('demo.picked.filter((id) => id !== null)')) as string[];
    const everybody = (await page.evaluate('[...demo.world.sessions.keys()]')) as string[];
    expect(new Set(picked)).toEqual(new Set(everybody));
    await close(page);
  });

  testInFullRun('arrow keys reach everybody, and come back', async () => {
    const page = await open('n=40&rooms=2&still');
    const steps = (...directions: string[]): Promise<(string | null)[]> =>
      page.evaluate(`${JSON.stringify(directions)}.map((direction) => demo.scene.step(direction))`);
    const [first, second, back] = await steps('right', 'right', 'left');
    expect(second).not.toBe(first);
    expect(back).toBe(first);
    const before = await page.screenshot();
    const [below] = await steps('down');
    expect(below).not.toBe(back);
    await page.waitForTimeout(100);
    expect((await page.screenshot()).equals(before)).toBe(false);
    await page.evaluate('demo.show({ rooms: [], sessions: new Map() })');
    await page.waitForFunction("demo.scene.step('left') === null");
    await photograph(page, 'scene-nobody.png');
    await close(page);
  });

  test('one who is still draws only what has changed, and farewells are read all the same', async () => {
    const page = await open('n=12&rooms=2&still');
    expect(await drawnDuring(page, 1000)).toBe(0);
    const before = await page.screenshot();
    await page.evaluate(`(() => {
      const [id] = demo.world.sessions.keys();
      const sessions = new Map(demo.world.sessions);
      sessions.delete(id);
      demo.show({ rooms: demo.world.rooms, sessions });
      demo.scene.farewell([{ id, reason: 'idle_expiry' }]);
    })()`);
    await page.waitForTimeout(200);
    const farewell = await page.screenshot({ path: artifact('scene-farewell.png') });
    expect(farewell.equals(before)).toBe(false);
    expect(await drawnDuring(page, 1000)).toBe(0);
    expect((await page.screenshot()).equals(farewell)).toBe(true);
    await page.waitForTimeout(3500);
    expect((await page.screenshot()).equals(farewell)).toBe(false);
    expect(await drawnDuring(page, 500)).toBe(0);
    await close(page);
  });

  testInFullRun('what is drawn piece by piece is what is drawn at once', { timeout: 60_000 }, async () => {
    const pages = await Promise.all([60, 400, 3000].map((count) => open(`n=${count}&rooms=3&still`)));
    for (const page of pages)
      for (let round = 0; round < 10; round++) {
        await page.evaluate(`demo.change(demo.world.sessions.size / 20)`);
        await page.mouse.move(100 + 120 * round, 100 + 70 * round);
      }
    await Promise.all(pages.map((page) => page.waitForTimeout(4500)));
    for (const page of pages) {
      const pieces = await page.screenshot({ path: artifact('scene-pieces.png') });
      await page.evaluate(`document.documentElement.dataset.theme = 'dark'`);
      await page.waitForTimeout(100);
      await page.evaluate(`document.documentElement.dataset.theme = 'light'`);
      await becomes(page, pieces);
      await close(page);
    }
  });

  testInFullRun('nothing is drawn while nobody looks, after the end, and in a house that only remembers', async () => {
    const page = await open('n=30&rooms=2');
    expect(await drawnDuring(page, 500)).toBeGreaterThan(3);
    await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true, configurable: true })`);
    await page.waitForTimeout(100);
    expect(await drawnDuring(page, 500)).toBe(0);
    await page.evaluate(`(() => {
      delete document.hidden;
      document.dispatchEvent(new Event('visibilitychange'));
    })()`);
    expect(await drawnDuring(page, 500)).toBeGreaterThan(3);
    await page.evaluate(`demo.show({
      rooms: demo.world.rooms.map((room) => ({ ...room, live: false, note: 'lost' })),
      sessions: demo.world.sessions,
    })`);
    await page.waitForTimeout(300);
    expect(await drawnDuring(page, 500)).toBe(0);
    await photograph(page, 'scene-grey.png');
    await page.evaluate(
      'demo.show({ rooms: demo.world.rooms.map((room, index) => ({ ...room, live: index > 0 })), sessions: new Map() })',
    );
    await page.waitForTimeout(1500);
    await photograph(page, 'scene-empty.png');
    await page.evaluate('demo.scene.dispose(); demo.make(5)');
    expect(await drawnDuring(page, 300)).toBe(0);
    await close(page);
  });

  test('what people call themselves breaks nothing', async () => {
    const page = await open('n=0&rooms=1&still');
    await page.evaluate(`(() => {
      const labels = ${HOSTILE};
      const sessions = new Map(labels.map((label, index) => ['' + index, {
        id: '' + index, room: label || 'room-0', platform: index % 2 ? label : 'cli', phase: 'tool', tool: label, label,
      }]));
      demo.show({ rooms: labels.slice(0, 4).map((label) => ({ id: label, name: label, note: label, live: true })), sessions });
      demo.scene.farewell([{ id: '1', reason: labels[1] }, { id: '2', reason: labels[2] }]);
    })()`);
    await page.mouse.move(200, 200);
    await page.waitForTimeout(300);
    await photograph(page, 'scene-hostile.png');
    await close(page);
  });

  testInFullRun('colours follow the page, and a closer look is left as it was entered', async () => {
    const page = await open('n=40&rooms=2&still');
    const light = await page.screenshot();
    await page.evaluate(`document.documentElement.dataset.theme = 'dark'`);
    await page.waitForTimeout(100);
    expect((await page.screenshot()).equals(light)).toBe(false);
    await page.evaluate(`delete document.documentElement.dataset.theme`);
    await becomes(page, light);
    await page.mouse.move(700, 400);
    await page.mouse.wheel(0, -600);
    await page.mouse.wheel(0, -600);
    await page.waitForTimeout(100);
    expect((await page.screenshot({ path: artifact('scene-zoomed.png') })).equals(light)).toBe(false);
    await page.mouse.down();
    await page.mouse.move(500, 300, { steps: 4 });
    await page.mouse.up();
    expect(await page.evaluate('demo.picked')).toEqual([]);
    await page.locator('canvas').press('0');
    // Whoever has the keyboard bears the browser's ring.
    await page.evaluate('document.activeElement.blur()');
    await page.mouse.move(0, 0);
    await becomes(page, light);
    await close(page);
  });

  testInFullRun('pictures to look at', { timeout: 120_000 }, async () => {
    const scenes = [
      [200, 4],
      [5, 1],
      [10_000, 4],
    ] as const;
    const sizes = [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ];
    for (const [count, rooms] of scenes.slice(0, share(1, 3)))
      for (const size of sizes)
        for (const dark of [false, true].slice(0, share(1, 2))) {
          const page = await open(`n=${count}&rooms=${rooms}&churn=${count / 50}`, size, dark);
          await page.waitForTimeout(500);
          await photograph(page, `scene-${count}-${size.width}-${dark ? 'dark' : 'light'}.png`);
          await close(page);
        }
  });
});
