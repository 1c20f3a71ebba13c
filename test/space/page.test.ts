import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from '../gateway/process.ts';
import { testInFullRun } from '../support/full-run.ts';
import { patience } from '../support/patience.ts';
import { BUILT_PAGE, describeInBrowser, openChromium, photograph } from './browser.ts';
import { FakeGateway, type FakeOptions, makeSession } from './fake-gateway.ts';

const AXE = readFileSync(fileURLToPath(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url)), 'utf8');
const VIEWS = ['space', 'sessions', 'timeline', 'listeners', 'chat'];
const DESKTOP = { width: 1440, height: 900 };

describeInBrowser('the page', { timeout: 60_000 }, () => {
  let browser: Browser;
  const closing: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    browser = await openChromium();
  }, 120_000);

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  afterAll(async () => {
    await browser.close();
  });

  async function start(options: FakeOptions = {}): Promise<FakeGateway> {
    const fake = await FakeGateway.start({ page: BUILT_PAGE, ...options });
    closing.push(() => fake.close());
    return fake;
  }

  /** Opens the page; whatever the browser complains of fails the test, unless trouble is what it is about. */
  async function open(fake: FakeGateway, hash = '', how: Parameters<Browser['newContext']>[0] = {}) {
    const context: BrowserContext = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce', ...how });
    closing.push(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    const hosts = new Set<string>();
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (line) => {
      if (/Content Security Policy|Uncaught/.test(line.text())) complaints.push(line.text());
    });
    page.on('request', (request) => hosts.add(new URL(request.url()).host));
    await page.goto(`${fake.url}/${hash}`);
    return { page, complaints, hosts };
  }

  const shownCount = (page: Page, count: number) => page.waitForSelector(`.counts[data-shown="${count}"]`);
  const chip = (page: Page, fake: FakeGateway, state: string) =>
    page.waitForSelector(`[data-gateway="${fake.id}"][data-state="${state}"]`, { timeout: 15_000 });
  const rowIds = (page: Page) =>
    page.$$eval('.grid-row', (rows) => rows.map((row) => row.getAttribute('data-session')));

  test('is small, and asks nobody but its own server', async () => {
    const fake = await start({ sessions: 12 });
    const { page, hosts, complaints } = await open(fake);
    await shownCount(page, 12);
    for (const view of VIEWS) {
      await page.goto(`${fake.url}/#${view}`);
      await page.waitForSelector(`main[data-view="${view}"]`);
    }
    await page.goto(`${fake.url}/#timeline`);
    await page.waitForSelector('.chart-frame canvas');
    expect([...hosts]).toEqual([new URL(fake.url).host]);
    expect(complaints).toEqual([]);
    const assets = readdirSync(join(BUILT_PAGE, 'assets')).map((name) =>
      readFileSync(join(BUILT_PAGE, 'assets', name)),
    );
    const bytes = assets.reduce((sum, file) => sum + gzipSync(file).length, 0);
    expect(bytes).toBeLessThan(100_000);
  });

  test('asks for the key, and says that one is wrong, also after many', async () => {
    const fake = await start({ sessions: 3, key: 'atropos' });
    const { page } = await open(fake);
    await page.waitForSelector('dialog[open]');
    await photograph(page, 'page-key.png');
    await page.fill('#key', 'wrong');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog .trouble:has-text("The key is wrong")');
    fake.retryAfter = 2;
    await page.fill('#key', 'wrong again');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog .trouble:has-text("The key is wrong")');
    fake.retryAfter = 0;
    await page.fill('#key', 'atropos');
    await page.keyboard.press('Enter');
    await shownCount(page, 3);
    expect(await page.$('dialog[open]')).toBeNull();
    expect(page.url()).not.toContain('atropos');
    expect(fake.requests.join()).not.toContain('atropos');
    expect(await page.evaluate("[sessionStorage.length, localStorage.getItem('moirai-key')]")).toEqual([1, null]);
    await page.reload();
    await shownCount(page, 3);
    await page.click('button[title="Forget the key"]');
    await page.waitForSelector('dialog[open]');
    expect(await page.evaluate("sessionStorage.getItem('moirai-key')")).toBeNull();
  });

  test('follows what goes on, and equals the gateway after a broken connection', async () => {
    const fake = await start({ sessions: 20 });
    const { page } = await open(fake, '#sessions');
    await shownCount(page, 20);
    fake.change(makeSession(fake, 20));
    await shownCount(page, 21);
    fake.endSession('ses_clotho_00000', 'user_reset');
    await shownCount(page, 20);
    fake.drop();
    // While nobody hears: one ends, one starts, one changes.
    fake.endSession('ses_clotho_00001', 'idle_expiry', true);
    fake.put(makeSession(fake, 30));
    fake.put(makeSession(fake, 2, { title: 'Changed while away' }));
    fake.pass();
    await page.waitForSelector('.grid-row:has-text("Changed while away")', { timeout: 10_000 });
    const expected = fake.open().map(({ id }) => id);
    expect((await rowIds(page)).sort()).toEqual(expected.sort());
    await page.click('a[href="#space"]');
    await page.waitForSelector('.recent li:has-text("idle_expiry")');
    expect(await page.$$eval('.recent li', (all) => all.length)).toBe(2);
  });

  testInFullRun('the picture keeps its size when sessions end', async () => {
    const fake = await start({ sessions: 20 });
    const { page } = await open(fake);
    await shownCount(page, 20);
    const picture = page.locator('.picture canvas');
    const before = await picture.boundingBox();
    for (let i = 0; i < 8; i++) fake.endSession(`ses_clotho_0000${i}`, 'user_reset');
    await page.waitForSelector('.recent li:nth-child(8)');
    expect(await picture.boundingBox()).toEqual(before);
  });

  testInFullRun('greys a source that goes, keeps its sessions as last known, and has it back', async () => {
    const [a, b] = [await start({ name: 'clotho', sessions: 4 }), await start({ name: 'lachesis', sessions: 3 })];
    const front = await start({ behind: [a, b] });
    const { page } = await open(front, '#sessions');
    await shownCount(page, 7);
    b.down = true;
    b.drop();
    await chip(page, b, 'grey');
    await chip(page, a, 'ready');
    await page.waitForSelector('.leaks[data-state="unsure"]');
    expect(await page.$$eval('.grid-row.grey', (rows) => rows.length)).toBe(3);
    await page.waitForSelector('.counts [data-phase="grey"][data-count="3"]');
    await photograph(page, 'page-grey.png');
    b.down = false;
    await chip(page, b, 'ready');
    await page.waitForSelector('.grid-row.grey', { state: 'detached' });
  });

  testInFullRun('equals the gateway after many changes and many broken connections', async () => {
    const fake = await start({ sessions: 30 });
    const { page } = await open(fake, '#sessions');
    await shownCount(page, 30);
    const random = pseudoRandom(7);
    for (let step = 0; step < 300; step++) {
      const chance = random();
      const index = Math.floor(random() * 60);
      const id = `ses_clotho_${String(index).padStart(5, '0')}`;
      const ended = fake.sessions.get(id)?.end ?? null;
      if (chance < 0.03) fake.drop();
      else if (chance < 0.2) fake.endSession(id, 'idle_expiry', random() < 0.3);
      else if (ended === null) fake.change(makeSession(fake, index, { phase: random() < 0.5 ? 'thinking' : 'idle' }));
      if (step % 10 === 0) await page.waitForTimeout(20);
    }
    // The ends that nobody was told of are made good by the next whole word.
    fake.pass();
    fake.drop();
    const thinking = fake.open().filter(({ phase }) => phase === 'thinking').length;
    await page.waitForSelector(`.counts [data-phase="thinking"][data-count="${thinking}"]`);
    await shownCount(page, fake.open().length);
    await page.click('[role="columnheader"] button:has-text("Session")');
    const ids = fake.open().map(({ id }) => id);
    expect((await rowIds(page)).every((id) => id !== null && ids.includes(id))).toBe(true);
  });

  testInFullRun('follows more gateways than a browser has connections', async () => {
    const many: FakeGateway[] = [];
    for (let index = 0; index < 9; index++) many.push(await start({ name: `gateway-${index}`, sessions: 2 }));
    const front = await start({ behind: many });
    const { page } = await open(front, '#sessions');
    await shownCount(page, 18);
    for (const one of many) await chip(page, one, 'ready');
    expect(await page.$('.chip .badge')).toBeNull();
    many[8]?.change(makeSession(many[8], 5));
    await shownCount(page, 19);
    await page.click('.grid-row');
    await page.waitForSelector('.message');
    await photograph(page, 'page-many.png');
  });

  testInFullRun('notices a stream that stays open and says nothing', async () => {
    const fake = await start({ sessions: 2 });
    const { page } = await open(fake);
    await chip(page, fake, 'ready');
    fake.silent = true;
    await chip(page, fake, 'grey');
    fake.silent = false;
    await chip(page, fake, 'ready');
  });

  testInFullRun('asks again and again a gateway that has no stream, and labels it', async () => {
    const fake = await start({ sessions: 2 });
    fake.streamStatus = 404;
    const { page } = await open(fake);
    await shownCount(page, 2);
    await page.waitForSelector('.chip .badge:has-text("other version")');
    fake.change(makeSession(fake, 5));
    await shownCount(page, 3);
  });

  testInFullRun('shows a phase that it does not know as the word it is', async () => {
    const fake = await start({ sessions: 1 });
    const { page } = await open(fake, '#sessions');
    await shownCount(page, 1);
    fake.change(makeSession(fake, 9, { phase: 'dreaming' as 'idle' }));
    await page.waitForSelector('.grid-row:has-text("dreaming")');
  });

  testInFullRun('is calm about leaks while there are none, and alarmed when there is one', async () => {
    const fake = await start({ sessions: 2 });
    const { page } = await open(fake);
    await page.waitForSelector('.leaks[data-state="calm"][data-unowned="0"]');
    fake.unowned = 1;
    fake.tellTotals();
    await page.waitForSelector('.leaks[data-state="alarm"][data-unowned="1"]');
    await photograph(page, 'page-alarm.png');
  });

  testInFullRun('sorts, filters and searches ten thousand sessions with few rows in the document', async () => {
    const fake = await start({ sessions: 10_000 });
    const { page } = await open(fake, '#sessions');
    await shownCount(page, 10_000);
    expect(await page.getAttribute('[role="grid"]', 'aria-rowcount')).toBe('10001');
    expect(await page.$$eval('.grid-row', (rows) => rows.length)).toBeLessThan(60);
    for (const title of [
      'Session',
      'Phase',
      'Kind',
      'Platform',
      'User',
      'Gateway',
      'Messages',
      'Tokens',
      'Started',
      'Deadline',
    ]) {
      await page.click(`[role="columnheader"] button:has-text("${title}")`);
      await page.waitForSelector(`[role="columnheader"][aria-sort="ascending"]:has-text("${title}")`);
    }
    await page.click('[role="columnheader"] button:has-text("Tokens")');
    await page.click('[role="columnheader"] button:has-text("Tokens")');
    await page.waitForSelector('.grid-row[aria-rowindex="2"][data-session="ses_clotho_09999"]');
    await page.selectOption('[data-filter="phase"]', 'tool');
    await page.waitForSelector('.found[data-count="1000"]');
    await page.fill('#search', 'tomatoes 44');
    const found = fake.open().filter(({ phase, ...rest }) => {
      const text = `${rest.title} ${rest.key} ${rest.user} ${rest.id}`.toLowerCase();
      return phase === 'tool' && text.includes('tomatoes') && text.includes('44');
    });
    expect(found.length).toBeGreaterThan(0);
    await page.waitForSelector(`.found[data-count="${found.length}"]`);
    await page.waitForSelector('[role="status"]:has-text("found")', { state: 'attached' });
  });

  testInFullRun('stays quick while ten thousand sessions change', async () => {
    const fake = await start({ sessions: 10_000 });
    const { page } = await open(fake, '#sessions');
    await shownCount(page, 10_000);
    for (let index = 0; index < 500; index++)
      fake.change(makeSession(fake, index, { phase: 'thinking', title: `New ${index}` }));
    const from = Date.now();
    await page.click('[role="columnheader"] button:has-text("Session")');
    await page.waitForSelector('[role="columnheader"][aria-sort="ascending"]:has-text("Session")');
    for (let index = 0; index < 20; index++) {
      fake.change(makeSession(fake, index, { title: `Newer ${index}` }));
      await page.waitForTimeout(20);
    }
    await page.fill('#search', 'New 499');
    await page.waitForSelector('.found[data-count="1"]');
    expect(Date.now() - from).toBeLessThan(patience(5000));
  });

  test('is worked by keys alone: search, rows, panel, help', async () => {
    const fake = await start({ sessions: 50 });
    const { page } = await open(fake);
    await shownCount(page, 50);
    await page.keyboard.press('/');
    await page.waitForSelector('#search:focus');
    await page.keyboard.press('Escape');
    await page.focus('[role="grid"]');
    await page.keyboard.press('End');
    await page.waitForSelector('.grid-row[data-active="true"][aria-rowindex="51"]');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    await page.waitForSelector('.grid-row[data-active="true"][aria-rowindex="3"]');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.panel');
    expect(await page.evaluate('document.activeElement?.id')).toBe('panel-title');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.panel', { state: 'detached' });
    expect(await page.evaluate("document.activeElement?.getAttribute('role')")).toBe('grid');
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open]');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog[open]', { state: 'detached' });
    await page.keyboard.press('3');
    await page.waitForSelector('main[data-view="timeline"]');
    await page.keyboard.press('1');
    await page.focus('canvas');
    // The canvas is there a frame before those who stand on it.
    const chooses = async (): Promise<number> => {
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('Enter');
      return page.locator('.panel').count();
    };
    await expect.poll(chooses, { timeout: patience(10_000) }).toBe(1);
  });

  testInFullRun('shows a session whole: transcript from its end, earlier pages, events', async () => {
    const fake = await start({ sessions: 4 });
    const { page } = await open(fake, '#sessions/ses_clotho_00000');
    await page.waitForSelector('.message:has-text("number 119")');
    await page.click('button:has-text("Earlier")');
    await page.waitForSelector('.message:has-text("(20)")');
    await page.click('button:has-text("Earlier")');
    await page.waitForSelector('.message:has-text("(0)")');
    await page.click('[role="tab"]:has-text("Events")');
    await page.waitForSelector('.events code:has-text("session:start")');
    await page.waitForSelector('.facts:has-text("none: it waits for as long as it takes")');
  });

  testInFullRun('ends a session after asking, and resumes it as a new one', async () => {
    const fake = await start({ sessions: 4 });
    const { page } = await open(fake, '#sessions/ses_clotho_00001');
    await page.click('[data-action="end"]');
    await page.waitForSelector('dialog[open]:has-text("Invoice from March 1"):has-text("ses_clotho_00001")');
    await photograph(page, 'page-end.png');
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog[open]', { state: 'detached' });
    expect(fake.sessions.get('ses_clotho_00001')?.end).toBeNull();
    await page.click('[data-action="end"]');
    await page.click('[data-action="confirm-end"]');
    await page.waitForSelector('.panel [data-reason="api_close"]');
    await shownCount(page, 3);
    await page.click('[data-action="resume"]');
    await page.click('[data-resumed="ses_clotho_00001_next"] button');
    await page.waitForSelector('.panel[data-session="ses_clotho_00001_next"]');
    await page.click('summary:has-text("Where it comes from")');
    await page.waitForSelector('.origin button:has-text("ses_clotho_00001")');
  });

  testInFullRun('lists who has ended, page by page', async () => {
    const fake = await start({ sessions: 150 });
    for (const { id } of fake.open().slice(0, 130)) fake.endSession(id, 'idle_expiry', true);
    const { page } = await open(fake, '#sessions');
    await shownCount(page, 20);
    await page.click('.choice button:has-text("Ended")');
    await page.waitForSelector('.found[data-count="100"]');
    await page.click('.more button');
    await page.waitForSelector('.found[data-count="130"]');
    await page.fill('#search', 'Tomatoes 4');
    await page.waitForSelector('.found[data-count="5"], .found[data-count="4"], .found[data-count="3"]');
    await page.click('.grid-row');
    await page.waitForSelector('.panel [data-reason="idle_expiry"]');
    await photograph(page, 'page-ended.png');
  });

  testInFullRun('delivers dead letters again after asking', async () => {
    const fake = await start();
    const { page } = await open(fake, '#listeners');
    await page.click('[data-listener="webhook:crm"] [data-action="replay"]');
    await page.click('[data-action="confirm-replay"]');
    await page.waitForSelector('[data-listener="webhook:crm"][data-state="failing"]');
    expect(fake.subscribers[1]?.dead_letters).toBe(0);
  });

  testInFullRun('has a chart, its toggles, and the same as a table', async () => {
    const fake = await start();
    const { page } = await open(fake, '#timeline');
    await page.waitForSelector('.chart-frame canvas');
    await page.click('[data-series="reaped"]');
    await page.waitForSelector('[data-series="reaped"][aria-pressed="false"]');
    await page.click('.choice button:has-text("7 d")');
    await page.waitForSelector('.choice [aria-pressed="true"]:has-text("7 d")');
    await page.click('summary:has-text("The same as a table")');
    expect(await page.$$eval('.scroll tbody tr', (rows) => rows.length)).toBeGreaterThan(10);
  });

  testInFullRun("tells a gateway's checks", async () => {
    const fake = await start();
    const { page } = await open(fake);
    await page.click(`[data-gateway="${fake.id}"]`);
    await page.click('dialog button:has-text("Check now")');
    await page.waitForSelector('.checks [data-ok="false"]:has-text("telegram")');
    await photograph(page, 'page-gateway.png');
  });

  test('shows hostile text as the text it is', async () => {
    const fake = await start({ sessions: 1 });
    const evil = '<img src=x onerror="window.hurt=1"> \u202Egnp.exe \u001b[2J\u0007 \u2066hidden';
    fake.put(makeSession(fake, 0, { title: evil, user: evil, key: evil, tool: evil, phase: 'tool', platform: evil }));
    const kept = fake.sessions.get('ses_clotho_00000');
    kept?.messages.push({ role: 'user', text: evil }, { role: 'assistant', text: 'x'.repeat(50_000) });
    fake.put(makeSession(fake, 0, { title: evil, user: evil, key: evil, platform: evil, message_count: 122 }));
    const { page, complaints } = await open(fake, '#sessions/ses_clotho_00000');
    await page.waitForSelector('.message:has-text("onerror")');
    await page.waitForSelector('button:has-text("show all 50,000 characters")');
    const text = await page.evaluate<string>('document.body.innerText');
    expect(text).toContain('⟨202E⟩gnp.exe ␛[2J␇ ⟨2066⟩hidden');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(text).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u001b\u0007]/);
    expect(await page.evaluate("'hurt' in window")).toBe(false);
    expect(await page.$('img')).toBeNull();
    expect(complaints).toEqual([]);
    await photograph(page, 'page-hostile.png');
  });

  test('works with a real gateway: a session thinks, is ended, and is shown as it is kept', async () => {
    const model = await startOpenAiServer(() => ({ text: 'one two three four five six seven eight', betweenMs: 150 }));
    closing.push(() => model.close());
    const gateway = new GatewayProcess({ model: { base_url: model.url, name: 'fake-model', api_key: 'key' } });
    closing.push(() => gateway.close());
    await gateway.start();
    const front = await start({ real: () => gateway.url });
    const { page, complaints } = await open(front, '#sessions');
    await page.waitForSelector('.chip[data-state="ready"]');
    await page.waitForSelector('.leaks[data-state="calm"]');
    const say = (text: string) =>
      fetch(`${gateway.url}/v1/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text, conversation: 'loom' }),
      });
    const reply = say('Spin');
    await page.waitForSelector('.grid-row :is([data-phase="thinking"], [data-phase="replying"])');
    await reply;
    await page.waitForSelector('.grid-row [data-phase="idle"]');
    await page.click('.grid-row');
    await page.waitForSelector('.message[data-role="assistant"]:has-text("seven eight")');
    await page.click('[role="tab"]:has-text("Events")');
    await page.waitForSelector('.events code:has-text("session:start")');
    await photograph(page, 'page-real.png');
    await page.click('[data-action="end"]');
    await page.click('[data-action="confirm-end"]');
    await page.waitForSelector('.panel [data-reason="api_close"]');
    await page.waitForSelector('.events code:has-text("session:end")');
    await shownCount(page, 0);
    await page.click('[data-action="resume"]');
    await shownCount(page, 1);
    await page.goto(`${front.url}/#timeline`);
    await page.waitForSelector('[data-series="api_close"]:has-text("1")');
    await page.goto(`${front.url}/#listeners`);
    await page.waitForSelector('.card');
    expect(complaints).toEqual([]);
  });

  testInFullRun('remembers the theme that was chosen', async () => {
    const fake = await start();
    const { page } = await open(fake, '', { colorScheme: 'light' });
    const ground = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
    const light = await ground();
    await page.click('[data-action="theme"]');
    await page.click('[data-action="theme"]');
    await page.waitForSelector('html[data-theme="dark"]');
    expect(await ground()).not.toBe(light);
    await page.reload();
    await page.waitForSelector('html[data-theme="dark"]');
  });

  testInFullRun.each(['light', 'dark'] as const)(
    'has no serious fault for helping technology in any view, %s',
    async (colorScheme) => {
      const fake = await start({ sessions: 30 });
      const { page } = await open(fake, '', { colorScheme });
      await shownCount(page, 30);
      for (const hash of [...VIEWS, 'sessions/ses_clotho_00003']) {
        await page.goto(`${fake.url}/#${hash}`);
        await page.waitForTimeout(700);
        expect(await faults(page), hash).toEqual([]);
        await photograph(page, `page-${hash.replace('/', '-')}-${colorScheme}.png`);
      }
      await page.click('[data-action="end"]');
      expect(await faults(page), 'dialog').toEqual([]);
    },
  );

  testInFullRun.each([360, 390])('fits a width of %d', async (width) => {
    const fake = await start({ sessions: 30, name: 'a-gateway-with-quite-a-long-name' });
    const { page } = await open(fake, '', { viewport: { width, height: 844 }, colorScheme: 'dark', hasTouch: true });
    await shownCount(page, 30);
    for (const hash of [...VIEWS, 'sessions/ses_a-gateway-with-quite-a-long-name_00000']) {
      await page.goto(`${fake.url}/#${hash}`);
      await page.waitForTimeout(500);
      const over = await page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth');
      expect(over, hash).toBeLessThanOrEqual(0);
      await photograph(page, `page-${hash.split('/').length > 1 ? 'panel' : hash}-${width}.png`);
    }
    const panel = await page.$eval('.panel', (element) => element.getBoundingClientRect().toJSON());
    expect([panel.x, panel.y, panel.width]).toEqual([0, 0, width]);
    for (let index = 0; index < 12; index++) {
      await page.keyboard.press('Tab');
      const place = await page.evaluate<string>("document.activeElement?.closest('main, nav') ? 'under' : 'over'");
      expect(place).toBe('over');
    }
    await page.keyboard.press('Escape');
    await page.waitForSelector('.panel', { state: 'detached' });
  });
});

/** The same numbers every time. */
function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

interface Fault {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** Serious and critical faults that axe finds. It is evaluated from outside: the page itself may load nothing. */
async function faults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const faults = await page.evaluate<readonly Fault[]>('axe.run().then(({ violations }) => violations)');
  const bad = faults.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  return bad.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`);
}
