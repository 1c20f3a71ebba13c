import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { HttpFake, RecordedRequest } from '../fakes/http-fake.ts';
import type { ScriptedReply } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from '../gateway/process.ts';
import { testInFullRun } from '../support/full-run.ts';
import { patience } from '../support/patience.ts';
import { describeInBrowser, openChromium, photograph } from './browser.ts';
import { ChatPage } from './chat-page.ts';

const WORDS = Array.from({ length: 40 }, (_, i) => `word${i + 1}`).join(' ');

const HOSTILE = [
  '# A **heading**',
  '<script>document.title = "taken"</script> <img src=x onerror="document.title=\'taken\'">',
  'A [trap](javascript:document.title=1), [data](data:text/html,x), and [a page](https://example.com/a?b=1).',
  'Turned \u202Egnp.exe, and \u001B[31mred\u001B[0m.',
  '1. first with `code`\n2. second, *slanted*\n   - below',
  '> quoted',
  '```js\nconst a = "<b>";\nconsole.log(a);\n```',
  '| name | value |\n|---|---|\n| one | 1 |\n| two | **2** |',
].join('\n\n');

/** What the model answers depends on what it is told. */
function script({ body }: RecordedRequest): ScriptedReply {
  const last = body.messages.at(-1);
  const said = String(last?.content ?? '');
  if (last?.role === 'tool') return { text: 'There are some files.' };
  if (said.includes('slowly')) return { text: WORDS, betweenMs: 60 };
  if (said.includes('list the files')) return { text: 'I look.', toolCalls: [{ name: 'list_files', args: {} }] };
  if (said.includes('hostile')) return { text: HOSTILE };
  if (said.includes('long')) return { text: 'A line of a long reply, with **bold** words.\n\n'.repeat(2200) };
  if (said.includes('break')) return { status: 400, error: { message: 'no such thing' } };
  return { text: `You said: ${said}` };
}

interface SessionView {
  readonly id: string;
  readonly key: string;
  readonly title: string | null;
  readonly state: string;
  readonly end_reason: string | null;
}

let model: HttpFake;
let gateway: GatewayProcess;
let site: ChatPage;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const troubles: string[] = [];

describeInBrowser('the web chat, before a gateway', { timeout: 120_000 }, () => {
  beforeAll(async () => {
    model = await startOpenAiServer(script);
    gateway = new GatewayProcess({ model: { base_url: model.url, name: 'fake-model', api_key: 'key' } });
    site = new ChatPage(() => gateway.url);
    [browser] = await Promise.all([openChromium(), gateway.start(), site.start()]);
  }, patience(60_000));

  afterAll(async () => {
    await browser?.close();
    await site?.close();
    await gateway?.close();
    await model?.close();
  });

  beforeEach(async () => {
    troubles.length = 0;
    await openContext();
  });

  afterEach(async () => {
    await context.close();
    expect(troubles).toEqual([]);
  });

  test('a reply grows while it comes, and stays after a reload', async () => {
    await say('tell me slowly');
    const live = page.locator('.chat-live');
    await live.getByText('word3').waitFor();
    const early = await live.innerText();
    expect(early).not.toContain('word40');
    await photograph(page, 'chat-streaming.png');
    await page.locator('.chat-from-agent', { hasText: 'word40' }).waitFor();
    await live.waitFor({ state: 'detached' });
    expect(await page.locator('.chat-message').count()).toBe(2);
    expect(await page.locator('.chat [role=status]').innerText()).toContain('Reply: word1');
    await page.reload();
    await page.locator('.chat-from-agent', { hasText: 'word40' }).waitFor();
    expect(await page.locator('.chat-message').count()).toBe(2);
    expect(await page.locator('.chat-head h2').innerText()).toBe('tell me slowly');
  });

  test('/new ends the session, and the chat tells it', async () => {
    await sayAndHear('before the end');
    await say('/new');
    await page.locator('.chat-end').waitFor();
    expect(await page.locator('.chat-end').innerText()).toMatch(/Session ended: \/new, .*A new one began\./);
    await page.locator('.chat-note', { hasText: 'A fresh session.' }).waitFor();
    await sayAndHear('after the end');
    const sessions = await sessionsOf(await openConversation());
    expect(sessions.map(({ state, end_reason }) => [state, end_reason])).toEqual([
      ['open', null],
      ['ended', 'user_reset'],
    ]);
    await page.reload();
    await page.locator('.chat-end').waitFor();
    // The transcript of the session that ended is read behind that of the open one.
    await page.locator('.chat-from-agent', { hasText: 'You said: before the end' }).waitFor();
    expect(await order()).toEqual([
      'before the end',
      'You said: before the end',
      'END',
      'after the end',
      'You said: after the end',
    ]);
    await photograph(page, 'chat-new.png');
  });

  testInFullRun('two conversations are two sessions, found from another browser too', async () => {
    await sayAndHear('the first conversation');
    const first = await openConversation();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByText('Nothing was said here yet.').waitFor();
    await sayAndHear('the second conversation');
    const second = await openConversation();
    expect(second).not.toBe(first);
    const [one] = await sessionsOf(first);
    const [two] = await sessionsOf(second);
    expect(one?.id).not.toBe(two?.id);
    await photograph(page, 'chat-two.png');
    await page.locator('.chat-list').getByRole('button', { name: 'the first conversation' }).click();
    await page.locator('.chat-from-agent', { hasText: 'You said: the first conversation' }).waitFor();
    expect(await page.locator('.chat-message').count()).toBe(2);

    await context.close();
    await openContext();
    await page.getByRole('heading', { name: 'On this gateway' }).waitFor();
    await page.locator('.chat-list').getByRole('button', { name: 'the second conversation' }).click();
    await page.locator('.chat-from-agent', { hasText: 'You said: the second conversation' }).waitFor();
  });

  testInFullRun('a conversation can be renamed, and taken off the list while the gateway keeps it', async () => {
    await sayAndHear('a name is missing');
    const conversation = await openConversation();
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('textbox', { name: 'Title' }).fill('A better name');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'A better name' }).waitFor();
    expect((await sessionsOf(conversation))[0]?.title).toBe('A better name');
    await page.getByRole('button', { name: 'Remove' }).click();
    const asked = page.getByRole('alertdialog');
    expect(await asked.innerText()).toContain('The gateway keeps the conversation');
    await asked.getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Nothing was said here yet.').waitFor();
    await page.getByRole('heading', { name: 'On this gateway' }).waitFor();
    await page.locator('.chat-list').getByRole('button', { name: 'A better name' }).waitFor();
    expect(await sessionsOf(conversation)).toHaveLength(1);
  });

  testInFullRun(
    'a connection that is cut in the middle of a reply is taken up again, and the reply is made once',
    async () => {
      const before = questions(model).length;
      await say('tell me slowly, over a bad wire');
      await page.locator('.chat-live').getByText('word3').waitFor();
      expect(site.sever()).toBe(1);
      await page.getByText('The connection was lost').waitFor();
      site.mend();
      await page.locator('.chat-from-agent', { hasText: 'word40' }).waitFor();
      await page.locator('.chat-live').waitFor({ state: 'detached' });
      expect(await order()).toEqual(['tell me slowly, over a bad wire', WORDS]);
      expect(questions(model).length - before).toBe(1);
    },
  );

  testInFullRun('what could not be sent is sent again under the same key', async () => {
    await sayAndHear('hello');
    site.sever();
    await say('are you there?');
    const again = page.getByRole('button', { name: 'Send again' });
    await again.waitFor();
    await photograph(page, 'chat-failed.png');
    site.mend();
    await again.click();
    await page.locator('.chat-from-agent', { hasText: 'You said: are you there?' }).waitFor();
    await page.locator('.chat-live').waitFor({ state: 'detached' });
    expect(await order()).toEqual(['hello', 'You said: hello', 'are you there?', 'You said: are you there?']);
    troubles.length = 0;
  });

  testInFullRun('a reload in the middle of a reply goes on waiting for it', async () => {
    await say('tell me slowly, while I reload');
    await page.locator('.chat-live').getByText('word3').waitFor();
    await page.reload();
    await page.locator('.chat-from-agent:not(.chat-live)', { hasText: 'word40' }).waitFor();
    await page.locator('.chat-live').waitFor({ state: 'detached' });
    expect(await order()).toEqual(['tell me slowly, while I reload', WORDS]);
  });

  test('a gateway that is killed in the middle of a reply gives it when it is back', async () => {
    await say('tell me slowly, over a crash');
    await page.locator('.chat-live').getByText('word3').waitFor();
    await gateway.end('SIGKILL');
    const lost = page.getByText('The connection was lost').waitFor();
    // The next test needs one, whatever came of this.
    await Promise.allSettled([lost]).then(() => gateway.start());
    await lost;
    await page.locator('.chat-live').waitFor({ state: 'detached', timeout: patience(60_000) });
    expect((await order()).filter((text) => text === 'tell me slowly, over a crash')).toHaveLength(1);
    expect((await order()).length).toBeGreaterThan(1);
    troubles.length = 0;
  });

  testInFullRun('a running reply can be stopped, and several messages wait for their turn', async () => {
    await say('tell me slowly, and wait');
    await page.locator('.chat-live').getByText('word3').waitFor();
    await say('and this is next');
    await say('/status');
    await page.locator('.chat-note', { hasText: 'Waiting: 1' }).waitFor();
    await photograph(page, 'chat-queue.png');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.chat-note', { hasText: 'What was done so far is kept' }).waitFor();
    await page.locator('.chat-from-agent', { hasText: 'You said: and this is next' }).waitFor();
    await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' });
  });

  testInFullRun('tools are told, while they run and afterwards', async () => {
    await sayAndHear('list the files', 'There are some files.');
    await page.locator('.chat-tools', { hasText: 'list_files' }).waitFor();
    expect(await order()).toEqual(['list the files', 'I look.', 'There are some files.']);
  });

  testInFullRun('a turn that fails says why, and can be tried again', async () => {
    await say('break it');
    const note = page.locator('.chat-note-error');
    await note.waitFor();
    expect(await note.innerText()).toContain('no such thing');
    await note.getByRole('button', { name: 'Try again' }).click();
    await expect.poll(() => page.locator('.chat-note-error').count(), { timeout: patience(10_000) }).toBe(2);
  });

  testInFullRun('what is said in another tab appears', async () => {
    await sayAndHear('from here');
    const conversation = await openConversation();
    await gateway.chat({ text: 'from elsewhere', conversation, platform: 'web' });
    await page.locator('.chat-from-agent', { hasText: 'You said: from elsewhere' }).waitFor();
  });

  testInFullRun('commands are completed by the keyboard', async () => {
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.fill('/');
    const list = page.getByRole('listbox', { name: 'Commands' });
    await list.waitFor();
    const names = await list.locator('b').allInnerTexts();
    for (const name of COMMANDS) expect(names).toContain(`/${name}`);
    await photograph(page, 'chat-commands.png');
    await field.press('Escape');
    await list.waitFor({ state: 'detached' });
    await field.fill('/st');
    await list.waitFor();
    expect(await chosen()).toContain('/stop');
    await field.press('ArrowDown');
    expect(await chosen()).toContain('/steer');
    await field.press('ArrowUp');
    expect(await chosen()).toContain('/stop');
    await field.press('ArrowUp');
    await field.press('ArrowDown');
    await field.press('ArrowDown');
    await field.press('ArrowDown');
    expect(await chosen()).toContain('/status');
    await field.press('Tab');
    expect(await field.inputValue()).toBe('/status');
    await field.press('Enter');
    await page.locator('.chat-note', { hasText: 'There is no open session here yet' }).waitFor();
    await field.fill('/titl');
    await list.waitFor();
    await field.press('Enter');
    expect(await field.inputValue()).toBe('/title ');
  });

  test('what is hostile is text, and Markdown is built of elements', async () => {
    await sayAndHear('hostile <b>words</b>', 'quoted');
    const reply = page.locator('.chat-from-agent').last();
    expect(await page.title()).not.toBe('taken');
    expect(await reply.locator('script, img').count()).toBe(0);
    expect(await page.locator('.chat-from-user b').count()).toBe(0);
    const links = reply.locator('a');
    expect(await links.count()).toBe(1);
    expect(await links.getAttribute('href')).toBe('https://example.com/a?b=1');
    expect(await links.getAttribute('rel')).toContain('noopener');
    const text = await reply.innerText();
    expect(text).toContain('[trap](javascript:document.title=1)');
    expect(text).toContain('⟨202E⟩');
    expect(text).toContain('␛[31mred');
    expect(await reply.locator('ol li').count()).toBe(3);
    expect(await reply.locator('pre code').innerText()).toContain('const a = "<b>";');
    expect(await reply.locator('td strong').innerText()).toBe('2');
    await photograph(page, 'chat-markdown.png');
    await expectNoSeriousViolations();
  });

  testInFullRun('a message of a hundred thousand characters is shown in part, and whole when asked', async () => {
    await page.evaluate(`globalThis.longest = 0;
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
      }).observe({ type: 'longtask' });`);
    await page.getByRole('textbox', { name: 'Message' }).fill(`a long text ${'x '.repeat(50_000)}`);
    await page.keyboard.press('Enter');
    const more = page.getByRole('button', { name: /Show all 10\d thousand/ });
    await expect.poll(() => more.count(), { timeout: patience(15_000) }).toBe(2);
    const began = performance.now();
    await more.last().click();
    await expect.poll(() => more.count()).toBe(1);
    expect(performance.now() - began).toBeLessThan(patience(3000));
    // The page can be used while it comes.
    expect(await page.evaluate('longest')).toBeLessThan(patience(500));
  });

  testInFullRun('what is not sent stays in its conversation, and the last words come back with the arrow', async () => {
    await sayAndHear('something');
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.press('ArrowUp');
    expect(await field.inputValue()).toBe('something');
    await field.fill('one line');
    await field.press('Shift+Enter');
    await field.pressSequentially('two');
    await page.getByRole('button', { name: 'New conversation' }).click();
    await expect.poll(() => field.inputValue()).toBe('');
    await page.locator('.chat-list').getByRole('button', { name: 'something' }).click();
    await expect.poll(() => field.inputValue()).toBe('one line\ntwo');
    await page.reload();
    expect(await field.inputValue()).toBe('one line\ntwo');
  });

  describe('with four sessions in the conversation', () => {
    /** Pages of a transcript; the list of conversations reads a few messages too, for its titles. */
    const PAGES = '**/messages?cursor=*';
    let conversation: string;
    const scrollToTop = (): Promise<void> =>
      page.locator('.chat-log').evaluate((log) => {
        log.scrollTop = 0;
      });
    const countOfFirst = (): Promise<number> => page.locator('.chat-from-user', { hasText: 'no 0.0' }).count();

    beforeAll(async () => {
      conversation = crypto.randomUUID();
      for (let i = 0; i < 4; i++) {
        for (let j = 0; j < 6; j++) await gateway.chat({ text: `no ${i}.${j}`, conversation, platform: 'web' });
        if (i < 3) await gateway.chat({ text: '/new', conversation, platform: 'web' });
      }
    });

    beforeEach(() =>
      context.addInitScript((id) => {
        localStorage.setItem('moirai-chat:here', JSON.stringify({ open: id, conversations: [{ id }] }));
      }, conversation),
    );

    testInFullRun('earlier sessions are loaded upward', async () => {
      await page.reload();
      await page.locator('.chat-from-agent', { hasText: 'no 2.5' }).waitFor();
      expect(await countOfFirst()).toBe(0);
      await expect.poll(() => scrollToTop().then(countOfFirst), { timeout: patience(10_000) }).toBe(1);
      expect(await page.locator('.chat-end').count()).toBe(3);
      expect(await page.locator('.chat-message').count()).toBe(48);
    });

    testInFullRun('a person who is at the top before all is loaded gets what is earlier', async () => {
      const scrolled = Promise.withResolvers<void>();
      let asked = 0;
      await page.route(PAGES, async (route) => {
        if (++asked > 1) await scrolled.promise;
        await route.continue();
      });
      await page.reload();
      await page.locator('.chat-from-agent', { hasText: 'no 3.5' }).waitFor();
      const toNewest = page.getByRole('button', { name: 'To the newest' });
      await expect.poll(() => scrollToTop().then(() => toNewest.count()), { timeout: patience(10_000) }).toBe(1);
      scrolled.resolve();
      await expect.poll(countOfFirst, { timeout: patience(10_000) }).toBe(1);
    });

    testInFullRun(
      'earlier messages that cannot be read are asked for once, and again when the person asks',
      async () => {
        await page.reload();
        await page.locator('.chat-from-agent', { hasText: 'no 2.5' }).waitFor();
        let asked = 0;
        await page.route(PAGES, async (route) => {
          asked++;
          await route.fulfill({ status: 503, json: { error: { code: 'store_unreachable', message: 'not now' } } });
        });
        const trouble = page.getByText('The transcript cannot be read just now');
        await expect.poll(() => scrollToTop().then(() => trouble.count()), { timeout: patience(10_000) }).toBe(1);
        for (let i = 0; i < 5; i++) {
          await scrollToTop();
          await page.waitForTimeout(100);
        }
        expect(asked).toBe(1);
        await page.unroute(PAGES);
        await page.getByRole('button', { name: 'Earlier messages' }).click();
        await expect.poll(countOfFirst, { timeout: patience(10_000) }).toBe(1);
        expect(await trouble.count()).toBe(0);
        troubles.length = 0;
      },
    );
  });

  testInFullRun('who reads further up is left there while a reply comes', async () => {
    await sayAndHear('hostile, to fill the page', 'quoted');
    await say('tell me slowly, below');
    await page.locator('.chat-live').getByText('word3').waitFor();
    const log = page.locator('.chat-log');
    await log.evaluate((element) => {
      element.scrollTop = 0;
    });
    await page.getByRole('button', { name: 'To the newest' }).waitFor();
    await page.locator('.chat-live').waitFor({ state: 'detached' });
    expect(await log.evaluate(({ scrollTop }) => scrollTop)).toBe(0);
    await page.getByRole('button', { name: 'To the newest' }).click();
    await page.getByRole('button', { name: 'To the newest' }).waitFor({ state: 'detached' });
  });

  testInFullRun('a phone has room for it, with the list in a drawer', async () => {
    await page.setViewportSize({ width: 375, height: 720 });
    await sayAndHear('hostile, on a phone', 'quoted');
    const wide = await page.evaluate('document.documentElement.scrollWidth');
    expect(wide).toBe(375);
    await photograph(page, 'chat-phone.png');
    const item = page.locator('.chat-list').getByRole('button', { name: 'New conversation' });
    expect(await item.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Conversations' }).click();
    await item.waitFor();
    await page.waitForTimeout(300);
    await photograph(page, 'chat-phone-list.png');
    await expectNoSeriousViolations();
    await page.keyboard.press('Escape');
    await item.waitFor({ state: 'hidden' });
  });

  testInFullRun('it is as good in the dark', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await sayAndHear('hostile, in the dark', 'quoted');
    await say('/help');
    await page.locator('.chat-note', { hasText: '/whoami' }).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill('/s');
    await page.getByRole('listbox').waitFor();
    await photograph(page, 'chat-dark.png');
    await expectNoSeriousViolations();
  });
});

/** Every command of the gateway that people are promised. */
const COMMANDS =
  'new reset stop status sessions resume branch title undo retry compress queue steer background model usage memory cron approve deny whoami sethome restart help'.split(
    ' ',
  );

async function openContext(): Promise<void> {
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  page = await context.newPage();
  page.setDefaultTimeout(patience(10_000));
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('console', (message) => {
    // A wire that was cut is told by the browser too.
    if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text()))
      troubles.push(message.text());
  });
  await page.goto(site.url);
}

async function say(text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
}

async function sayAndHear(text: string, reply = `You said: ${text}`): Promise<void> {
  await say(text);
  await page.locator('.chat-from-agent', { hasText: reply }).last().waitFor();
  await expect.poll(() => page.locator('.chat-live, .chat-typing').count(), { timeout: patience(10_000) }).toBe(0);
}

/** What stands in the log, in its order. */
function order(): Promise<string[]> {
  return page
    .locator('.chat-log-inner > :is(.chat-message, .chat-end)')
    .evaluateAll((all) =>
      all.map((one) => (one.className === 'chat-end' ? 'END' : (one.querySelector('p')?.textContent ?? ''))),
    );
}

async function chosen(): Promise<string> {
  return page.locator('[role=option][aria-selected=true]').innerText();
}

async function openConversation(): Promise<string> {
  const kept = await page.evaluate(() => localStorage.getItem('moirai-chat:here'));
  return (JSON.parse(kept ?? '{}') as { open: string }).open;
}

async function sessionsOf(conversation: string): Promise<SessionView[]> {
  const key = encodeURIComponent(`agent:main:web:dm:${conversation}`);
  return (await gateway.get<{ data: SessionView[] }>(`/v1/sessions?key=${key}`)).data;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function expectNoSeriousViolations(): Promise<void> {
  // The policy of the page allows no script but its own; this one comes from the outside.
  await page.evaluate(AXE);
  const found = (await page.evaluate(
    'axe.run(".chat", { resultTypes: ["violations"] }).then((found) => found.violations)',
  )) as {
    id: string;
    impact: string;
    nodes: { html: string; failureSummary: string }[];
  }[];
  const serious = found.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  expect(
    serious.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`)]),
  ).toEqual([]);
}
