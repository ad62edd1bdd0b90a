import { renameSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { anchor, assistant, note, toolCall, toolResult, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import {
  barriers,
  browserForTests,
  isWide,
  median,
  shown,
  skipsBrowsers,
  watched,
} from '../support/browser.ts';
import { startTape } from '../support/cli.ts';
import { rawDb } from '../support/raw-db.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('tape ui in a browser');
const browser = browserForTests(isMissing);

const places = [
  '#/',
  '#/?tree=1',
  '#/graph',
  '#/main',
  '#/main@5/seen',
  '#/main@18/trace',
  '#/diff/main/main-branch-c0ffee13',
  '#/usage',
  '#/usage/main',
  '#/check',
  '#/?find=nothing+is+like+that',
  '#/no-such-session',
  '#/no/such/page',
];

test.skipIf(isMissing)(
  'the address opens the page of a home: list, lineage, timeline, deep links',
  async () => {
    using home = tempHome();
    await home.process(['demo', '--home', home.path]);
    await using window = await shown(browser(), home.path, { place: '#/main@12' });
    const { page, faults, requests, origin, ui } = window;
    // The entry that the address names, through the exchange of the token.
    await page.locator('.item.target').waitFor();
    expect(new URL(page.url()).hash).toBe('#/main@12');
    expect(page.url()).not.toContain('enter');
    expect(await page.locator('.item.target').getAttribute('aria-label')).toContain('@12');
    expect((await fetch(ui.url, { redirect: 'manual' })).status).toBe(403);

    // The keyboard alone: to the list, to a session, to an entry, to its call, and back.
    await page.keyboard.press('g');
    await page.keyboard.press('s');
    await page.locator('.drawn .row').first().waitFor();
    expect(await page.locator('.drawn .row .session-name').count()).toBe(4);
    await page.keyboard.press('g');
    await page.keyboard.press('l');
    await page.locator('.row.lineage').first().waitFor();
    expect(await page.locator('main').textContent()).toContain('merged');
    await page.locator('.legend summary').focus();
    await page.keyboard.press('Enter');
    await page.locator('.legend li').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.legend li').first().waitFor({ state: 'hidden' });
    expect(await page.evaluate('document.activeElement.localName')).toBe('summary');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.locator('.feed .item:not(.not-loaded)').first().waitFor();
    expect(await page.evaluate('document.activeElement.localName')).toBe('h1');
    await page.keyboard.press('j');
    await expect
      .poll(
        async () =>
          await page.evaluate(
            'document.activeElement.getAttribute("role") ?? document.activeElement.localName',
          ),
      )
      .toBe('article');
    await page.goBack();
    await page.locator('.row.lineage').first().waitFor();
    expect(requests.filter((address) => !address.startsWith(`${origin}/`))).toEqual([]);
    expect(faults).toEqual([]);
  },
);

/** What is to be pressed, and is left or right of the window. */
const outside = `[...document.querySelectorAll('main :is(button, a, summary)')].filter((element) => {
  const { left, right, width } = element.getBoundingClientRect();
  return width > 0 && element.closest('.wide') === null && (left < 0 || right > innerWidth);
}).map((element) => element.outerHTML.slice(0, 200))`;

test.skipIf(isMissing)(
  'every page is whole at 360 pixels, in light and dark, and axe finds no barrier',
  { timeout: 180_000 },
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
          .locator(
            'main .row, main .item, main .sheet, main .empty, main section, main table, main [role="alert"]',
          )
          .first()
          .waitFor();
        expect(await isWide(page), `${place} ${width}`).toBe(false);
        // Each command can be copied, also one that is folded.
        await page.evaluate(
          `for (const details of document.querySelectorAll('main details')) details.open = true`,
        );
        await page.waitForTimeout(100);
        expect(await page.evaluate(outside), `${place} ${width}`).toEqual([]);
        await page.evaluate(
          `for (const details of document.querySelectorAll('main .legend')) details.open = false`,
        );
        expect(await barriers(page), `${place} ${colorScheme}`).toEqual([]);
      }
      const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      const [red = 0] = background.match(/\d+/g)?.map(Number) ?? [];
      expect(red < 128, `${colorScheme}: ${background}`).toBe(colorScheme === 'dark');
    }
  },
);

/** A home whose session `main` has calls, reasoning, a rewind, an event, and an anchor that the conversation leaves out. */
function foldedHome() {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main');
  const call = { toolCallId: 'c', toolName: 'read' };
  store.entries.append('main', [
    user('Begin'),
    assistant([{ type: 'reasoning', text: 'I think.' }, toolCall('c', 'read', { path: 'x.ts' })]),
    toolResult(call, 'What x.ts has.'),
    assistant('Kept.'),
    note('run/start', { message: 'An event.' }),
    user('A wrong turn'),
    assistant([{ type: 'text', text: 'Wrong.' }, toolCall('d', 'write', { path: 'wrong.ts' })]),
    toolResult({ toolCallId: 'd', toolName: 'write' }, 'What wrong.ts has.'),
  ]);
  store.history.rewind('main', 5);
  store.entries.append('main', [user('The right turn'), assistant('Right.')]);
  return home;
}

test.skipIf(isMissing)('an address marks its entry, also where the page hides it', async () => {
  using home = foldedHome();
  await using window = await shown(browser(), home.path, { place: '#/main@2' });
  const { page, faults } = window;
  const marked = page.locator('.feed-rows .item.target');
  const at = async (place: string, text: string) => {
    await window.goto(place);
    await marked.filter({ hasText: text }).waitFor();
    expect(await marked.count(), place).toBe(1);
    expect(await marked.isVisible(), place).toBe(true);
    await expect
      .poll(async () => await page.evaluate('document.activeElement.classList.contains("target")'), {
        message: place,
      })
      .toBe(true);
  };
  const isOn = async (name: string) => await page.getByRole('button', { name }).getAttribute('aria-pressed');
  await at('#/main@2', 'Begin');
  // The result of a call is unfolded.
  await at('#/main@4', 'What x.ts has.');
  expect([await isOn('All entries'), await isOn('Hidden branches')]).toEqual(['false', 'false']);
  await at('#/main@10', 'it hides');
  await at('#/main@7', 'A wrong turn');
  expect([await isOn('All entries'), await isOn('Hidden branches')]).toEqual(['false', 'true']);
  await at('#/main@9', 'What wrong.ts has.');
  await at('#/main@6', 'run/start');
  await at('#/main@1', 'session/start');
  expect(await isOn('All entries')).toBe('true');
  await window.goto('#/main@99');
  await page.getByText('There is no @99: this session ends at @12.').waitFor();
  expect(await marked.count()).toBe(0);

  // Nor is a place without an answer, or with a damaged one, a page that failed.
  await window.goto('#/main@2/seen');
  await page.getByText('@2 is not an answer of a model.').waitFor();
  await page.locator('.notice a', { hasText: '@3' }).click();
  await page.getByText('No view was recorded with this answer.').waitFor();
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    db.run(`UPDATE entry SET payload = 'no JSON' WHERE seq = 5`);
  }
  await window.goto('#/main@5/seen');
  await page.getByText('What is stored at @5 is damaged and cannot be read.').waitFor();
  await page.locator('main .command', { hasText: 'tape check' }).first().waitFor();
  expect(await page.locator('main [role=alert]').count()).toBe(0);
  expect(await barriers(page)).toEqual([]);

  const file = home.file('main.html');
  await home.process(['export', 'main', '--format', 'html', '-o', file]);
  for (const [seq, text] of [
    [4, 'What x.ts has.'],
    [7, 'A wrong turn'],
  ] as const) {
    await using other = await watched(browser(), { offline: true });
    await other.page.goto(`${pathToFileURL(file).href}#/main@${seq}`);
    await other.page.locator('.feed-rows .item.target', { hasText: text }).waitFor();
  }
  expect(faults).toEqual([]);
});

test.skipIf(isMissing)(
  'calls, reasoning and hidden branches unfold in their places, by mouse and keys',
  async () => {
    using home = foldedHome();
    await using window = await shown(browser(), home.path, { place: '#/main@3' });
    const { page, faults } = window;
    await page.locator('.item.target').waitFor();
    const feed = page.locator('.feed-rows');
    const folds = [
      ['Reasoning', 'I think.', '3'],
      ['read(', 'What x.ts has.', '3'],
      ['it hides 4 entries', 'A wrong turn', '10'],
    ] as const;
    for (const [summary, inside, seq] of folds) {
      await feed.locator('summary', { hasText: summary }).click();
      await feed.locator('.folded', { hasText: inside }).first().waitFor();
      await feed.locator('summary', { hasText: summary }).click();
      await feed.locator('.folded', { hasText: inside }).first().waitFor({ state: 'detached' });
      // The summary by the keyboard, and the item that has it by two keys.
      await feed.locator('summary', { hasText: summary }).focus();
      await page.keyboard.press('Enter');
      await feed.locator('.folded', { hasText: inside }).first().waitFor();
      await page.keyboard.press('Enter');
      await feed.locator('.folded', { hasText: inside }).first().waitFor({ state: 'detached' });
      const item = feed.locator(`article[aria-label$="@${seq}"]`);
      for (const key of ['o', 'Enter']) {
        await item.focus();
        await page.keyboard.press(key);
        await item.locator('.folded', { hasText: inside }).first().waitFor();
        await page.keyboard.press(key);
        await item.locator('.folded', { hasText: inside }).first().waitFor({ state: 'detached' });
      }
    }
    // What is inside of a hidden branch is folded as elsewhere.
    await feed.locator('summary', { hasText: 'it hides' }).click();
    await feed.locator('.hidden-items summary', { hasText: 'write(' }).click();
    await feed.getByText('What wrong.ts has.').waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await barriers(page), colorScheme).toEqual([]);
    }
    expect(faults).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'axe finds no barrier in a session without a message, nor in links within text',
  { timeout: 180_000 },
  async () => {
    using home = tempHome();
    const link = 'text https://example.com/ text';
    home.session(
      'main',
      user('Link'),
      assistant(`# ${link}\n\n- ${link}\n\n> ${link}\n\n| a |\n|---|\n| ${link} |`),
    );
    home.session('quiet');
    const file = home.file('quiet.html');
    await home.process(['export', 'quiet', '--format', 'html', '-o', file]);
    await using window = await shown(browser(), home.path, { place: '#/main' });
    const { page, faults } = window;
    await page.locator('.markdown a').nth(3).waitFor();
    expect(await barriers(page)).toEqual([]);
    await window.goto('#/quiet');
    await page.getByText('Nothing was said yet.').waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole('button', { name: 'All entries' }).click();
    await page.getByRole('feed').getByRole('article').first().waitFor();
    expect(await barriers(page)).toEqual([]);
    await using other = await watched(browser(), { offline: true });
    await other.page.goto(`${pathToFileURL(file).href}#/quiet`);
    await other.page.getByText('Nothing was said yet.').waitFor();
    expect(await barriers(other.page)).toEqual([]);
    expect([...faults, ...other.faults]).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'a page that was loaded while its home was gone is shown when that is back',
  { timeout: 180_000 },
  async () => {
    using home = tempHome();
    home.session('main', user('Go'), assistant('Gone.'));
    await using window = await shown(browser(), home.path);
    const { page } = window;
    const away = `${home.path}.away`;
    renameSync(home.path, away);
    try {
      await page.reload();
      await page.getByRole('button', { name: 'Ask again' }).waitFor();
    } finally {
      renameSync(away, home.path);
    }
    await page.locator('.row', { hasText: 'main' }).waitFor();
    expect(await page.locator('[role=alert]').count()).toBe(0);
  },
);

test.skipIf(isMissing)('what the lineage folds is unfolded in its place, by mouse and keys', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    store.entries.append('main', [user('Begin')]);
    for (let i = 0; i < 9; i += 1) {
      store.lineage.fork('main', { name: `main.part-${i}`, kind: 'subagent' });
      store.entries.append(`main.part-${i}`, [assistant('Done.')]);
      if (i === 8) {
        store.lineage.fork('main.part-8', { name: 'main.part-8.below' });
        store.entries.append('main.part-8.below', [assistant('Done.')]);
        store.lineage.merge('main.part-8.below');
      }
      store.lineage.merge(`main.part-${i}`);
    }
  }
  await using window = await shown(browser(), home.path, { place: '#/graph' });
  const { page, faults } = window;
  const named = async () => await page.locator('.row .session-name').count();
  const more = page.locator('.row.is-more');
  await more.waitFor();
  const few = await named();
  await more.getByRole('button', { name: 'and 6 more merged children' }).click();
  await more.waitFor({ state: 'detached' });
  expect(await named()).toBe(11);
  expect(page.url()).toMatch(/#\/graph$/);
  // The row above folds them again; a merged one is unfolded by its own key.
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowLeft');
  await more.waitFor();
  expect(await named()).toBe(few);
  await page.keyboard.press('j');
  await page.locator('.row[aria-expanded="false"]:focus', { hasText: 'part-8' }).waitFor();
  await page.keyboard.press('ArrowRight');
  await page.locator('.row', { hasText: 'below' }).locator('.own', { hasText: 'below' }).waitFor();
  await page.keyboard.press('End');
  await page.locator('.row.is-more:focus').waitFor();
  await page.keyboard.press('Enter');
  await more.waitFor({ state: 'detached' });
  expect(await named()).toBe(11);
  expect(await barriers(page)).toEqual([]);
  expect(faults).toEqual([]);
});

test.skipIf(isMissing)(
  'a delegation is seen while it runs, is killed, and is recovered',
  { timeout: 180_000 },
  async () => {
    using home = tempHome();
    home.session('main', user('Plan'));
    const script = (name: string, delayMs: number) => {
      const file = home.file(name);
      writeFileSync(
        file,
        JSON.stringify([
          { when: { text: 'slow one' }, text: 'Slow is done.', delayMs },
          { text: 'Quick is done.', delayMs: 200 },
        ]),
      );
      return `script:${file}`;
    };
    await using window = await shown(browser(), home.path, { place: '#/?tree=1' });
    const { page, faults } = window;
    await page.locator('.live-state.live').waitFor();
    const row = (what: string) => page.locator('.drawn .row', { hasText: what });
    const running = startTape(
      ['delegate', 'main', '--task', 'quick one', '--task', 'slow one', '--model', script('a.json', 600_000)],
      { home: home.path },
    );
    await row('slow-one')
      .locator('.words', { hasText: /running|busy/ })
      .waitFor();
    await row('quick-one')
      .locator('.words', { hasText: /merged|completed/ })
      .waitFor();
    running.child.kill('SIGKILL');
    await running.done;
    await row('slow-one').locator('.words', { hasText: 'interrupted' }).waitFor();
    await window.goto('#/graph');
    await page.locator('.row.lineage', { hasText: 'slow-one' }).waitFor();
    const recovered = await home.process(['recover', '--model', script('a.json', 10)]);
    expect(recovered.code, recovered.stderr).toBe(0);
    await page.locator('.row.lineage', { hasText: 'slow-one' }).filter({ hasText: 'merged' }).waitFor();
    await window.goto('#/main');
    await page.locator('.item.is-merge', { hasText: 'slow-one' }).first().waitFor();
    expect(faults).toEqual([]);
  },
);

/** Names in the lineage of which a part is cut. */
const cutNames = `[...document.querySelectorAll('.row.lineage .session-name > *')]
  .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
  .map(({ textContent }) => textContent)`;

test.skipIf(isMissing)(
  'where there is room, names in the lineage are whole; a file offers nothing to ask again',
  async () => {
    using home = tempHome();
    {
      using store = home.open();
      store.sessions.open('main');
      for (const name of ['k4998', 'k4999', 'main-check-the-tests-5b291267']) {
        store.lineage.fork('main', { name, kind: 'subagent', intention: { nextSteps: 'x' } });
        store.entries.append(name, [assistant('Done.')]);
        store.lineage.merge(name);
        store.entries.append('main', [user('Go on'), assistant('So.')]);
      }
    }
    const file = home.file('out.html');
    expect((await home.process(['export', '--tree', 'main', '--format', 'html', '-o', file])).code).toBe(0);
    await using live = await shown(browser(), home.path, { place: '#/graph/main' });
    await using saved = await watched(browser(), { offline: true });
    await saved.page.goto(`${pathToFileURL(file).href}#/graph`);
    for (const { page } of [live, saved]) {
      await page.locator('.row.lineage', { hasText: 'k4999' }).first().waitFor();
      expect(await page.evaluate(cutNames)).toEqual([]);
    }
    await saved.page.goto(`${pathToFileURL(file).href}#/k4998@2/trace`);
    await saved.page.locator('[role=alert]', { hasText: 'This file does not contain' }).waitFor();
    expect(await saved.page.getByText('Ask again').count()).toBe(0);
    await saved.page.goto(`${pathToFileURL(file).href}#/check`);
    await saved.page.getByText('Nothing is wrong').waitFor();
    expect(await saved.page.getByText('Check again').count()).toBe(0);
  },
);

/** A home with what a page links to: forks, merges, a rewind, views, findings, and a session that was deleted above another one. */
function linkedHome() {
  const home = tempHome();
  {
    using store = home.open();
    const turn = (session: string, said: string) => {
      store.entries.append(session, [user(said)]);
      const manifest = JSON.parse(JSON.stringify(view(store.views.entries(session)).manifest()));
      const call = { toolCallId: said, toolName: 'read' };
      store.entries.append(session, [
        assistant([toolCall(said, 'read', { path: `${said}.ts` })], { model: 'a/b', view: manifest }),
        toolResult(call, `What ${said} has.`),
      ]);
    };
    store.sessions.open('root');
    store.lineage.fork('root', { name: 'gone' });
    store.lineage.fork('gone', { name: 'left' });
    store.entries.append('left', [assistant('Left.')]);
    store.sessions.update('gone', { lifecycle: 'destroyed' });
    turn('root', 'one');
    store.entries.append('root', [user('A wrong turn')]);
    store.history.rewind('root', 5);
    store.entries.append('root', [anchor('task', { goal: 'x' })]);
    store.lineage.fork('root', { name: 'main' });
    turn('main', 'two');
    store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Check it.' } });
    turn('kid', 'three');
    store.lineage.merge('kid');
  }
  using db = rawDb(home.db);
  db.dropTriggers();
  db.run(`UPDATE entry SET v = 2 WHERE seq = 2 AND tape_id = (SELECT id FROM tape WHERE name = 'root')`);
  return home;
}

/**
 * Follows each link of the page, and those of what is there. Returns which there were, and what has nothing. Of the entries of a
 * session its page says which there are.
 */
const deadLinks = `(async () => {
  const main = document.querySelector('main');
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const isLoading = () => main.ariaBusy !== null || main.querySelector('.item.not-loaded') !== null;
  const views = new Set(['#/']);
  const entries = new Set();
  const dead = [];
  const ends = new Map();
  for (const view of views) {
    location.hash = view;
    await frame();
    for (let i = 0; i < 100 && isLoading(); i += 1) await frame();
    await frame();
    const wrong = main.querySelector('[role=alert], .empty')?.textContent;
    if (wrong !== undefined || main.className === 'page-missing') dead.push([view, wrong]);
    const positions = main.querySelector('.reading-tools [role=status]')?.textContent.match(/\\d+/g);
    if (positions) ends.set(view, positions.map(Number));
    for (const details of main.querySelectorAll('details:not([open])')) details.open = true;
    for (const link of document.querySelectorAll('a[href]')) {
      const place = link.getAttribute('href');
      const session = /^(#\\/[^/]+)@\\d+$/.exec(place)?.[1];
      views.add(session ?? place);
      if (session !== undefined) entries.add(place);
    }
  }
  for (const entry of entries) {
    const [session, seq] = entry.split('@');
    const [first, last] = ends.get(session) ?? [];
    if (!(first <= Number(seq) && Number(seq) <= last)) dead.push([entry, [first, last]]);
  }
  return { dead, places: [...views, ...entries] };
})()`;

test.skipIf(isMissing)(
  'each link in an exported file leads to something that the file has',
  { timeout: 180_000 },
  async () => {
    using home = linkedHome();
    await using window = await watched(browser(), {
      offline: true,
      viewport: { width: 1280, height: 1_800 },
    });
    const { page, faults } = window;
    for (const args of [['root', '--tree'], ['kid']]) {
      const file = home.file(`${args[0]}.html`);
      const { code, stderr } = await home.here(['export', ...args, '--format', 'html', '-o', file]);
      expect(code, stderr).toBe(0);
      await page.goto(pathToFileURL(file).href);
      await page.locator('main h1').waitFor();
      const { dead, places } = await page.evaluate<{ dead: unknown[]; places: string[] }>(deadLinks);
      expect(dead, args.join(' ')).toEqual([]);
      const kinds = [
        '#/root@2',
        '#/main@10/seen',
        '#/diff/main/kid',
        '#/graph/kid',
        '#/usage/kid',
        '#/check/kid',
      ];
      expect(places).toEqual(expect.arrayContaining(kinds));
    }
    expect(faults).toEqual([]);
  },
);

/** Adds sessions with so much that is damaged that a check of it has far more findings than a page shows. */
function damageMuch(home: TempHome): void {
  {
    using store = home.open();
    for (let i = 0; i < 20; i += 1) {
      store.sessions.open(`damaged-${i}`);
      store.entries.append(
        `damaged-${i}`,
        Array.from({ length: 1_000 }, (_, n) => user(`Entry ${n}`)),
      );
    }
  }
  using db = rawDb(home.db);
  db.dropTriggers();
  const damaged = db.run(
    `UPDATE entry SET v = 2 WHERE tape_id IN (SELECT id FROM tape WHERE name LIKE 'damaged-%')`,
  );
  expect(damaged).toBeGreaterThan(20_000);
}

test.skipIf(isMissing)(
  'what is committed is on the page within 300 milliseconds, also during a check',
  { timeout: 180_000 },
  async () => {
    using home = tempHome();
    home.session('main', user('Begin'));
    damageMuch(home);
    // So high that each of them is drawn.
    const viewport = { width: 1280, height: 3_000 };
    await using window = await shown(browser(), home.path, { place: '#/main', viewport });
    const { page } = window;
    await page.locator('.live-state.live').waitFor();
    await page.locator('.item:not(.not-loaded)').first().waitFor();
    await page.evaluate(`
    window.seenAt = {};
    new MutationObserver(() => {
      for (const [text] of document.querySelector('main').textContent.matchAll(/news-\\d+-/g)) window.seenAt[text] ??= Date.now();
    }).observe(document.querySelector('main'), { childList: true, subtree: true, characterData: true })`);
    using writer = home.open();
    const round = async (of: number, count: number) => {
      const waits: number[] = [];
      for (let i = 0; i < count; i += 1) {
        const text = `news-${of * 100 + i}-`;
        writer.entries.append('main', [user(text)]);
        const committed = Date.now();
        const seen = async () => (await page.evaluate<number | undefined>(`window.seenAt['${text}']`)) ?? 0;
        await expect.poll(seen, { interval: 40 }).toBeGreaterThan(0);
        waits.push((await seen()) - committed);
        await page.waitForTimeout(500);
      }
      return waits;
    };
    // A machine that is busy for a moment may be late for a round of them.
    const medians: number[] = [];
    const alone: number[] = [];
    for (let i = 0; i < 6 && !(Math.min(...medians) < 300); i += 1) {
      const waits = await round(i, 7);
      alone.push(...waits);
      medians.push(median(waits));
    }
    expect(Math.min(...medians)).toBeLessThan(300);
    // Also the slowest of those during a check, up to where its findings are there; other programs delay it as without one.
    const most = Math.max(300, 3 * Math.max(...alone));
    const worst: number[] = [];
    for (let i = 0; i < 3 && !(Math.min(...worst) < most); i += 1) {
      const waits: number[] = [];
      let found = 0;
      const check = page
        .evaluate<number>(`fetch('api/findings').then(async (answer) => (await answer.json()).total)`)
        .then((total) => {
          found = total;
        });
      for (let n = 0; found === 0 && n < 100; n += 1) waits.push(...(await round(10 + 100 * i + n, 1)));
      await check;
      expect(found).toBeGreaterThan(20_000);
      worst.push(Math.max(...waits));
    }
    expect(Math.min(...worst)).toBeLessThan(most);
  },
);
