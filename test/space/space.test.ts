import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { testInFullRun } from '../support/full-run.ts';
import { patience } from '../support/patience.ts';
import { RUN_ALL, share } from '../support/share.ts';
import { describeInBrowser, openChromium, photograph } from './browser.ts';
import { NAMES, Stage, untilEqual } from './stage.ts';
import { Wire } from './wire.ts';

/** What can be pressed, chosen or written into. */
const CONTROLS = 'a[href], button:not(:disabled), input, select, textarea, summary, [tabindex="0"]';

const stage = new Stage();
let browser: Browser;
let context: BrowserContext;
/** What went wrong in the page, and where it asked for something. */
let troubles: string[] = [];
let asked: string[] = [];

async function open(url: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  troubles = [];
  asked = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) troubles.push(message.text());
  });
  page.on('request', (request) => asked.push(request.url()));
  await page.goto(url);
  return page;
}

/** The table, in a window that has room for all of it. */
async function openTable(url: string): Promise<Page> {
  const page = await open(`${url}/#sessions`, { viewport: { width: 1440, height: 12_000 } });
  await page.locator('[role=row][data-session]').first().waitFor();
  return page;
}

const shown = (page: Page) => page.locator('.counts').getAttribute('data-shown').then(Number);

/** Waits until the page shows every session there is. */
async function untilWhole(page: Page): Promise<void> {
  const { size } = await stage.truth();
  await until(`all ${size} are there`, async () => (await shown(page)) === size, patience(20_000));
}

/** Once the figures have faded in. */
async function photographScene(page: Page, name: string): Promise<void> {
  if (RUN_ALL) await delay(600);
  await photograph(page, `space-${name}.png`);
}

describeInBrowser('Space over four gateways', () => {
  beforeAll(async () => {
    browser = await openChromium();
    await stage.raise((i) =>
      i === 0 ? { sessions: { reset_by_platform: { web: { mode: 'idle', idle: '4s' } } } } : {},
    );
    await stage.people(share(15, 50));
    await stage.openSpace();
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await stage.close();
  });
  afterEach(async () => {
    await context.close();
    expect(troubles).toEqual([]);
  });

  test('shows every session of all of them, and asks nobody else for anything', { timeout: 120_000 }, async () => {
    const table = await openTable(stage.space);
    await untilEqual(table, () => stage.truth(), patience(20_000));
    await context.close();
    const page = await open(stage.space);
    await untilWhole(page);
    await photographScene(page, 'four-gateways');
    expect(asked.length).toBeGreaterThan(4);
    expect(asked.filter((url) => !url.startsWith(stage.space) && !url.startsWith('data:'))).toEqual([]);
  });

  test('follows a session through its phases', { timeout: 120_000 }, async () => {
    const page = await open(`${stage.space}/#sessions`);
    const [gateway] = stage.gateways;
    const said = { conversation: `${NAMES[0]}-1`, user: 'ada', stream: false };
    const { session_id: id } = await gateway!.chat({ ...said, text: 'hello' });
    await page.locator('#search').fill(id);
    const phase = page.locator(`[role=row][data-session="${id}"] .phase`);
    const seen = (name: string) =>
      until(`it is ${name}`, async () => (await phase.getAttribute('data-phase')) === name, patience(15_000));
    await seen('idle');
    stage.hold();
    const answered = gateway!.chat({ ...said, text: 'through the phases' });
    await seen('thinking');
    const second = gateway!.chat({ ...said, text: 'and this waits' });
    await photograph(page, 'space-phase-thinking.png');
    stage.letGo();
    await seen('tool');
    stage.hold();
    await page.locator(`[role=row][data-session="${id}"]`).click();
    await page.locator('aside.panel').waitFor();
    expect(await page.locator('aside.panel').innerText()).toContain('run_command');
    await photograph(page, 'space-phase-tool.png');
    await stage.endTool();
    await seen('replying');
    await photograph(page, 'space-phase-replying.png');
    stage.letGo();
    expect((await answered).reply).toContain('the thread is spun');
    await second;
    await seen('idle');
  });

  testInFullRun('says farewell to one that expired, with the reason', { timeout: 120_000 }, async () => {
    const page = await open(stage.space);
    await untilWhole(page);
    await stage.gateways[0]!.chat({
      text: 'hello',
      conversation: 'soon gone',
      platform: 'web',
    });
    const ended = page.locator('.recent').getByText('idle_expiry', { exact: false });
    await until(
      'it is told',
      async () => (await page.locator('.recent').innerText()).includes('soon gone'),
      patience(25_000),
    );
    expect(await ended.count()).toBeGreaterThan(0);
    await photograph(page, 'space-farewell.png');
  });

  testInFullRun('is right again after its line was cut', { timeout: 180_000 }, async () => {
    const wire = await Wire.to(stage.space);
    try {
      const page = await openTable(wire.url);
      await untilEqual(page, () => stage.truth(), patience(20_000));
      wire.cut();
      // Much happens meanwhile.
      for (const [g, gateway] of stage.gateways.entries()) {
        for (let i = 5; i < 10; i++) await gateway.chat({ text: '/new', conversation: `${NAMES[g]}-${i}` });
        for (let i = 0; i < 3; i++) await gateway.chat({ text: 'hello', conversation: `unseen-${g}-${i}` });
      }
      const grey = page.locator('.chips [data-state=grey]');
      await until('all are grey', async () => (await grey.count()) === 4, 8000);
      await photograph(page, 'space-cut-off.png', { clip: { x: 0, y: 0, width: 1440, height: 900 } });
      if (RUN_ALL) await delay(8000); // long enough for the longest pause between attempts
      wire.mend();
      await untilEqual(page, () => stage.truth(), patience(15_000));
      expect(await grey.count()).toBe(0);
    } finally {
      wire.close();
    }
  });

  testInFullRun('parks a session, says why it is parked, and releases it', { timeout: 60_000 }, async () => {
    const page = await open(`${stage.space}/#sessions`);
    const gateway = stage.gateways[1]!;
    const { session_id: id } = await gateway.chat({ text: 'hello', conversation: 'to be parked' });
    await page.locator('#search').fill(id);
    await page.locator(`[role=row][data-session="${id}"]`).click();
    await page.locator('[data-action=suspend]').click();
    expect(await page.locator('[data-parked=operator]').textContent()).toContain('waits until it is released');
    expect(await gateway.get(`/v1/sessions/${id}`)).toMatchObject({ state: 'suspended', suspend_reason: 'operator' });
    await page.locator('[data-action=release]').click();
    await page.locator('[data-action=suspend]').waitFor();
    expect(await gateway.get(`/v1/sessions/${id}`)).toMatchObject({ state: 'open', suspend_reason: null });
  });

  testInFullRun('ends a session when asked twice, and says how it ended', { timeout: 60_000 }, async () => {
    const page = await open(`${stage.space}/#sessions`);
    const gateway = stage.gateways[1]!;
    const { session_id: id } = await gateway.chat({ text: 'hello', conversation: 'to be ended' });
    await page.locator('#search').fill(id);
    await page.locator(`[role=row][data-session="${id}"]`).click();
    await page.locator('[data-action=end]').click();
    await photograph(page, 'space-end-confirmation.png');
    await page.locator('[data-action=confirm-end]').click();
    await page.locator('[data-ended]').waitFor();
    const session = await gateway.get<{ state: string; end_reason: string }>(`/v1/sessions/${id}`);
    expect(session).toMatchObject({
      state: 'ended',
      end_reason: await page.locator('[data-ended]').getAttribute('data-ended'),
    });
    await photograph(page, 'space-ended.png');
  });

  test('has a timeline, a table and listeners; in the dark, on a phone, and without motion', {
    timeout: 120_000,
  }, async () => {
    const dark = { colorScheme: 'dark' } as const;
    const phone = { viewport: { width: 390, height: 844 } };
    const looks = [
      ['still', '', { reducedMotion: 'reduce' }],
      ['timeline', '#timeline', {}],
      ['phone', '', phone],
      ['listeners', '#listeners', {}],
      ['table', '#sessions', {}],
      ['dark', '', dark],
      ['dark-timeline', '#timeline', dark],
      ['phone-table', '#sessions', phone],
    ] as const;
    for (const [name, hash, options] of looks.slice(0, share(1, looks.length))) {
      const page = await open(`${stage.space}/${hash}`, options);
      await untilWhole(page);
      await photographScene(page, name);
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect([name, overflow]).toEqual([name, 0]);
      if (name === 'still') {
        // Rooms and figures; the clock of "ended just now" is not among them. Every figure would move within this time,
        // and the source that is polled is asked again.
        const picture = page.locator('.picture canvas');
        const before = await picture.screenshot();
        await delay(2500);
        expect((await picture.screenshot()).equals(before)).toBe(true);
      }
      await context.close();
    }
  });

  testInFullRun(
    'can be used without a mouse: Tab comes to every control of every view',
    { timeout: 120_000 },
    async () => {
      for (const name of ['space', 'chat', 'sessions', 'timeline', 'listeners'].slice(0, share(2, 5))) {
        const page = await open(`${stage.space}/#${name}`);
        await untilWhole(page);
        const unreached = await page.evaluate<string[]>(`[...document.querySelectorAll(${JSON.stringify(CONTROLS)})]
        .filter((one) => one.checkVisibility() && one.tabIndex >= 0)
        .map((one, i) => (one.dataset.control = String(i), one.outerHTML.slice(0, 100)))`);
        expect(unreached.length).toBeGreaterThan(8);
        const reached = new Set<number>();
        for (let i = 0; i < 2 * unreached.length + 20; i++) {
          await page.keyboard.press('Tab');
          reached.add(Number(await page.evaluate('document.activeElement?.dataset.control ?? -1')));
        }
        expect([name, unreached.filter((_, i) => !reached.has(i))]).toEqual([name, []]);
        await context.close();
      }
    },
  );

  testInFullRun('has a chat whose replies grow, and in which /new ends the session', { timeout: 120_000 }, async () => {
    const gateway = stage.gateways[1]!;
    const page = await open(`${gateway.url}/#chat`);
    const field = page.locator('.chat-view textarea').first();
    stage.hold();
    await field.fill('tell me slowly');
    await field.press('Enter');
    const reply = page.locator('.chat-view');
    await until('it begins', async () => (await reply.innerText()).includes('one two'), patience(15_000));
    expect(await reply.innerText()).not.toContain('ten');
    await photograph(page, 'space-chat-streaming.png');
    stage.letGo();
    await until('it ends', async () => (await reply.innerText()).includes('nine ten'), patience(15_000));
    const open_ = await gateway.get<{ data: { id: string; title: string }[] }>(
      '/v1/sessions?platform=web&state=open&limit=1',
    );
    const id = open_.data[0]!.id;
    await field.fill('/new');
    await field.press('Enter');
    await until(
      'it has ended',
      async () => {
        return (await gateway.get<{ state: string }>(`/v1/sessions/${id}`)).state === 'ended';
      },
      patience(15_000),
    );
    await photograph(page, 'space-chat-new.png');
  });

  testInFullRun('asks in the chat for leave, and does what it got leave for', { timeout: 120_000 }, async () => {
    const page = await open(`${stage.gateways[1]!.url}/#chat`);
    const field = page.locator('.chat-view textarea').first();
    await field.fill('dig here');
    await field.press('Enter');
    const question = page.locator('.chat-question[data-state=asked]');
    await question.waitFor({ timeout: patience(15_000) });
    expect(await question.innerText()).toContain('echo dug');
    await photograph(page, 'space-chat-question.png');
    await page.locator('.chat-allow').click();
    const chat = page.locator('.chat-view');
    await until('it is done', async () => (await chat.innerText()).includes('It is dug.'), patience(15_000));
    await field.fill('dig there');
    await field.press('Enter');
    await page.locator('.chat-deny').click();
    await until('it goes on without', async () => (await question.count()) === 0, patience(15_000));
  });

  test('turns grey where a gateway was killed, and is right again when it returns', { timeout: 180_000 }, async () => {
    const page = await openTable(stage.space);
    await untilEqual(page, () => stage.truth(), patience(20_000));
    const [, , lost] = stage.gateways;
    await lost!.end('SIGKILL');
    const grey = page.locator('.chips [data-state=grey]');
    await until('its room is grey', async () => (await grey.count()) === 1, 5000);
    expect(await grey.innerText()).toContain(NAMES[2]);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${stage.space}/#space`);
    await photographScene(page, 'one-killed');
    await lost!.start();
    await page.setViewportSize({ width: 1440, height: 12_000 });
    await page.goto(`${stage.space}/#sessions`);
    await until('nobody is grey', async () => (await grey.count()) === 0, patience(15_000));
    await untilEqual(page, () => stage.truth(), patience(20_000));
  });
});
