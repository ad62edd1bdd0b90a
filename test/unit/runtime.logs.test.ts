import { type LogFile, renderLogs } from '@tapedeck/runtime';
import { assistant, type SqliteTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { storeUnderTest } from '../support/deck.ts';
import { openStore } from '../support/store.ts';

function withChild(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Plan.'), assistant('Planned.'), user('Wrong.')]);
  store.history.rewind('main', 3);
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('child', [assistant('Done.')]);
  return store;
}

async function textOf(file: LogFile, from?: number): Promise<string> {
  const pieces = await Array.fromAsync(file.pieces(from === undefined ? {} : { from }));
  return pieces.map(({ text }) => text).join('');
}

test('the files of a tree, parents first, each with its folder and a first line of its own', async () => {
  const store = withChild();
  const { id = '' } = store.sessions.find('child') ?? {};
  const files = await Array.fromAsync(
    renderLogs(storeUnderTest(store), 'main', { tree: true, verbose: true }),
  );
  expect(files.map(({ path }) => path.join('/'))).toEqual([
    'context.md',
    'verbose.md',
    `child-${id}/context.md`,
    `child-${id}/verbose.md`,
  ]);
  expect(files[2]?.firstLine).toBe(`# Context of child (${id})`);
  for (const file of files) expect((await textOf(file)).startsWith(`${file.firstLine}\n`)).toBe(true);
});

test('the pieces from a position on end as the whole text does', async () => {
  const store = withChild();
  for await (const file of renderLogs(storeUnderTest(store), 'main', { tree: true, verbose: true })) {
    const whole = await textOf(file);
    const { base, head, floor } = file.session;
    const first = (file.path.length > 1 ? base : floor) + 1;
    for (let from = first; from <= head; from += 1)
      expect(whole.endsWith(await textOf(file, from))).toBe(true);
    expect(whole.length).toBeGreaterThan((await textOf(file, first)).length);
    expect(await textOf(file, head + 1)).toBe('');
  }
});

test('a session or an option that does not exist is an error', async () => {
  const store = withChild();
  const rendered = async (name: string, options: object) =>
    await Array.fromAsync(renderLogs(store, name, options));
  await expect(rendered('nowhere', {})).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
  await expect(rendered('main', { tre: true })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  await expect(rendered('main', { tree: 1 })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
});

test('of the tools that a model was sent, verbose.md has the names', async () => {
  const store = openStore();
  store.sessions.open('main');
  const tools = [{ name: 'look', description: 'Look it up', schema: { type: 'object' } }, { name: 'write' }];
  store.entries.append('main', [user('Plan.'), { ...assistant('Planned.'), meta: { tools, note: 'mine' } }]);
  const [, verbose] = await Array.fromAsync(renderLogs(storeUnderTest(store), 'main', { verbose: true }));
  const text = verbose === undefined ? '' : await textOf(verbose);
  expect(text).toContain('* tools: `look`, `write`\n* meta: `{"note":"mine"}`');
  expect(text).not.toContain('Look it up');
});
