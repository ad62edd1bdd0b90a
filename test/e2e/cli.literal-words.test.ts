import { writeFileSync } from 'node:fs';
import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { entryLines } from '../support/scripted.ts';
import { tempHome } from '../support/temp-home.ts';

/** Verbs that take arguments, each with a word that begins with a dash and names no session, entry or file. */
const lines = [
  'log -- --x',
  'show -- --x',
  'view -- --x',
  'children -- --x',
  'lineage -- --x',
  'diff -- --x --y',
  'trace -- --x',
  'usage -- --x',
  'status -- --x',
  'anchor -- --x here',
  'handoff --summary s -- --x here',
  'fork -- --x',
  'branch -- --x',
  'merge -- --x',
  'discard -- --x',
  'rewind -- --x',
  'undo -- --x',
  'compact -- --x',
  'abort -- --x',
  'wait -- --x',
  'approve -- --x --y',
  'alias -- --x --y',
  'unalias -- --x',
  'archive -- --x',
  'check -- --x',
  'verify -- --x',
  'audit -- --x',
  'recover -- --x',
  'delegate --task t -- --x',
  'send -- --x --y',
  'restore -- --x',
  'import -- --x',
];

test.each(lines)('tape %s has an argument that begins with a dash', async (line) => {
  using home = tempHome();
  home.session('main', user('Hello.'));
  const before = home.contents();
  const result = await home.here(['--json', ...line.split(' ')]);
  expect(result.code, result.stderr).not.toBe(0);
  expect(jsonError(result).message).toContain('--x');
  expect(jsonError(result).message).not.toMatch(/argument|option/i);
  expect(home.contents()).toEqual(before);
});

test('texts that begin with a dash are texts after --', async () => {
  using home = tempHome();
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'It is.' }, { text: 'See.' }]));
  home.session('main', assistant('The option --force is dangerous.'));
  const model = ['--model', `script:${home.file('answers.json')}`];
  expect((await home.here(['run', 'main', ...model, '--', '-v is broken'])).code).toBe(0);
  expect((await home.here(['send', 'main', '--', '--help'])).code).toBe(0);
  expect((await home.here(['anchor', '--', 'main', 'here'])).code).toBe(0);
  using store = home.open();
  expect(entryLines(store.entries.read('main')).slice(2)).toEqual([
    'user: -v is broken',
    'assistant: It is.',
    'user: --help',
    'assistant: See.',
    'anchor here',
  ]);
  const hits = json<{ hits: { seq: number }[] }>(await home.here(['search', '--json', '--', '--force']));
  expect(JSON.stringify(hits)).toContain('dangerous');
});

test('-- is itself a text, and what follows it is no option', async () => {
  using home = tempHome();
  home.session('main', user('a -- b'), user('--quietly'));
  expect((await home.here(['search', '--quiet', '--', '--'])).stdout).toBe('main@3\nmain@2\n');
  expect((await home.here(['search', '--', '--quietly'])).stdout).toMatch(/^main@3 /);
});
