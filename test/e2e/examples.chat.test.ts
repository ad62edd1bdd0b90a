import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compileCache } from '../support/compile-cache.ts';
import { tempDir } from '../support/temp-dir.ts';

const program = process.env.CHROMIUM ?? '/usr/bin/chromium';
const isMissing = !existsSync(program);
if (isMissing) console.warn(`skipped the chat in a browser: there is no ${program}`);

let browser: Browser;
beforeAll(async () => {
  if (isMissing) return;
  browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'], timeout: 110_000 });
  // The first page loads most of the browser from the disk.
  await (await browser.newPage()).close();
}, 240_000);
afterAll(async () => {
  if (!isMissing) await browser.close();
});

/** The example's server on a home of its own, which can be killed and started again. */
async function startServer(home: string, port = '0') {
  const server = fileURLToPath(new URL('../../examples/chat/server.ts', import.meta.url));
  const child = spawn(process.execPath, [server], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, PORT: port, TAPE_HOME: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const url = line.toString('utf8').trim();
  return {
    url,
    port: new URL(url).port,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'close');
    },
  };
}

/** How long a page may take for one step, and a test in all, in milliseconds. */
const [pageMs, testMs] = [60_000, 300_000];

/** A page, and what its console says that is wrong. */
async function open(url: string) {
  const page = await browser.newPage();
  page.setDefaultTimeout(pageMs);
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  await page.goto(url);
  return { page, errors };
}

async function send(page: Page, text: string): Promise<void> {
  await page.fill('input[name=text]', text);
  await page.press('input[name=text]', 'Enter');
}

/** Keeps all that a page shows of children. */
const watchChildren = `
  globalThis.seen = '';
  new MutationObserver(() => {
    for (const child of document.querySelectorAll('.child')) seen += child.textContent;
  }).observe(document.getElementById('messages'), { childList: true });
`;

const has = async (page: Page, text: string) => await page.getByText(text).first().waitFor();

test.skipIf(isMissing)(
  'a browser streams answers, shows children at work, approves a call, and finds all again',
  { timeout: testMs },
  async () => {
    using home = tempDir();
    let server = await startServer(home.path);
    try {
      const { page, errors } = await open(server.url);
      await send(page, 'Hello');
      await has(page, 'Ask me to check the release');
      // A child at work, for as short a time as that may be, then both ended, without a reload.
      await page.evaluate(watchChildren);
      await send(page, 'Check the release');
      await has(page, 'the release can go out');
      expect(await page.evaluate('seen')).toMatch(/started|running/);
      expect(await page.locator('.child', { hasText: 'completed, 1 step, 98 tokens' }).count()).toBe(1);
      expect(await page.locator('.child').count()).toBe(2);
      await send(page, 'Publish it');
      await page.getByRole('button', { name: 'Approve' }).waitFor();
      // Another tab, and a server that was started again, show the same call.
      await server[Symbol.asyncDispose]();
      server = await startServer(home.path, server.port);
      const other = await open(page.url());
      await other.page.getByRole('button', { name: 'Approve' }).click();
      await has(other.page, 'Anything else?');
      await has(other.page, '2.4.0 is out');
      expect(await other.page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
      await page.reload();
      await has(page, 'Anything else?');
      expect(await page.locator('#messages').textContent()).toBe(
        await other.page.locator('#messages').textContent(),
      );
      expect(await page.locator('nav a').allTextContents()).toEqual(['Hello']);
      await page.getByRole('button', { name: 'New chat' }).click();
      await page.locator('.message').first().waitFor({ state: 'detached' });
      await page.locator('nav a').click();
      await has(page, 'Anything else?');
      // The console of the first page also has what that asked while the server was stopped.
      const own = errors.filter((text) => !/net::ERR_CONNECTION_(?:REFUSED|RESET)/.test(text));
      expect([...own, ...other.errors]).toEqual([]);
    } finally {
      await server[Symbol.asyncDispose]();
    }
  },
);

test.skipIf(isMissing)(
  'a browser approves the call of a child in the chat of its parent, and a page that was hidden catches up',
  { timeout: testMs },
  async () => {
    using home = tempDir();
    await using server = await startServer(home.path);
    const { page, errors } = await open(server.url);
    // A page that loads again loses what was typed before.
    let loads = 0;
    page.on('load', () => loads++);
    await send(page, 'Deploy it');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.locator('.child', { hasText: 'waiting' }).waitFor();
    expect(loads).toBe(0);
    expect(await page.locator('.tool', { hasText: 'publish' }).textContent()).toMatch(/^chat\.\S+: publish/);
    const other = await open(page.url());
    await other.page.getByRole('button', { name: 'Approve' }).click();
    await has(other.page, 'It is deployed.');
    await has(other.page, '2.4.1 is out');
    // The first page learns of it when it is shown again.
    expect(await page.getByText('It is deployed.').count()).toBe(0);
    await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
    await has(page, 'It is deployed.');
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
    expect(await page.locator('#messages').textContent()).toBe(
      await other.page.locator('#messages').textContent(),
    );
    expect([...errors, ...other.errors]).toEqual([]);
  },
);
