import { writeFileSync } from 'node:fs';
import { SourceTable } from '@tapedeck/runtime/import';
import { expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

/** Records without an id, of which some say the same. */
const mode = (name: string) => ({ type: 'mode', mode: name, sessionId: 's-1' });
const records = [
  mode('plan'),
  { type: 'queue-operation', operation: 'enqueue', sessionId: 's-1' },
  person({ uuid: 'u1' }, 'Read it'),
  mode('normal'),
  model({ uuid: 'a1', parent: 'u1' }, [says('Read.')]),
  mode('normal'),
  { type: 'tag', tag: 'one', sessionId: 's-1' },
];

test.each([
  ['lacks its first line', records.slice(1), 0],
  ['lacks a line in the middle', records.toSpliced(3, 1), 0],
  ['has a line more at its beginning', [mode('normal'), ...records], 1],
  [
    'has another one in the place of a line, and those behind it later',
    [mode('edit'), ...records.slice(1)],
    1,
  ],
  ['lacks a line, and has a new one at its end', [...records.slice(1), mode('edit')], 1],
  ['lacks a line, and says another one once more', [...records.slice(1), mode('normal')], 1],
])('a transcript that was written anew and %s adds what is new alone', async (_, rewritten, added) => {
  using dir = tempDir();
  const [path, table] = [dir.file('s-1.jsonl'), SourceTable.open(dir.file('sources.jsonl'))];
  const store = openStore();
  writeFileSync(path, jsonl(records));
  await importFiles(store, [path], { table });
  const beside = () => [...store.entries.read('s-1', { kind: 'x-claude-code' })].length;
  const before = beside();
  for (const more of [added, 0]) {
    writeFileSync(path, jsonl(rewritten));
    const { done } = await importFiles(store, [path], { table });
    const sessions = done.flatMap(({ brought }) => brought?.sessions ?? []);
    expect(sessions.reduce((sum, one) => sum + one.added, 0)).toBe(more);
  }
  expect(beside()).toBe(before + added);
  expect([...store.verify()]).toEqual([]);
});
