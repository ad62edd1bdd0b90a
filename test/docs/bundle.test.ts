import { openTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { sha256 } from '../support/format-hash.ts';
import { codeBlocks, page } from './pages.ts';

const [example = ''] = codeBlocks(page('docs/bundle.md'), 'jsonl');

test('the store writes the worked example, and takes it in', async () => {
  let [ids, salts] = [0, 0];
  using store = openTapeStore(':memory:', {
    now: () => 1795255200000,
    newId: () => `01JD${String(++ids).padStart(22, '0')}`,
    salt: () => new Uint8Array(16).fill(++salts),
    secrets: [],
  });
  store.sessions.open('main');
  store.entries.append('main', [user('Hello.')], { key: 'hello' });
  store.lineage.fork('main', { name: 'child' });
  store.entries.append('main', [user('Later.')]);
  expect(bundleOf(store, 'child')).toBe(example);

  using other = openTapeStore(':memory:', { secrets: [] });
  expect(await adopt(other, example)).toMatchObject({ session: 'child', entries: 4, absent: 1 });
  expect(bundleOf(other, 'child').split('\n').slice(5)).toEqual(example.split('\n').slice(5));
});

test('the end of the worked example counts and digests what is before it', () => {
  const lines = example.trimEnd().split('\n');
  const { end } = JSON.parse(lines.at(-1) ?? '{}') as { end: { lines: number; sha256: string } };
  const before = `${lines.slice(0, -1).join('\n')}\n`;
  expect(end).toMatchObject({ lines: lines.length - 1, sha256: sha256(before) });
});
