import { pathToFileURL } from 'node:url';
import {
  anchor,
  assistant,
  handoff,
  note,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers, watched } from '../support/browser.ts';
import { rawDb } from '../support/raw-db.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';
import { activeInPage, vectors } from '../support/xss.ts';

const isMissing = skipsBrowsers('hostile texts in a browser');
const browser = browserForTests(isMissing);

/** A session that has the text in each field that a page shows. */
function plant(store: SqliteTapeStore, name: string, text: string): void {
  store.lineage.fork('main', {
    name,
    kind: 'subagent',
    title: text,
    intention: { nextSteps: text },
  });
  const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  const call = { toolCallId: text, toolName: text };
  store.entries.append(name, [
    user(text),
    user([{ type: 'file', mediaType: text, filename: text, data: 'AAAA' }]),
  ]);
  const manifest = JSON.parse(JSON.stringify(view(store.views.entries(name)).manifest()));
  store.entries.append(name, [
    assistant(
      [
        { type: 'reasoning', text },
        { type: 'text', text },
        toolCall(call.toolCallId, call.toolName, { [text]: text, path: text }),
      ],
      { model: text, provider: text, usage, view: manifest },
    ),
    toolResult(call, { type: 'error-text', value: text }),
    assistant(
      `# ${text}\n\n- ${text}\n\n> ${text}\n\n| ${text} | b |\n| - | - |\n| c | ${text} |\n\n**${text}**`,
    ),
    assistant(
      `\`${text}\` and [${text}](https://ok.example/ "${text}") and ![${text}](https://evil.example/z.png)`,
    ),
    note(`${name}/note`, { message: text }),
    note('run/error', { message: text }),
    anchor(`${name}/anchor`, { [text]: text, owner: text, nextSteps: text }),
    handoff(`${name}/handoff`, { summary: text, [text]: text }),
    user(`Said by ${text}`),
  ]);
}

/** A home with each of the texts in each field, on a session of its own. */
function hostileHome(): TempHome {
  const home = tempHome();
  using store = home.open();
  store.sessions.open('main', { title: vectors[0] ?? '' });
  store.entries.append('main', [user('Begin'), assistant('So.')]);
  for (const [i, text] of vectors.entries()) plant(store, `child-${i}`, text);
  for (const i of vectors.keys()) if (i % 2 === 0) store.lineage.merge(`child-${i}`);
  return home;
}

/** All that is loaded, drawn with everything unfolded, as it is for a printer. */
async function unfold(page: Page): Promise<void> {
  await page.locator('.item:not(.not-loaded)').first().waitFor();
  await page.evaluate(`dispatchEvent(new Event('beforeprint'))`);
  await page.locator('.feed.printed').waitFor({ state: 'attached' });
}

async function fold(page: Page): Promise<void> {
  await page.evaluate(`dispatchEvent(new Event('afterprint'))`);
}

/** Walks through the pages, and returns what of them is active, by place. */
async function activeOn(page: Page, places: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const place of places) {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    const [, name] = /^#\/(child-\d+|main)$/.exec(place) ?? [];
    if (name !== undefined) {
      await page.locator('h1', { hasText: name }).waitFor();
      await unfold(page);
    } else await page.locator('main h1').waitFor();
    await page.locator('main:not(:has([aria-busy="true"]))').waitFor();
    found.push(...(await page.evaluate<string[]>(activeInPage)).map((what) => `${place}: ${what}`));
    if (name !== undefined) await fold(page);
  }
  return found;
}

const places = [
  '#/',
  '#/?tree=1',
  '#/graph',
  '#/graph/main',
  ...vectors.flatMap((_, i) => [`#/child-${i}`]),
  ...[0, 8, 26].flatMap((i) => [
    `#/diff/main/child-${i}`,
    `#/usage/child-${i}`,
    `#/child-${i}@6/seen`,
    `#/child-${i}@8/trace`,
  ]),
  '#/main',
  '#/usage',
  '#/check',
  ...vectors
    .slice(0, 12)
    .map((text) => `#/${encodeURIComponent(text)}`)
    .filter((place) => !place.includes('%2F'))
    .map((place) => `${place}/seen`),
];

test.skipIf(isMissing)(
  'a text that is markup, an address or a script does nothing, in any field of any page',
  { timeout: 600_000 },
  async () => {
    using home = hostileHome();
    {
      // No program of ours makes an anchor or an event of such a name, or a message of such a role.
      using db = rawDb(home.db);
      db.dropTriggers();
      for (const [i, text] of vectors.entries()) {
        db.run('UPDATE entry SET name = ? WHERE name LIKE ?', text, `child-${i}/%`);
        db.run(
          `UPDATE entry SET payload = json_set(payload, '$.role', ?) WHERE id =
            (SELECT max(e.id) FROM entry e JOIN tape t ON t.id = e.tape_id
              WHERE t.name = ? AND e.payload LIKE '%Said by %')`,
          text,
          `child-${i}`,
        );
      }
    }
    await using window = await shown(browser(), home.path);
    const { page, requests, faults, origin } = window;
    expect(await activeOn(page, places)).toEqual([]);
    expect(requests.filter((address) => !address.startsWith(`${origin}/`))).toEqual([]);
    expect(faults.filter((fault) => !/status of 40/.test(fault))).toEqual([]);
    // They are there to be read.
    await page.evaluate(`location.hash = '#/child-0'`);
    await page.locator('h1', { hasText: 'child-0' }).waitFor();
    await unfold(page);
    const text = (await page.locator('main').textContent()) ?? '';
    expect(text.split(vectors[0] ?? '').length).toBeGreaterThan(12);
    await fold(page);
    // What looks like a link cannot be pressed.
    await page.evaluate(`location.hash = '#/child-26'`);
    await page.locator('h1', { hasText: 'child-26' }).waitFor();
    await page.locator('.no-link').first().click();
    expect(await page.evaluate('window.tapedeckRan')).toBeUndefined();
    expect(faults.filter((fault) => !/status of 40/.test(fault))).toEqual([]);
  },
);

test.skipIf(isMissing)('a hostile name of a session is shown as text', { timeout: 600_000 }, async () => {
  using home = tempHome();
  for (const i of vectors.keys()) home.session(`session-${i}`, user('Hello'));
  {
    using db = rawDb(home.db);
    db.dropTriggers();
    for (const [i, text] of vectors.entries())
      db.run('UPDATE tape SET name = ? WHERE name = ?', text, `session-${i}`);
  }
  await using window = await shown(browser(), home.path);
  const { page, requests, faults, origin } = window;
  const hashes = [
    '#/',
    '#/?sort=name',
    '#/?tree=1',
    '#/graph',
    ...vectors.map((text) => `#/${encodeURIComponent(text)}`),
  ];
  for (const hash of hashes) {
    await window.goto(hash);
    await page.waitForTimeout(30);
    expect(await page.evaluate(activeInPage), hash).toEqual([]);
  }
  expect(requests.filter((address) => !address.startsWith(`${origin}/`))).toEqual([]);
  expect(faults.filter((fault) => !/status of 40/.test(fault))).toEqual([]);
});

/** Names that no session gets here, but that a home from elsewhere can have. */
const forged = [
  ...vectors,
  '\u001b]0;title\u0007\u001b[31mred',
  'a\u0000b\u0001c',
  '\u202egpj.exe',
  'two\nlines\r\n# of a shell',
  '</title><script>window.tapedeckRan=1</script>',
  '__proto__',
];

test.skipIf(isMissing)(
  'a hostile name of a session is a text in an exported file, too',
  { timeout: 600_000 },
  async () => {
    using home = tempHome();
    home.session('main', user('Begin'));
    {
      using store = home.open();
      for (const i of forged.keys()) {
        store.lineage.fork('main', { name: `forged-${i}`, kind: 'subagent' });
        store.entries.append(`forged-${i}`, [assistant('Done.')]);
        if (i % 2 === 0) store.lineage.merge(`forged-${i}`);
      }
    }
    {
      using db = rawDb(home.db);
      db.dropTriggers();
      for (const [i, text] of forged.entries())
        db.run('UPDATE tape SET name = ? WHERE name = ?', text, `forged-${i}`);
    }
    const named = new Map(
      [...home.open().readSessions({ all: true })].map(({ session, id }) => [session, id] as const),
    );
    let files = 0;
    const opened = async (of: string, ...args: string[]) => {
      files += 1;
      const file = home.file(`out-${files}.html`);
      const { code, stderr } = await home.process(['export', of, ...args, '--format', 'html', '-o', file]);
      expect(code, stderr).toBe(0);
      return pathToFileURL(file).href;
    };
    const address = await opened('main', '--tree');
    await using window = await watched(browser(), { offline: true });
    const { page, requests, faults } = window;
    await page.goto(address);
    await page.locator('.drawn .row').first().waitFor();
    // Of the vectors a third, as of the pages below; and each of the names that only a file from elsewhere has.
    const some = forged.filter((_, i) => i % 3 === 0 || i >= vectors.length);
    const hashes = sized(some, some, forged).map((text) => `#/${encodeURIComponent(text)}`);
    for (const hash of ['#/', '#/?tree=1', '#/graph', '#/main', '#/usage', ...hashes]) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.waitForTimeout(40);
      expect(await page.evaluate(activeInPage), hash).toEqual([]);
    }
    // Each alone: its name is the title of the file.
    for (const text of forged.slice(-6)) {
      await page.goto(await opened(named.get(text) ?? ''));
      await page.locator('main h1').waitFor();
      expect(await page.evaluate(activeInPage), text).toEqual([]);
    }
    expect(requests.filter((asked) => !/^(?:data|file):/.test(asked))).toEqual([]);
    expect(faults).toEqual([]);
  },
);

test.skipIf(isMissing)(
  'a text cannot read as another one: marks of direction, and what has no width, are seen',
  { timeout: 600_000 },
  async () => {
    using home = tempHome();
    {
      using store = home.open();
      store.sessions.open('main', { title: 'A\u200b title' });
      store.entries.append('main', [
        user(
          'Say\u202e so, or \u{1f469}\u200d\u{1f4bb}, or \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645',
        ),
        assistant('\u202e[bank](https://evil.example/moc.knab)\u2028'),
        assistant([toolCall('c', 'run_command', { command: 'rm \u2066-rf \u{e0041}x' })]),
      ]);
    }
    const file = home.file('out.html');
    expect((await home.process(['export', 'main', '--format', 'html', '-o', file])).code).toBe(0);
    await using live = await shown(browser(), home.path, { place: '#/main' });
    await using saved = await watched(browser(), { offline: true });
    await saved.page.goto(`${pathToFileURL(file).href}#/main`);
    for (const { page } of [live, saved]) {
      await page.locator('h1', { hasText: 'main' }).waitFor();
      await unfold(page);
      const text = (await page.locator('main').textContent()) ?? '';
      for (const shownAs of [
        'A\\u{200b} title',
        'Say\\u{202e} so',
        '\\u{2028}',
        'rm \\u{2066}-rf \\u{e0041}x',
      ])
        expect(text).toContain(shownAs);
      // What joins emoji, or letters, stays as it is.
      expect(text).toContain('\u{1f469}\u200d\u{1f4bb}');
      expect(text).toContain('\u06cc\u200c\u062e');
      expect(text).not.toMatch(/[\u202e\u2066\u2028\u200b]/);
      const { direction, unicodeBidi } = await page.evaluate<{ direction: string; unicodeBidi: string }>(
        `(({ direction, unicodeBidi }) => ({ direction, unicodeBidi }))(getComputedStyle(document.querySelector('.address')))`,
      );
      expect([direction, unicodeBidi]).toEqual(['ltr', 'isolate']);
    }
  },
);

/** A file draws its pages as a server's are drawn: a third of them says the same, and all are walked through in a soak. */
const third = places.filter((_, i) => i % 3 === 0);

test.skipIf(isMissing)(
  'the same in an exported file, which requests nothing',
  { timeout: 600_000 },
  async () => {
    using home = hostileHome();
    const file = home.file('out.html');
    const { code, stderr } = await home.process(['export', 'main', '--tree', '--format', 'html', '-o', file]);
    expect(code, stderr).toBe(0);
    const address = pathToFileURL(file).href;
    await using window = await watched(browser(), { offline: true });
    const { page, requests, faults } = window;
    await page.goto(address);
    await page.locator('.drawn .row').first().waitFor();
    // Its own script and style are inside of it.
    expect(await activeOn(page, sized(third, third, places))).toEqual([]);
    expect(requests.filter((asked) => !asked.startsWith('data:'))).toEqual([address]);
    expect(faults).toEqual([]);
  },
);
