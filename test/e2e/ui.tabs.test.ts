import { renameSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers } from '../support/browser.ts';
import { tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('pages of tape ui in many tabs');
const browser = browserForTests(isMissing);

/** Has a page take itself for one behind others, as browsers do, until `show` is called. */
const behind = `
  let isHidden = true;
  Object.defineProperty(document, 'hidden', { get: () => isHidden });
  window.show = () => {
    isHidden = false;
    document.dispatchEvent(new Event('visibilitychange'));
  };
`;

test.skipIf(isMissing)(
  'pages in more tabs than a browser has connections are loaded, and follow',
  async () => {
    using home = tempHome();
    home.session('main', user('Hello'));
    await using window = await shown(browser(), home.path);
    const { context, origin, requests } = window;
    await window.page.locator('.live-state.live').waitFor();
    const tabs = [];
    for (let i = 0; i < 8; i += 1) {
      const tab = await context.newPage();
      await tab.addInitScript(behind);
      await tab.goto(`${origin}/#/main`);
      await tab.locator('.item', { hasText: 'Hello' }).waitFor();
      tabs.push(tab);
    }
    expect(requests.filter((address) => address.includes('/api/events'))).toHaveLength(1);
    using store = home.open();
    store.entries.append('main', [user('While it was behind others')]);
    await tabs[3]?.evaluate('show()');
    await tabs[3]?.locator('.item', { hasText: 'While it was behind others' }).waitFor();
    store.entries.append('main', [user('And now')]);
    await tabs[3]?.locator('.item', { hasText: 'And now' }).waitFor();
    expect(await tabs[4]?.locator('.item', { hasText: 'And now' }).count()).toBe(0);
  },
);

test.skipIf(isMissing)('a page goes on when the home that was gone is there again', async () => {
  using home = tempHome();
  home.session('main', user('Hello'));
  await using window = await shown(browser(), home.path, { place: '#/main' });
  const { page } = window;
  await page.locator('.live-state.live').waitFor();
  renameSync(home.db, `${home.db}.aside`);
  await page.locator('.live-state.lost', { hasText: 'Not connected' }).waitFor();
  // Longer than it takes to be refused.
  await page.waitForTimeout(3_000);
  renameSync(`${home.db}.aside`, home.db);
  await page.locator('.live-state.live').waitFor();
  using store = home.open();
  store.entries.append('main', [user('More')]);
  await page.locator('.item', { hasText: 'More' }).waitFor();
});

test.skipIf(isMissing)(
  'the token of the address is in no history, referrer or storage of the browser',
  async () => {
    using home = tempHome();
    home.session('main', user('Hello'));
    await using window = await shown(browser(), home.path);
    const { page, context, ui, origin } = window;
    const token = ui.url.slice(ui.url.lastIndexOf('/') + 1);
    await page.locator('.live-state.live').waitFor();
    const kept = await page.evaluate<string>(`JSON.stringify([
    location.href, document.referrer, document.cookie, { ...localStorage }, { ...sessionStorage },
    performance.getEntries().map(({ name }) => name), history.state,
  ])`);
    expect(kept).not.toContain(token);
    expect(kept).toContain(`${origin}/page.js`);
    expect(JSON.stringify(await context.storageState())).not.toContain(token);
    const cdp = await context.newCDPSession(page);
    const { entries } = await cdp.send('Page.getNavigationHistory');
    expect(entries.at(-1)?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/(?:#\/)?$/);
    expect(JSON.stringify(entries.map(({ url }) => url))).not.toContain(token);
  },
);
