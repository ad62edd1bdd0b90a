import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers } from '../support/browser.ts';
import { rawDb } from '../support/raw-db.ts';
import { tempHome } from '../support/temp-home.ts';
import { activeInPage, vectors } from '../support/xss.ts';

const isMissing = skipsBrowsers('hostile texts in a browser');
const browser = browserForTests(isMissing);

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
