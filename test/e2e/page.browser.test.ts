import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserForTests, skipsBrowsers, watched } from '../support/browser.ts';
import { madeUp, servePage } from '../support/page-server.ts';

const isMissing = skipsBrowsers('the page in a browser');
const browser = browserForTests(isMissing);

/** The page of so many made-up sessions, and what its console says that is wrong. */
async function opened(sessions: number, look: { readonly width?: number; readonly path?: string } = {}) {
  const { width = 1280, path = '' } = look;
  const served = await servePage(madeUp(sessions));
  const window = await watched(browser(), { viewport: { width, height: 720 } });
  const { page, faults } = window;
  await page.goto(served.url + path);
  await page.locator('.drawn .row').first().waitFor();
  return {
    ...served,
    page,
    // The made-up home has lists alone: what the page of a session asks is not found.
    errors: () => faults.filter((fault) => !fault.startsWith('Failed to load resource')),
    [Symbol.asyncDispose]: async () => {
      await window[Symbol.asyncDispose]();
      served.server.closeAllConnections();
      served.server.close();
    },
  };
}

const names = async (page: Page) => await page.locator('.drawn .row .session-name').allTextContents();
/** The number of the row that has the focus, or what has it. */
const focused = async (page: Page) =>
  await page.evaluate<string>('document.activeElement.ariaRowIndex ?? document.activeElement.tagName');

test.skipIf(isMissing)('the list of 10,000 sessions is drawn and loaded where one looks at it', async () => {
  await using home = await opened(10_000);
  const { page, asked, errors } = home;
  expect(await page.locator('.count').textContent()).toBe('10,000 sessions');
  expect(asked.filter((address) => address.startsWith('/api/sessions'))).toEqual(['/api/sessions?offset=0']);
  expect(await page.locator('.drawn .row').count()).toBeLessThan(60);
  await page.keyboard.press('End');
  await expect.poll(async () => await focused(page)).toBe('10000');
  await page.locator('.row[aria-rowindex="10000"] .session-name').waitFor();
  expect(asked.filter((address) => address.startsWith('/api/sessions')).length).toBeLessThan(4);
  expect(await page.locator('.drawn .row').count()).toBeLessThan(60);
  expect(errors()).toEqual([]);
});

test.skipIf(isMissing)('the keyboard alone finds a session, and moves between the pages', async () => {
  await using home = await opened(300);
  const { page, errors } = home;
  await page.keyboard.press('/');
  await page.keyboard.type('main');
  await expect.poll(async () => (await names(page)).every((name) => name.includes('main'))).toBe(true);
  expect(page.url()).toContain('#/?find=main');
  await page.keyboard.press('Enter');
  expect(await focused(page)).toBe('1');
  await page.keyboard.press('j');
  expect(await focused(page)).toBe('2');
  await page.keyboard.press('k');
  const name = (await names(page))[0] ?? '';
  await page.keyboard.press('Enter');
  await expect.poll(() => decodeURIComponent(new URL(page.url()).hash)).toBe(`#/${name}`);
  await page.keyboard.press('g');
  await page.keyboard.press('l');
  await page.locator('.row.lineage').first().waitFor();
  expect(await focused(page)).toBe('H1');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('g');
  await page.keyboard.press('s');
  await page.getByRole('heading', { name: 'Sessions' }).waitFor();
  expect(errors()).toEqual([]);
});

test.skipIf(isMissing)(
  'Enter and Escape leave the search for what it found, also before that is there',
  async () => {
    await using home = await opened(300);
    const { page, errors } = home;
    await page.keyboard.press('/');
    await page.keyboard.type('main');
    await page.keyboard.press('Escape');
    await expect.poll(() => page.url()).toMatch(/#\/$/);
    expect(await focused(page)).toBe('INPUT');
    await page.keyboard.press('Escape');
    await expect.poll(async () => await focused(page)).toBe('1');
    // From a page without a list: the list that is searched is loaded after Enter was pressed.
    await page.keyboard.press('g');
    await page.keyboard.press('u');
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    await expect.poll(async () => await focused(page)).toBe('H1');
    let answer = () => {};
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/find=/, async (route) => {
      await asked;
      await route.continue();
    });
    await page.keyboard.press('/');
    await page.keyboard.type('main');
    await page.locator('main.page-sessions').waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(async () => await focused(page)).toBe('DIV');
    answer();
    await expect.poll(async () => await focused(page)).toBe('1');
    await page.keyboard.press('/');
    await page.keyboard.type('nothing is like that');
    await page.keyboard.press('Enter');
    await page.locator('.empty:focus').waitFor();
    // An entry that is opened has its title read.
    await page.keyboard.press('/');
    await page.keyboard.type('main@2');
    await page.keyboard.press('Enter');
    await page.locator('main.page-session h1:focus').waitFor();
    expect(errors()).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'filters and the order are in the address, and lists as a tree have levels',
  async () => {
    await using home = await opened(300, { path: '#/?state=merged&sort=name' });
    const { page } = home;
    const sorted = await names(page);
    expect(sorted).toEqual(sorted.toSorted((a, b) => a.localeCompare(b)));
    expect(await page.getByRole('button', { name: 'Merged' }).getAttribute('aria-pressed')).toBe('true');
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.keyboard.press('t');
    await page.getByRole('treegrid', { name: 'Sessions' }).waitFor();
    expect(new URL(page.url()).hash).toContain('tree=1');
    await page.locator('.row[aria-level="2"]').first().waitFor();
  },
);

test.skipIf(isMissing)('the lineage folds, is larger and smaller, and leads to entries', async () => {
  await using home = await opened(300, { path: '#/graph' });
  const { page, errors } = home;
  const rows = page.locator('.drawn .row.lineage');
  const second = await rows.nth(1).locator('.session-name').textContent();
  await page.keyboard.press('j');
  await page.keyboard.press('ArrowLeft');
  await page.locator('.row[aria-expanded="false"]').first().waitFor();
  expect(await rows.first().textContent()).toMatch(/\d+ below/);
  expect(await rows.nth(1).locator('.session-name').textContent()).not.toBe(second);
  expect(await focused(page)).toBe('1');
  await page.keyboard.press('ArrowRight');
  await expect.poll(async () => await rows.nth(1).locator('.session-name').textContent()).toBe(second);
  const height = async () => (await rows.first().boundingBox())?.height ?? 0;
  const before = await height();
  await page.keyboard.press('+');
  await expect.poll(height).toBeGreaterThan(before);
  for (const key of '--') await page.keyboard.press(key);
  await page.locator('.is-anchor a, .is-handoff a').first().click();
  await expect.poll(() => new URL(page.url()).hash).toMatch(/^#\/.+@\d+$/);
  expect(errors()).toEqual([]);
});

test.skipIf(isMissing)('a change is on the page at once, and the row keeps the focus', async () => {
  await using home = await opened(50);
  const { page, tell } = home;
  await page.keyboard.press('j');
  await page.locator('.live-state.live').waitFor();
  const row = page.locator('.drawn .row').first();
  const name = (await row.locator('.session-name').textContent()) ?? '';
  const { id = '' } = home.sessions.find(({ session }) => session === name) ?? {};
  // The list that is loaded anew says the same.
  Object.assign(home.sessions.find(({ session }) => session === name) ?? {}, {
    state: 'waiting',
    tone: 'open',
  });
  tell({ at: '2.1', what: 'entries', session: name, id, head: 99, state: 'waiting', tone: 'open' });
  await row.locator('.words', { hasText: 'waiting' }).waitFor({ timeout: 2_000 });
  expect(await focused(page)).toBe('1');
});
