import type { Page } from 'playwright-core';
import type { GatewayProcess } from '../test/gateway/process.ts';
import { openChromium } from '../test/space/browser.ts';
import type { Report } from './report.ts';

const FRAMES_PER_SECOND = 30;
const INTERACTION_MS = 100;
const MEASURE_MS = 8000;

/** The page with all sessions of a gateway on it, in a browser without a GPU, while people talk. */
export async function measurePage(report: Report, gateway: GatewayProcess, open: number): Promise<void> {
  const browser = await openChromium();
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(gateway.url);
    const shown = page.locator('.counts');
    while (Number(await shown.getAttribute('data-shown')) < open) await page.waitForTimeout(100);
    await page.waitForTimeout(3000);
    report.progress(`page: ${open} figures`);
    const frames = await framesOf(page);
    const what = `frames a second with ${open} sessions on the page, no GPU`;
    report.add(
      'page',
      what,
      `${frames.perSecond.toFixed(0)} (p99 ${frames.p99.toFixed(0)} ms)`,
      `>= ${FRAMES_PER_SECOND}`,
      frames.perSecond >= FRAMES_PER_SECOND,
    );
    goal(report, 'a click on a figure until its panel is painted', await clicks(page, '.picture canvas'));
    await page.goto(`${gateway.url}/#sessions`);
    await page.locator('[role=row][data-session]').first().waitFor();
    goal(report, 'a letter typed into the search until the table is painted', await typing(page));
    goal(report, 'sorting the table by another column', await sorting(page));
  } finally {
    await browser.close();
  }
}

function goal(report: Report, what: string, latencies: readonly number[]): void {
  const most = Math.max(...latencies);
  const mean = latencies.reduce((sum, one) => sum + one, 0) / latencies.length;
  report.add(
    'page',
    what,
    `mean ${mean.toFixed(0)} ms, longest ${most.toFixed(0)} ms`,
    `< ${INTERACTION_MS} ms`,
    most < INTERACTION_MS,
  );
}

/** How often the browser comes to draw. The scene draws in the same frames: what it takes too long for is missing here. */
function framesOf(page: Page): Promise<{ perSecond: number; p99: number }> {
  return page.evaluate(`new Promise((resolve) => {
    const gaps = [];
    const began = performance.now();
    let last = began;
    const frame = (now) => {
      gaps.push(now - last);
      last = now;
      if (now - began < ${MEASURE_MS}) requestAnimationFrame(frame);
      else resolve({
        perSecond: (gaps.length * 1000) / (now - began),
        p99: gaps.sort((a, b) => a - b)[Math.floor(gaps.length * 0.99)],
      });
    };
    requestAnimationFrame(frame);
  })`);
}

/** From the event to the first frame after what it caused, as the person at the screen has it. */
async function watchEvents(page: Page, act: () => Promise<void>): Promise<number[]> {
  await page.evaluate(`{
    window.durations = [];
    window.watcher = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (entry.interactionId) window.durations.push(entry.duration);
    });
    window.watcher.observe({ type: 'event', durationThreshold: 16, buffered: false });
  }`);
  await act();
  await page.waitForTimeout(500);
  const durations = await page.evaluate<number[]>('window.watcher.disconnect(), window.durations');
  // What took less than a frame is not told of.
  return durations.length === 0 ? [16] : durations;
}

function clicks(page: Page, target: string): Promise<number[]> {
  return watchEvents(page, async () => {
    const box = (await page.locator(target).boundingBox())!;
    for (let i = 1; i <= 10; i++) {
      await page.mouse.click(box.x + (box.width * i) / 12, box.y + box.height / 2);
      await page.waitForTimeout(300);
    }
  });
}

function typing(page: Page): Promise<number[]> {
  return watchEvents(page, async () => {
    await page.locator('#search').focus();
    for (const letter of 'telegram 99') {
      await page.keyboard.press(letter === ' ' ? 'Space' : letter);
      await page.waitForTimeout(200);
    }
    await page.locator('#search').fill('');
  });
}

function sorting(page: Page): Promise<number[]> {
  return watchEvents(page, async () => {
    const heads = page.locator('[role=columnheader] button');
    for (let i = 0; i < (await heads.count()); i++) {
      await heads.nth(i).click();
      await page.waitForTimeout(200);
    }
  });
}
