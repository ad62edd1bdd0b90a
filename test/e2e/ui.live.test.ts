import { assistant, type SqliteTapeStore, user, view } from '@tapedeck/tape';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserForTests, type Shown, shown, skipsBrowsers } from '../support/browser.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('the views of tape ui while a home is written to');
const browser = browserForTests(isMissing);

const usage = { input: 1_000, output: 500, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** Answers with the record of what the model was given. */
function answer(store: SqliteTapeStore, session: string, text: string, model = 'a/b'): void {
  const manifest = JSON.parse(JSON.stringify(view(store.views.entries(session)).manifest()));
  store.entries.append(session, [assistant(text, { model, usage, view: manifest })]);
}

/** A home whose session `main` has a long timeline, an answer with a record at 3, and a child. */
function homeToWatch(): TempHome {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  store.entries.append('main', [user('Begin')]);
  answer(store, 'main', 'Begun.');
  for (let i = 0; i < 40; i += 1) store.entries.append('main', [user(`Ask ${i}`), assistant(`Answer ${i}`)]);
  answer(store, 'main', 'And so on.');
  store.lineage.fork('main', { name: 'kid', kind: 'subagent', intention: { nextSteps: 'Look.' } });
  answer(store, 'kid', 'Looked.');
  return home;
}

/** A measure of the page, once two looks at it agree: rows turn out to be higher or lower after they are drawn. */
async function settled<T>(measure: () => Promise<T>): Promise<T> {
  let last = await measure();
  await expect
    .poll(
      async () => {
        const before = last;
        last = await measure();
        return last === before;
      },
      { interval: 200 },
    )
    .toBe(true);
  return last;
}

/** Shows a place at which the page has a text, which changes while a process writes. */
async function liveAt(window: Shown, place: string): Promise<string> {
  await window.goto(place);
  await window.page
    .locator('main .sheet section, main .sheet > [role=status], main .sides')
    .first()
    .waitFor();
  return (await window.page.locator('main').textContent()) ?? '';
}

/** From where to where the bar of a plot is drawn, as parts of its width. */
const bar = `(() => {
  const canvas = document.querySelector('.plot canvas');
  const { width, height } = canvas;
  const { data } = canvas.getContext('2d').getImageData(0, Math.round(height / 2), width, 1);
  const isBar = (x) => Math.max(...data.slice(4 * x, 4 * x + 3)) - Math.min(...data.slice(4 * x, 4 * x + 3)) > 60;
  const drawn = [...Array(width).keys()].filter((x) => data[4 * x + 3] > 200 && isBar(x));
  return { from: drawn[0] / width, to: drawn.at(-1) / width };
})()`;

/** Whether what has the focus has a text. */
const isFocused = async (page: Page, text: string) =>
  (await page.evaluate('document.activeElement.textContent')) === text;

const has = (page: Page, text: string | RegExp) =>
  page.locator('main').filter({ hasText: text }).waitFor({ timeout: 20_000 });

test.skipIf(isMissing)(
  'usage, checks, traces, comparisons, and what a model saw change on the page while others write',
  { timeout: 120_000 },
  async () => {
    using home = homeToWatch();
    await using window = await shown(browser(), home.path, { place: '#/usage' });
    const { page, faults } = window;
    await page.locator('.live-state.live').waitFor();
    using writer = home.open();

    expect(await liveAt(window, '#/usage')).not.toContain('new/model');
    // One day fills the plot.
    const { from, to } = await page.evaluate<{ from: number; to: number }>(bar);
    expect(from).toBeLessThan(0.55);
    expect(to).toBeGreaterThan(0.5);
    answer(writer, 'main', 'More.', 'new/model');
    await has(page, 'new/model');

    expect(await liveAt(window, '#/usage/main')).not.toContain('other/model');
    answer(writer, 'kid', 'More.', 'other/model');
    await has(page, 'other/model');

    const head = writer.sessions.find('kid')?.head ?? 0;
    await window.goto(`#/kid@${head}/trace`);
    await has(page, 'It was not merged anywhere.');
    writer.lineage.merge('kid');
    await has(page, /merged .*main@/);

    await window.goto('#/main@3/seen');
    await has(page, 'yes: the tape still yields this view');
    writer.entries.redact('main', 2, 'a test');
    await has(page, 'no: the tape yields another view now');

    await liveAt(window, '#/diff/main/kid');
    writer.entries.append('main', [user('A late question')]);
    await has(page, 'A late question');

    expect(await liveAt(window, '#/check')).not.toContain('late-session');
    const of = (text: string) => Number(/and ([\d,]+) entries/.exec(text)?.[1]?.replace(',', ''));
    const before = of((await page.locator('main').textContent()) ?? '');
    writer.entries.append('main', [user('One more')]);
    await expect
      .poll(async () => of((await page.locator('main').textContent()) ?? ''))
      .toBeGreaterThan(before);
    expect(faults).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'a view that changes keeps its place, the focus, and what is folded',
  { timeout: 120_000 },
  async () => {
    using home = homeToWatch();
    {
      using store = home.open();
      for (let i = 0; i < 60; i += 1) store.sessions.open(`s${i}`);
      for (let i = 0; i < 60; i += 1) answer(store, `s${i}`, 'Done.', `model/${i}`);
    }
    await using window = await shown(browser(), home.path, { place: '#/usage' });
    const { page, faults } = window;
    await page.locator('.live-state.live').waitFor();
    using writer = home.open();
    const scrolled = async (of: string) =>
      await page.evaluate<number>(`document.querySelector('${of}').scrollTop`);

    // A row that moves up keeps the focus; a table that was opened stays open.
    await page.getByText('The same as a table').click();
    const link = page.getByRole('link', { name: 's59', exact: true });
    await link.focus();
    expect(await scrolled('.sheet')).toBeGreaterThan(100);
    for (let i = 0; i < 3; i += 1) answer(writer, 's59', 'Again.', 'model/59');
    await expect
      .poll(async () => await page.locator('tr', { has: link }).first().textContent())
      .toContain('6.0k');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('s59');
    expect(await page.locator('details[open]', { hasText: 'The same as a table' }).count()).toBe(1);
    const { y = -1 } = (await link.boundingBox()) ?? {};
    expect(y > 0 && y < 720, String(y)).toBe(true);

    // In the middle of a timeline: what comes at its end moves nothing that a reader sees.
    await window.goto('#/main@20');
    await page.locator('.item.target').waitFor();
    await page.keyboard.press('o');
    const top = async () => (await page.locator('.item.target').boundingBox())?.y;
    const at = await settled(top);
    expect(at).toBeDefined();
    writer.entries.append('main', [user('At the end')]);
    await page
      .locator('.reading-tools [role=status]', { hasText: `–${writer.sessions.find('main')?.head}` })
      .waitFor();
    expect(await settled(top)).toBe(at);
    expect(await page.evaluate('document.activeElement.classList.contains("target")')).toBe(true);
    expect(faults).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'of a session that is erased while it is shown, nothing stays on the page',
  { timeout: 120_000 },
  async () => {
    using home = homeToWatch();
    await using window = await shown(browser(), home.path, { place: '#/kid' });
    const { page } = window;
    await page.locator('.live-state.live').waitFor();
    await page.locator('.item', { hasText: 'Looked.' }).waitFor();
    const purged = await home.process(['purge', 'kid', '--reason', 'a test']);
    expect(purged.code, purged.stderr).toBe(0);
    await has(page, 'there is no such session');
    await expect.poll(async () => await page.locator('main').textContent()).not.toContain('Looked.');
    expect(await page.locator('main [role=alert]').count()).toBe(1);
  },
);

test.skipIf(isMissing)(
  'a page says that its server is stopped, offers to ask again, and is live again as soon as the server is',
  { timeout: 120_000 },
  async () => {
    using home = homeToWatch();
    await using window = await shown(browser(), home.path);
    const { page, requests, ui } = window;
    await page.clock.install();
    await page.reload();
    await page.locator('.live-state.live').waitFor();
    await page.clock.fastForward(9_000);
    expect(await page.locator('.live-state.live').count()).toBe(1);
    process.kill(ui.pid, 'SIGSTOP');
    try {
      await page.clock.fastForward(12_000);
      await page.locator('.live-state.lost', { hasText: /^No answer since \d\d:\d\d:\d\d$/ }).waitFor();
      const again = page.getByRole('button', { name: 'Ask again' });
      const busy = page.locator('main[aria-busy=true]', { hasText: /Loading/ });
      const late = async () => {
        await busy.waitFor();
        expect(await again.count()).toBe(0);
        await page.clock.fastForward(11_000);
        await again.waitFor();
        for (let i = 0; i < 12 && !(await isFocused(page, 'Ask again')); i += 1)
          await page.keyboard.press('Tab');
        const before = requests.length;
        await page.keyboard.press('Enter');
        await expect.poll(() => requests.length).toBeGreaterThan(before);
        expect(await isFocused(page, 'Ask again')).toBe(true);
      };
      for (const place of [
        '#/graph',
        '#/usage',
        '#/main@3/seen',
        '#/main@3/trace',
        '#/diff/main/kid',
        '#/main',
      ]) {
        await window.goto(place);
        await late();
      }
      process.kill(ui.pid, 'SIGCONT');
      await page.locator('.live-state.live').waitFor();
      await page.locator('.item', { hasText: 'Begin' }).first().waitFor();
      expect(await page.locator('main[aria-busy]').count()).toBe(0);
      expect(await isFocused(page, 'main')).toBe(true);
      // So can a page that has not begun.
      await page.route('**/api/home', () => {});
      await page.reload();
      await busy.waitFor();
      await page.clock.fastForward(11_000);
      await again.waitFor();
      await page.unroute('**/api/home');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.locator('.item', { hasText: 'Begin' }).first().waitFor();
    } finally {
      process.kill(ui.pid, 'SIGCONT');
    }
  },
);

test.skipIf(isMissing)('many changes have a view loaded a few times', { timeout: 120_000 }, async () => {
  using home = homeToWatch();
  await using window = await shown(browser(), home.path, { place: '#/usage' });
  const { page, requests } = window;
  await page.locator('.live-state.live').waitFor();
  await page.waitForTimeout(600);
  using writer = home.open();
  const before = requests.length;
  const began = Date.now();
  for (let i = 0; i < 200; i += 1) {
    answer(writer, 'kid', `Step ${i}.`, 'busy/model');
    if (i % 10 === 0) await page.waitForTimeout(50);
  }
  await has(page, /busy\/model\s*200/);
  const seconds = (Date.now() - began) / 1000;
  expect(requests.length - before).toBeLessThan(3 * seconds + 3);
});
