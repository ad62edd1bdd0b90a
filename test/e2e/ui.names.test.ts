import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { assistant, user } from '@tapedeck/tape';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers, watched } from '../support/browser.ts';
import { tapeHere } from '../support/cli.ts';
import { rawDb } from '../support/raw-db.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';
import { homeIn, type TempHome } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('names of sessions in a browser');
const browser = browserForTests(isMissing);

/** Names that are seen as they are. The store makes few of them; a home from elsewhere can have each. */
const seen = [
  ...['a', 'a@3', 'a@b@3', 'a@head', '%2f', 'graph', '__proto__', 'constructor', '-x', '--home', '--'],
  ...[
    '#',
    '?',
    '#/?find=x',
    'a b',
    '"two"',
    "it's",
    '$(touch ran)',
    '`touch ran`',
    'a;touch ran',
    'a&b|c>ran',
  ],
  ...['wow!x', '*', '~', '\\', 'naïve 🎉', '👩‍💻', 'NAME^', '@{-1}', 'tape undo main'],
];

/** Names that are not, or that read as a range, each with a part that a reader can type. */
const unseen: readonly (readonly [name: string, typed: string])[] = [
  ['bell\u0007\u001b[31mred', '[31mred'],
  ['nul\0behind', 'behind'],
  ['\u202egpj.exe', 'gpj.exe'],
  ['zero\u200bwidth', 'width'],
  ['two\nlines', 'lines'],
  ['tab\tin', 'in'],
  [' outer ', 'outer'],
  ['wide  gap', 'gap'],
  ['long'.repeat(250), 'longlong'],
  ['..', '.. Task'],
  ['x@1..2', 'x@1..2'],
  ['', ''],
];
const names = [...seen, ...unseen.map(([name]) => name)];
const typed = [
  ...seen.map((name, i) => `${name} Task ${i}.`),
  ...unseen.map(([, part], i) => part || `Task ${seen.length + i}.`),
];

/** Those that are opened: a part of them, and all in the soak. */
const every = sized(6, 6, 1);
const tried = [...names.keys()].filter((i) => i % every === 1 % every);

/** A home whose sessions have these names, each with a title, and a message that says which it is. */
function hostileHome(home: TempHome): void {
  using store = home.open();
  store.sessions.open('main', { title: 'Begin' });
  store.entries.append('main', [user('Begin.')]);
  for (const i of names.keys()) {
    store.lineage.fork('main', { name: `named-${i}`, title: `Task ${i}.` });
    store.entries.append(`named-${i}`, [user(`Say ${i}.`), assistant(`Said ${i}.`)]);
  }
  using db = rawDb(home.db);
  db.dropTriggers();
  for (const [i, name] of names.entries())
    db.run('UPDATE tape SET name = ? WHERE name = ?', name, `named-${i}`);
}

/** The words that a shell makes of some lines, each of which is a command `tape`. */
function wordsOf(lines: readonly string[], cwd: string): readonly (readonly string[])[] {
  const script = [`tape() { printf '%s\\0' "$@"; printf '\\1\\0'; }`, ...lines].join('\n');
  const said = execFileSync('bash', ['-c', script], { cwd, encoding: 'utf8' });
  return said
    .split('\u0001\0')
    .slice(0, -1)
    .map((words) => words.split('\0').slice(0, -1));
}

interface Opened {
  readonly address: string;
  /** The commands of its page that only read, and an entry of it. */
  readonly lines: readonly string[];
}

/** Finds each session in the list by what a reader types, and opens it by its link. */
async function opened(page: Page): Promise<readonly Opened[]> {
  const found: Opened[] = [];
  for (const i of tried) {
    const place = `#/?find=${encodeURIComponent(typed[i] ?? '')}`;
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    const link = page.locator('[role=row]', { hasText: `Task ${i}.` }).locator('a.cover');
    await link
      .waitFor({ timeout: 10_000 })
      .catch(() => expect.fail(`${JSON.stringify(names[i])} is not found`));
    const address = (await link.getAttribute('href')) ?? '';
    await link.click();
    await page
      .locator('.feed .item', { hasText: `Said ${i}.` })
      .first()
      .waitFor({ timeout: 10_000 })
      .catch(() => expect.fail(`${JSON.stringify(names[i])} is not opened`));
    await page.evaluate(`for (const one of document.querySelectorAll('main details')) one.open = true`);
    const lines = page.locator('main .command code', { hasText: /^tape (?:log|show) / });
    await lines.nth(2).waitFor();
    found.push({ address, lines: await lines.allTextContents() });
  }
  return found;
}

test.skipIf(isMissing)(
  'a session of any name is listed, found, opened by its link, and named by commands that work elsewhere',
  { timeout: 600_000 },
  async () => {
    using dir = tempDir();
    const path = dir.file("a home; it's $HOME");
    mkdirSync(path, { mode: 0o700 });
    const home = homeIn({ path, file: (name) => `${path}/${name}`, [Symbol.dispose]: () => {} });
    hostileHome(home);
    const elsewhere = dir.file('elsewhere');
    mkdirSync(elsewhere, { mode: 0o700 });
    const file = dir.file('out.html');
    const made = await home.process(['export', 'main', '--tree', '--format', 'html', '-o', file]);
    expect(made.code, made.stderr).toBe(0);

    await using live = await shown(browser(), path);
    await using saved = await watched(browser(), { offline: true });
    await saved.page.goto(pathToFileURL(file).href);
    await saved.page.locator('.drawn .row').first().waitFor();
    const [here, there] = [await opened(live.page), await opened(saved.page)];
    const addresses = here.map(({ address }) => address);
    expect(new Set(addresses).size).toBe(tried.length);
    expect(there.map(({ address }) => address)).toEqual(addresses);
    // What a reader cannot see of a name is in no address.
    for (const [at, address] of addresses.entries())
      expect(/^#\/[0-9A-Z]{26}$/.test(address), address).toBe((tried[at] ?? 0) >= seen.length);

    // What is typed as a name and a position is the name where there is one.
    const search = live.page.locator('input[type=search]');
    for (const [text, hash] of [
      ['a@3', '#/a%403'],
      ['a@1', '#/a@1'],
    ] as const) {
      await search.fill(text);
      await search.press('Enter');
      await expect.poll(() => new URL(live.page.url()).hash).toBe(hash);
    }

    const wrong: string[] = [];
    // Who has a file names the home otherwise.
    for (const [of, env] of [
      [here, { HOME: dir.path }],
      [there, { HOME: dir.path, TAPE_HOME: path }],
    ] as const)
      for (const [at, { lines }] of of.entries()) {
        const i = tried[at];
        const said: string[] = [];
        for (const words of wordsOf(lines, elsewhere)) {
          const { code, stdout, stderr } = await tapeHere(words, { cwd: elsewhere, env });
          said.push(stdout);
          if (code !== 0) wrong.push(`${words.join(' ')}: ${stderr}`);
        }
        expect(said).toHaveLength(lines.length);
        // The whole session, and its entries.
        for (const text of [`Say ${i}.`, `Said ${i}.`])
          if (said.filter((one) => one.includes(text)).length < 2)
            wrong.push(`${lines.join(', ')}: no ${text}`);
      }
    expect(wrong).toEqual([]);
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(live.faults).toEqual([]);
    expect(saved.faults).toEqual([]);
  },
);
