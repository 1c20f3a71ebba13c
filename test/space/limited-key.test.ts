import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GatewayProcess } from '../gateway/process.ts';
import { patience } from '../support/patience.ts';
import { describeInBrowser, openChromium } from './browser.ts';
import { ChatPage } from './chat-page.ts';

const ADMIN = 'the-key-of-the-operator';
const SHOP = 'the-key-of-the-web-shop';

describeInBrowser('the page with a key that may only chat', { timeout: 120_000 }, () => {
  let gateway: GatewayProcess;
  let site: ChatPage;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const keys = [{ name: 'shop', key: SHOP, scopes: ['chat'] }];
    gateway = new GatewayProcess({ gateway: { api_key: ADMIN, keys }, model: { provider: 'offline' } });
    site = new ChatPage(() => gateway.url);
    [browser] = await Promise.all([openChromium(), gateway.start(), site.start()]);
    page = await browser.newPage();
  }, patience(60_000));

  afterAll(async () => {
    await browser?.close();
    await site?.close();
    await gateway?.close();
  });

  test('talks, finds its own conversation again after a reload, and shows none of others', async () => {
    const headers = { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ text: 'the operator was here', conversation: 'secret', platform: 'web' });
    expect((await fetch(`${gateway.url}/v1/chat`, { method: 'POST', headers, body })).status).toBe(200);
    await page.goto(site.url);
    await page.waitForSelector('dialog[open]');
    await page.fill('#key', SHOP);
    await page.keyboard.press('Enter');
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.fill('is the shop open?');
    await field.press('Enter');
    await page.locator('.chat-from-agent').waitFor();
    await page.reload();
    await page.locator('.chat-from-user', { hasText: 'is the shop open?' }).waitFor();
    await page.locator('.chat-from-agent').waitFor();
    await page.getByRole('link', { name: 'Sessions' }).click();
    await page.getByText('web:dm:shop').first().waitFor();
    expect(await page.content()).not.toContain('secret');
    expect(await page.content()).not.toContain('the operator was here');
  });
});
