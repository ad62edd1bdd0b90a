import { readFileSync, writeFileSync } from 'node:fs';
import { contract } from '@tapedeck/cli/contract';
import { anchor, assistant, compaction, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

/** A session `main`: two turns, with the anchor `plan` at 4. */
function withMain(): TempHome {
  const home = tempHome();
  home.session('main', user('one'), assistant('1'), anchor('plan'), user('two'), assistant('2'));
  return home;
}

test.each([
  { earlier: ['--fresh'], now: ['--inherit', 'nothing'], range: null },
  { earlier: ['--from', 'plan'], now: ['--since', 'plan'], range: [5, 6] },
])('fork and delegate: $earlier is $now', async ({ earlier, now, range }) => {
  using home = withMain();
  writeFileSync(home.file('answers.json'), '[{ "text": "Done." }]');
  const model = ['--model', `script:${home.file('answers.json')}`];
  for (const args of [earlier, now]) {
    const forked = await home.here(['fork', 'main', ...args, '--json']);
    expect(json(forked)).toMatchObject({ range });
    const preview = ['delegate', 'main', '--task', 'x', ...model, '--dry-run', '--json'];
    const delegated = await home.here([...preview, ...args]);
    expect(json(delegated)).toMatchObject({ children: [{ range }] });
  }
  // One request: the same key gives the same child.
  const keyed = await home.here(['fork', 'main', '--key', 'k', ...earlier, '--quiet']);
  expect(await home.here(['fork', 'main', '--key', 'k', ...now, '--quiet'])).toEqual(keyed);
});

test('fork: --next-steps is --task', async () => {
  using home = withMain();
  const child = ['fork', 'main', '--key', 'k', '--quiet'];
  const earlier = await home.here([...child, '--next-steps', 'Count them.']);
  expect(await home.here([...child, '--task', 'Count them.'])).toEqual(earlier);
  expect((await home.here(['view', earlier.stdout.trim()])).stdout).toContain('Your task: Count them.');
});

test('unrewind undoes the newest rewind, and compact --undo the newest summary', async () => {
  using home = withMain();
  await home.here(['rewind', 'main@5']);
  using store = home.open();
  store.entries.append('main', [compaction({ summary: 'One.', range: [1, 3] })]);
  expect(json(await home.here(['compact', 'main', '--undo', '--json']))).toEqual({
    session: 'main',
    seq: 9,
    to: 7,
    hidden: 1,
    shown: 0,
    forks: [],
    undone: 8,
    act: 'compaction',
  });
  expect(jsonError(await home.here(['compact', 'main', '--undo', '--json']))).toMatchObject({
    code: 'SESSION_CANNOT_UNDO',
    message: "cannot undo 'main': its view has no summary and no pruned outputs",
  });
  expect(json(await home.here(['unrewind', 'main', '--json']))).toMatchObject({ undone: 9, act: 'rewind' });
  expect(json(await home.here(['unrewind', 'main@7', '--json']))).toMatchObject({ undone: 7, to: 6 });
  store.sessions.open('new');
  expect(jsonError(await home.here(['unrewind', 'new', '--json']))).toMatchObject({
    code: 'SESSION_CANNOT_UNDO',
    message: "cannot undo 'new': it has no rewind",
  });
});

test('no help text and no page names an earlier name', async () => {
  using home = tempHome();
  const texts = [
    (await home.here(['--help'])).stdout,
    readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8'),
  ];
  for (const verb of Object.keys(contract)) texts.push((await home.here([verb, '--help'])).stdout);
  const earlier =
    /--fresh|--next-steps|unrewind|--context\b(?!-)|--window\b|tape (?:fork|delegate) .*--from\b|compact .*--undo/;
  expect(texts.flatMap((text) => text.split('\n').filter((line) => earlier.test(line)))).toEqual([]);
  for (const verb of ['fork', 'delegate'])
    expect((await home.here([verb, '--help'])).stdout).not.toContain('--from');
  expect((await home.here(['compact', '--help'])).stdout).not.toContain('--undo');
  expect((await home.here(['unrewin', 'main'])).stderr).toContain('did you mean undo?');
  // Its help is that of the verb.
  expect((await home.here(['unrewind', '--help'])).stdout).toBe((await home.here(['undo', '--help'])).stdout);
});

test.each(['fork', 'delegate'])('%s: --context and --window are gone', async (verb) => {
  using home = withMain();
  for (const option of [
    ['--context', '1'],
    ['--window', '1'],
  ]) {
    const refused = await home.here([verb, 'main', ...(verb === 'fork' ? [] : ['--task', 'x']), ...option]);
    expect(refused.code).toBe(2);
  }
});
