import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers } from '../support/browser.ts';
import { tempHome } from '../support/temp-home.ts';
import { root, page as textOf, updating } from './pages.ts';

const isMissing = skipsBrowsers('the pictures of the page');
const browser = browserForTests(isMissing);

/** The pictures, and the places of the page in the home of the demo that they show. */
const pictures = [
  { name: 'lineage', place: '#/graph', height: 250, pages: ['README.md'] },
  { name: 'timeline', place: '#/main', height: 480, pages: ['docs/guide/browser.md'] },
] as const;

const fileOf = (name: string) => join(root, 'docs/pictures', `${name}.png`);

test.skipIf(isMissing)('the pictures in the docs can be made of the page, and show the demo', async () => {
  using home = tempHome();
  await home.process(['demo', '--home', home.path]);
  await using window = await shown(browser(), home.path, { viewport: { width: 900, height: 480 } });
  const { page } = window;
  for (const { name, place, height } of pictures) {
    await window.goto(place);
    await page.locator('.row.lineage, .item:not(.not-loaded)').nth(1).waitFor();
    // What is another word in each home, and at each time.
    await page.evaluate(`document.querySelector('.home').textContent = 'demo'`);
    await page.evaluate(
      `for (const line of document.querySelectorAll('.command code')) line.textContent = line.textContent.replace(/ --home \\S+/, '')`,
    );
    await page.evaluate('document.fonts.ready');
    await page.evaluate('document.activeElement.blur()');
    const picture = await page.screenshot({
      clip: { x: 0, y: 0, width: 900, height },
      animations: 'disabled',
      caret: 'hide',
    });
    expect(picture.length, name).toBeLessThan(80_000);
    if (!updating) continue;
    mkdirSync(dirname(fileOf(name)), { recursive: true });
    writeFileSync(fileOf(name), picture);
  }
});

test('each picture is small, and its page says in words what it shows', () => {
  for (const { name, pages } of pictures) {
    expect(existsSync(fileOf(name)), 'missing: make it with pnpm docs:pictures').toBe(true);
    expect(readFileSync(fileOf(name)).length).toBeLessThan(80_000);
    for (const page of pages)
      expect(textOf(page)).toMatch(new RegExp(`!\\[[^\\]]{40,}\\]\\([./a-z]*pictures/${name}\\.png\\)`));
  }
});
