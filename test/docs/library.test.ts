import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionEvent } from '@tapedeck/runtime';
import { expect, test } from 'vitest';
import { moduleDir } from './module-dir.ts';
import { allCodeBlocks, codeBlocks, howToUpdate, page, root, tableAfter, updating } from './pages.ts';
import { plainEnv } from './tape.ts';
import { typeErrorsOf } from './types.ts';

const path = 'docs/library.md';
const text = page(path);

/** Each block of TypeScript, and the block after it that says what it prints; without one it prints nothing. */
const shown = allCodeBlocks(text).flatMap(({ language, code }, i, all) => {
  if (language !== 'ts') return [];
  const next = all[i + 1];
  return [{ code, says: next?.language === 'text' ? next.code : '' }];
});

/** Printed between two blocks. */
const end = '--- end of block ---\n';

const done = ({ status, stdout, stderr }: SpawnSyncReturns<string>) => ({ status, stdout, stderr });

test('the blocks form one program that type-checks and prints what the page says', () => {
  using dir = moduleDir();
  const run = (...argv: readonly string[]) =>
    done(spawnSync(process.execPath, argv, { cwd: dir.path, env: plainEnv(dir.path), encoding: 'utf8' }));
  writeFileSync(
    dir.file('library.mts'),
    shown.map(({ code }) => `${code}process.stdout.write(${JSON.stringify(end)});\n`).join(''),
  );
  writeFileSync(dir.file('answers.json'), codeBlocks(text, 'json').at(-1) ?? '');
  expect(typeErrorsOf(dir.path, ['library.mts'])).toBe('');
  const { stdout, ...ended } = run('library.mjs');
  expect(ended).toEqual({ status: 0, stderr: '' });
  const said = stdout.split(end).slice(0, -1);
  if (updating) writeFileSync(join(root, path), withOutput(said));
  else expect(said, howToUpdate).toEqual(shown.map(({ says }) => says));
});

/** The page with what its blocks have printed, where a block says what they print. */
function withOutput(said: readonly string[]): string {
  const fence = '```';
  return shown.reduce(
    (page, { code, says }, i) =>
      page.replace(
        `${code}${fence}\n\n${fence}text\n${says}${fence}`,
        () => `${code}${fence}\n\n${fence}text\n${said[i]}${fence}`,
      ),
    text,
  );
}

/** Every type of event; one that is missing here does not compile. */
const eventTypes: Readonly<Record<SessionEvent['type'], true>> = {
  'run-started': true,
  'inbox-waiting': true,
  steered: true,
  superseded: true,
  'content-chunk': true,
  'reasoning-started': true,
  'reasoning-chunk': true,
  'reasoning-ended': true,
  'tool-detected': true,
  'tool-batch-started': true,
  'tool-started': true,
  'tool-completed': true,
  'tool-batch-halted': true,
  'tool-batch-completed': true,
  'tool-waiting': true,
  retrying: true,
  compacted: true,
  pruned: true,
  'iteration-completed': true,
  'child-progress': true,
  'child-event': true,
  'session-completed': true,
  'session-cancelled': true,
  'history-diverged': true,
  warning: true,
  'status-changed': true,
  lagged: true,
};

test('the table of events lists every type, and no other', () => {
  const told = tableAfter(text, 'The order of events').flatMap(([types = '']) => types.split(', '));
  expect(told.toSorted()).toEqual(Object.keys(eventTypes).toSorted());
});
