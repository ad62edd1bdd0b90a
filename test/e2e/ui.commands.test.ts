import { execFile } from 'node:child_process';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { assistant, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { browserForTests, shown, skipsBrowsers } from '../support/browser.ts';
import { root } from '../support/imports.ts';
import { rawDb } from '../support/raw-db.ts';
import { tempDir } from '../support/temp-dir.ts';
import { homeIn } from '../support/temp-home.ts';

const isMissing = skipsBrowsers('the commands of the page');
const browser = browserForTests(isMissing);

const places = [
  ...['#/graph', '#/graph/main', '#/main', '#/wow!', '#/main@2', '#/main@8/trace', '#/main@3/seen'],
  ...['#/diff/main/main.kid', '#/usage', '#/usage/main', '#/check', '#/check/main'],
];

/** What asks a model, what finds something wrong, and what can no longer be undone. */
const isExcused = (line: string, code: number, stderr: string) =>
  /^tape (?:chat|run) /.test(line) ||
  (code === 1 && line.startsWith('tape check')) ||
  /cannot undo the merge .* follows it/.test(stderr);

test.skipIf(isMissing)(
  'each command that a page shows is understood by a shell elsewhere, of a home with any name',
  { timeout: 300_000 },
  async () => {
    using dir = tempDir();
    // The one of its user, which no one named.
    const userHome = dir.file("it's $HOME; a home");
    const at = join(userHome, '.tape');
    const home = homeIn({ path: at, file: (name) => join(at, name), [Symbol.dispose]: () => {} });
    await home.process(['init', at]);
    {
      using store = home.open();
      store.sessions.open('main');
      store.entries.append('main', [user('Ask'), assistant('Say.'), user('Again'), assistant('Again.')]);
      store.history.rewind('main', 3);
      for (let i = 0; i < 3; i += 1) store.lineage.fork('main', { name: `main.${i === 0 ? 'kid' : i}` });
      store.entries.append('main.kid', [assistant('Done.')]);
      store.lineage.merge('main.kid');
      store.entries.append('main', [assistant([toolCall('c1', 'read', { path: 'x' })])]);
      store.sessions.open('wow!');
      store.entries.append('wow!', [user('x'.repeat(9_000))]);
    }
    const lines = new Set<string>();
    {
      await using window = await shown(browser(), { env: { HOME: userHome }, cwd: dir.path });
      const { page } = window;
      for (const place of places) {
        await window.goto(place);
        await page.locator('main:not(:has([aria-busy="true"]))').waitFor();
        await page.waitForTimeout(300);
        await page.evaluate(
          `for (const details of document.querySelectorAll('main details')) details.open = true`,
        );
        await page.waitForTimeout(200);
        for (const line of await page.locator('main .command code').allTextContents()) lines.add(line);
      }
    }
    expect(lines.size).toBeGreaterThan(25);
    // By the usual shell, in a directory with a home of its own that has sessions of the same names, and a variable for it.
    const elsewhere = dir.file('elsewhere');
    const own = join(elsewhere, '.tape');
    await home.process(['init', own]);
    const other = homeIn({ path: own, file: (name) => join(own, name), [Symbol.dispose]: () => {} });
    for (const name of ['main', 'wow!', 'main.kid']) other.session(name, user('Other'), assistant('Other.'));
    const untouched = other.contents();
    const shell = promisify(execFile);
    const bin = join(root, 'packages/cli/bin/tape.js');
    const kept = dir.file('kept');
    cpSync(at, kept, { recursive: true });
    const wrong: string[] = [];
    for (const line of lines) {
      expect(line).toContain('--home ');
      const result = await shell('sh', ['-c', `tape() { node '${bin}' "$@"; }; ${line} < /dev/null`], {
        cwd: elsewhere,
        env: { PATH: process.env.PATH, HOME: dir.path, TAPE_HOME: own },
        timeout: 20_000,
      }).catch((error: { code: number; stderr: string }) => error);
      const { code = 0, stderr } = result as { code?: number; stderr: string };
      if (code !== 0 && !isExcused(line, code, stderr)) wrong.push(`${line}: ${code} ${stderr}`);
      if (/no such session|cannot find|unknown/i.test(stderr)) wrong.push(`${line}: ${stderr}`);
      // What one changed another may need.
      cpSync(kept, at, { recursive: true });
    }
    expect(wrong).toEqual([]);
    expect(other.contents()).toEqual(untouched);
  },
);

test.skipIf(isMissing)(
  'the command that restores a backup makes a home beside the damaged one, from any directory',
  { timeout: 300_000 },
  async () => {
    using dir = tempDir();
    const at = dir.file("it's a home");
    const home = homeIn({ path: at, file: (name) => join(at, name), [Symbol.dispose]: () => {} });
    await home.process(['init', at]);
    home.session('main', user('Ask'), assistant('Say.'));
    const backup = dir.file('kept.db');
    expect((await home.process(['backup', backup])).code).toBe(0);
    {
      using db = rawDb(home.db);
      db.dropTriggers();
      db.run(`UPDATE entry SET hash = zeroblob(32) WHERE kind = 'message' AND seq = 2`);
    }
    await using window = await shown(browser(), at);
    await window.goto('#/check');
    const command = window.page.locator('main .command code', { hasText: 'tape restore' }).first();
    await command.waitFor();
    const line = (await command.textContent()) ?? '';
    const elsewhere = dir.file('elsewhere');
    const own = join(elsewhere, '.tape');
    await home.process(['init', own]);
    const other = homeIn({ path: own, file: (name) => join(own, name), [Symbol.dispose]: () => {} });
    other.session('main', user('Other'), assistant('Other.'));
    const untouched = other.contents();
    // The one word that only its reader knows.
    const typed = line.replace('BACKUP', backup);
    const bin = join(root, 'packages/cli/bin/tape.js');
    const { stderr } = await promisify(execFile)('sh', ['-c', `tape() { node '${bin}' "$@"; }; ${typed}`], {
      cwd: elsewhere,
      env: { PATH: process.env.PATH, HOME: dir.path, TAPE_HOME: own },
    });
    expect(existsSync(join(`${at}-restored`, 'tape.db')), `${line}: ${stderr}`).toBe(true);
    expect(other.contents()).toEqual(untouched);
  },
);
