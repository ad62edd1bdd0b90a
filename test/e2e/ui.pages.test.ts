import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { barriers, browserForTests, isWide, median, shown, skipsBrowsers } from '../support/browser.ts';
import { tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('tape ui in a browser');
const browser = browserForTests(isMissing);

const places = ['#/', '#/?tree=1', '#/graph', '#/main', '#/usage', '#/check', '#/no-such-session'];

test.skipIf(isMissing)(
  'every page is whole at 360 pixels, in light and dark, and axe finds no barrier',
  async () => {
    using home = tempHome();
    await home.process(['demo', '--home', home.path]);
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 360],
    ] as const) {
      await using window = await shown(browser(), home.path, {
        colorScheme,
        viewport: { width, height: 720 },
      });
      const { page } = window;
      for (const place of places) {
        await window.goto(place);
        await page
          .locator('main .row, main .item, main .sheet, main .empty, main [role="alert"]')
          .first()
          .waitFor();
        expect(await isWide(page), `${place} ${width}`).toBe(false);
        expect(await barriers(page), `${place} ${colorScheme}`).toEqual([]);
      }
      const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      const [red = 0] = background.match(/\d+/g)?.map(Number) ?? [];
      expect(red < 128, `${colorScheme}: ${background}`).toBe(colorScheme === 'dark');
    }
  },
);

test.skipIf(isMissing)(
  'a session prints with all that is loaded, unfolded, on white, without the tools',
  async () => {
    using home = tempHome();
    await home.process(['demo', '--home', home.path]);
    await using window = await shown(browser(), home.path, { place: '#/main', colorScheme: 'dark' });
    const { page } = window;
    await page.locator('.item:not(.not-loaded)').first().waitFor();
    const folded = await page.locator('details[data-fold]:not(.menu):not([open])').count();
    expect(folded).toBeGreaterThan(0);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    await page.locator('.feed.printed').waitFor();
    expect(await page.locator('details[data-fold]:not(.menu):not([open])').count()).toBe(0);
    expect(await page.locator('.header').isVisible()).toBe(false);
    expect(await page.locator('.printed-note').isVisible()).toBe(true);
    expect((await page.pdf()).length).toBeGreaterThan(10_000);
  },
);

test.skipIf(isMissing)('what is committed is on the page within 300 milliseconds', async () => {
  using home = tempHome();
  home.session('main', user('Begin'));
  await using window = await shown(browser(), home.path, { place: '#/main' });
  const { page } = window;
  await page.locator('.live-state.live').waitFor();
  await page.locator('.item:not(.not-loaded)').first().waitFor();
  await page.evaluate(`
    window.seenAt = {};
    new MutationObserver(() => {
      for (const [text] of document.querySelector('main').textContent.matchAll(/news-\\d+-/g)) window.seenAt[text] ??= Date.now();
    }).observe(document.querySelector('main'), { childList: true, subtree: true, characterData: true })`);
  using writer = home.open();
  const round = async (of: number) => {
    const waits: number[] = [];
    for (let i = 0; i < 7; i += 1) {
      const text = `news-${of * 100 + i}-`;
      writer.entries.append('main', [user(text)]);
      const committed = Date.now();
      const seen = async () => (await page.evaluate<number | undefined>(`window.seenAt['${text}']`)) ?? 0;
      await expect.poll(seen, { interval: 40 }).toBeGreaterThan(0);
      waits.push((await seen()) - committed);
      await page.waitForTimeout(500);
    }
    return median(waits);
  };
  // A machine that is busy for a moment may be late for a round of them.
  const medians: number[] = [];
  for (let i = 0; i < 3 && !(Math.min(...medians) < 300); i += 1) medians.push(await round(i));
  expect(Math.min(...medians)).toBeLessThan(300);
});
