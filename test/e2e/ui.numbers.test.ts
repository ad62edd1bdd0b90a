import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { browserForTests, median, type Shown, shown, skipsBrowsers } from '../support/browser.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('the numbers of tape ui in a browser');
const browser = browserForTests(isMissing);

function homeOf(sessions: number): TempHome {
  const home = tempHome();
  using store = home.open();
  for (let i = 0; i < sessions; i += 1) {
    store.sessions.open(`session-${i}`);
    store.entries.append(`session-${i}`, [user(`Task ${i}`)]);
  }
  return home;
}

/** How long it takes from asking for the page until sessions are drawn. */
async function firstRows({ page, origin }: Shown): Promise<number> {
  await page.goto('about:blank');
  await page.goto(`${origin}/`);
  await page.locator('.drawn .row').first().waitFor();
  return await page.evaluate<number>('window.firstRows');
}

test.skipIf(isMissing)(
  'the list of 10,000 sessions is there as soon as that of 10',
  { timeout: 600_000 },
  async () => {
    using few = homeOf(10);
    using many = homeOf(10_000);
    await using small = await shown(browser(), few.path);
    await using large = await shown(browser(), many.path);
    for (const { page } of [small, large])
      await page.addInitScript(`
        new MutationObserver((_, observer) => {
          if (document.querySelector('.drawn .row .session-name') === null) return;
          observer.disconnect();
          requestAnimationFrame(() => setTimeout(() => { window.firstRows = performance.now(); }));
        }).observe(document, { childList: true, subtree: true })`);
    const round = async (count: number) => {
      const [of10, of10000]: [number[], number[]] = [[], []];
      for (let i = 0; i < count; i += 1) {
        of10.push(await firstRows(small));
        of10000.push(await firstRows(large));
      }
      return median(of10000) / median(of10);
    };
    await round(2);
    const ratios: number[] = [];
    for (let i = 0; i < 3 && !(Math.min(...ratios) < 1.5); i += 1) ratios.push(await round(7));
    expect(Math.min(...ratios)).toBeLessThan(1.5);
  },
);

test.skipIf(isMissing)(
  'a timeline of 100,000 entries scrolls to its end without being loaded whole',
  { timeout: 600_000 },
  async () => {
    using home = tempHome();
    {
      using store = home.open();
      store.sessions.open('main');
      for (let i = 0; i < 100; i += 1)
        store.entries.append(
          'main',
          Array.from({ length: 1000 }, (_, at) => user(`Entry ${i * 1000 + at} ${'of many '.repeat(10)}`)),
        );
    }
    await using window = await shown(browser(), home.path, { place: '#/main' });
    const { page, requests, context } = window;
    await page.locator('.item:not(.not-loaded)').first().waitFor();
    const cdp = await context.newCDPSession(page);
    const heap = async () => {
      await cdp.send('HeapProfiler.collectGarbage');
      const { usedSize } = await cdp.send('Runtime.getHeapUsage');
      return usedSize;
    };
    const asked = () => requests.filter((address) => address.includes('/api/timeline')).length;
    // It is loaded where one looks.
    expect(asked()).toBeLessThan(6);
    const [heaps, nodes]: [number[], number[]] = [[], []];
    const steps = 40;
    for (let i = 1; i <= steps; i += 1) {
      await page.evaluate(
        `(() => { const list = document.querySelector('.feed').parentElement; list.scrollTop = list.scrollHeight * ${i / steps}; })()`,
      );
      await page.locator('.item:not(.not-loaded)').first().waitFor();
      nodes.push(await page.evaluate<number>(`document.querySelectorAll('*').length`));
      if (i % 10 === 0) heaps.push(await heap());
    }
    await page.locator('h1').focus();
    await page.keyboard.press('End');
    await page.locator('.item', { hasText: 'Entry 99999 ' }).waitFor();
    expect(asked()).toBeLessThan(steps * 6);
    expect(Math.max(...nodes)).toBeLessThan(3000);
    expect((await heap()) / (heaps[0] ?? 1)).toBeLessThan(1.5);
  },
);
