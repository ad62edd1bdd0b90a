import { pathToFileURL } from 'node:url';
import { assistant, type Draft, toolCall, toolResult, user } from '@tapedeck/tape';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers, watched } from '../support/browser.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('the page on paper');
const browser = browserForTests(isMissing);

/** A home whose session `main` has so many entries, of which every tenth is a call with its result. */
function longHome(entries: number): TempHome {
  const home = tempHome();
  const draft = (i: number): readonly Draft[] => {
    if (i % 10 !== 0) return [i % 2 === 0 ? assistant(`Answer ${i}.`) : user(`Question ${i}?`)];
    const call = { toolCallId: `c${i}`, toolName: 'read' };
    return [
      assistant([toolCall(call.toolCallId, call.toolName, { path: `file-${i}` })]),
      toolResult(call, `Result ${i}.`),
    ];
  };
  home.session('main', ...Array.from({ length: entries }, (_, i) => draft(i)).flat());
  return home;
}

/** Hears, behind the page, that it is printed: what is drawn then is what a browser prints. */
async function listen(page: Page): Promise<void> {
  await page.evaluate(`addEventListener('beforeprint', () => {
    const printed = document.querySelector('.feed.printed');
    window.onPaper = {
      items: printed?.querySelectorAll('article').length ?? 0,
      folded: printed?.querySelectorAll('details:not([open]):not(.menu)').length ?? 0,
      text: printed?.textContent ?? '',
      note: document.querySelector('.printed-note')?.textContent ?? '',
    };
  })`);
}

const onPaper = async (page: Page) =>
  await page.evaluate<{ items: number; folded: number; text: string; note: string }>('window.onPaper');

const sheets = (pdf: Buffer) => pdf.toString('latin1').match(/\/Type \/Page\b/g)?.length ?? 0;

test.skipIf(isMissing)(
  'all of a session is printed, wherever it is scrolled to',
  { timeout: 120_000 },
  async () => {
    using home = longHome(300);
    await using window = await shown(browser(), home.path, { place: '#/main@165', colorScheme: 'dark' });
    const { page, faults } = window;
    await page.locator('.item.target').waitFor();
    await listen(page);
    const drawn = async () => await page.locator('.feed-rows article').count();
    const at = async () => await page.evaluate<number>(`document.querySelector('.feed-rows').scrollTop`);
    const [before, top] = [await drawn(), await at()];
    const short = await page.pdf();
    const { items, folded, text, note } = await onPaper(page);
    expect({ items, folded }).toEqual({ items: 300, folded: 0 });
    for (const said of ['Question 1?', 'Answer 298.', 'Result 10.', 'Result 290.'])
      expect(text).toContain(said);
    expect(note).toMatch(/^#\/main, printed .*: all 331 positions\.$/);
    expect(sheets(short)).toBeGreaterThan(13);
    // The page is as it was.
    expect(await page.locator('.feed.printed').count()).toBe(0);
    expect(await drawn()).toBe(before);
    expect(Math.abs((await at()) - top)).toBeLessThan(2);
    expect(await page.locator('.item.target').isVisible()).toBe(true);

    // The button prints while its code runs: what is drawn later is not printed.
    await page.evaluate(`window.print = () => dispatchEvent(new Event('beforeprint'))`);
    await page.evaluate('delete window.onPaper');
    await page.getByRole('button', { name: 'Print' }).click();
    expect((await onPaper(page)).items).toBe(300);

    // On paper it is black on white, without what can be pressed.
    await page.emulateMedia({ media: 'print' });
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(255, 255, 255)');
    for (const part of ['.header', '.reading-tools', '.feed-rows', '.feed.printed .menu summary'])
      expect(await page.locator(part).first().isVisible(), part).toBe(false);
    for (const part of ['h1', '.printed-note', '.feed.printed article'])
      expect(await page.locator(part).first().isVisible(), part).toBe(true);
    expect(faults).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'of a session too long for paper a part is printed, which says so',
  { timeout: 240_000 },
  async () => {
    using home = longHome(5_000);
    await using window = await shown(browser(), home.path, { place: '#/main@400' });
    const { page, faults, ui } = window;
    await page.locator('.item.target').waitFor();
    await listen(page);
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    const { items, note } = await onPaper(page);
    expect(items).toBeGreaterThan(4_000);
    expect(note).toMatch(
      /positions [34]\d\d to 5,[34]\d\d of 1 to 5,501\..* All of it: tape log .*main --full/,
    );
    await page.evaluate(`dispatchEvent(new Event('afterprint'))`);
    // Without its server the page prints what it can say.
    expect(faults).toEqual([]);
    ui.running.child.kill('SIGKILL');
    await ui.running.done;
    await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
    expect((await onPaper(page)).note).toContain(
      'could not be loaded: The server of this page does not answer',
    );
  },
);

test.skipIf(isMissing)('an exported file prints all of a session, too', { timeout: 120_000 }, async () => {
  using home = longHome(300);
  const file = home.file('main.html');
  await home.process(['export', 'main', '--format', 'html', '-o', file]);
  await using window = await watched(browser(), { offline: true });
  const { page, faults } = window;
  await page.goto(`${pathToFileURL(file).href}#/main`);
  await page.locator('.feed-rows article:not(.not-loaded)').first().waitFor();
  await listen(page);
  const pdf = await page.pdf();
  const { items, text } = await onPaper(page);
  expect(items).toBe(300);
  expect(text).toContain('Answer 298.');
  expect(sheets(pdf)).toBeGreaterThan(13);
  expect(faults).toEqual([]);
});
