import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { assistant, toolCall, toolResult, user } from '@tapedeck/tape';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserForTests, median, type Shown, shown, skipsBrowsers, watched } from '../support/browser.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('the numbers of tape ui in a browser');
const browser = browserForTests(isMissing);

function homeOf(sessions: number): TempHome {
  const home = tempHome();
  using store = home.open();
  for (let i = 0; i < sessions; i += 1) store.sessions.open(`session-${i}`, { title: `Task ${i}` });
  return home;
}

/** Has each document of a page promise when it draws its first sessions. */
async function noteFirstRows(page: Page): Promise<void> {
  await page.addInitScript(`
    window.firstRows = new Promise((resolve) => {
      new MutationObserver((_, observer) => {
        if (document.querySelector('.drawn .row .session-name') === null) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { childList: true, subtree: true });
    })`);
}

/** How long it takes from asking for an address until sessions are drawn, in milliseconds. */
async function firstRowsAt(page: Page, address: string): Promise<number> {
  await page.goto('about:blank');
  await page.goto(address);
  // A promise is awaited and not polled: the policy of the page allows no script to evaluate a text.
  return await page.evaluate<number>('window.firstRows');
}

async function firstRows({ page, origin }: Shown): Promise<number> {
  return await firstRowsAt(page, `${origin}/`);
}

test.skipIf(isMissing)(
  'the list of 10,000 sessions is there as soon as that of 10',
  { timeout: 600_000 },
  async () => {
    using few = homeOf(10);
    using many = homeOf(10_000);
    await using small = await shown(browser(), few.path);
    await using large = await shown(browser(), many.path);
    for (const { page } of [small, large]) await noteFirstRows(page);
    const round = async (count: number) => {
      const [of10, of10000]: [number[], number[]] = [[], []];
      for (let i = 0; i < count; i += 1) {
        of10.push(await firstRows(small));
        of10000.push(await firstRows(large));
      }
      return median(of10000) / median(of10);
    };
    await round(1);
    const ratios: number[] = [];
    for (let i = 0; i < 4 && !(Math.min(...ratios) < 1.5); i += 1) ratios.push(await round(sized(3, 3, 5)));
    expect(Math.min(...ratios)).toBeLessThan(1.5);
  },
);

test.skipIf(isMissing)(
  'a timeline of tens of thousands of entries scrolls to its end without being loaded whole',
  { timeout: 600_000 },
  async () => {
    using home = tempHome();
    const thousands = sized(40, 40, 100);
    {
      using store = home.open();
      store.sessions.open('main');
      for (let i = 0; i < thousands; i += 1)
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
    const steps = 20;
    for (let i = 1; i <= steps; i += 1) {
      await page.evaluate(
        `(() => { const list = document.querySelector('.feed').parentElement; list.scrollTop = list.scrollHeight * ${i / steps}; })()`,
      );
      await page.locator('.item:not(.not-loaded)').first().waitFor();
      nodes.push(await page.evaluate<number>(`document.querySelectorAll('*').length`));
      if (i % 5 === 0) heaps.push(await heap());
    }
    await page.locator('h1').focus();
    await page.keyboard.press('End');
    await page.locator('.item', { hasText: `Entry ${thousands * 1000 - 1} ` }).waitFor();
    expect(asked()).toBeLessThan(steps * 6);
    expect(Math.max(...nodes)).toBeLessThan(3000);
    expect((await heap()) / (heaps[0] ?? 1)).toBeLessThan(1.5);
  },
);

test.skipIf(isMissing)(
  'an exported file with a lineage of 50 sessions opens within a second',
  { timeout: 600_000 },
  async () => {
    using home = tempHome();
    const random = seeded(7);
    const words = 'a the plan of test release build with fails passes module file change now then'.split(' ');
    const text = (count: number) =>
      Array.from({ length: count }, () => `${random.of(words)}${random.below(1000)}`).join(' ');
    {
      using store = home.open();
      store.sessions.open('main');
      store.entries.append('main', [user(text(60))]);
      for (let n = 1; n < 50; n += 1) {
        const name = `child-${n}`;
        store.lineage.fork(n % 5 === 4 ? `child-${n - 1}` : 'main', { name, title: text(8) });
        for (let turn = 0; turn < 20; turn += 1) {
          const call = { toolCallId: `c${turn}`, toolName: 'read' };
          store.entries.append(name, [assistant([toolCall(call.toolCallId, 'read', { path: text(2) })])]);
          store.entries.append(name, [toolResult(call, text(120)), assistant(text(150)), user(text(40))]);
        }
        if (n % 3 === 0) store.lineage.merge(name);
      }
    }
    const file = home.file('out.html');
    const { code, stderr } = await home.process(['export', 'main', '--tree', '--format', 'html', '-o', file]);
    expect(code, stderr).toBe(0);
    expect(statSync(file).size).toBeGreaterThan(1_000_000);
    await using window = await watched(browser(), { offline: true });
    const { page, context } = window;
    await noteFirstRows(page);
    // The time of the processor that the page takes: what else the machine does counts little.
    const cdp = await context.newCDPSession(page);
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const times: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      await firstRowsAt(page, pathToFileURL(file).href);
      const { metrics } = await cdp.send('Performance.getMetrics');
      times.push(1_000 * (metrics.find(({ name }) => name === 'ThreadTime')?.value ?? Number.NaN));
    }
    expect(Math.min(...times)).toBeLessThan(1_000);
    // The whole lineage is there.
    await page.evaluate(`location.hash = '#/graph'`);
    await page.locator('.row.lineage').first().waitFor();
  },
);
