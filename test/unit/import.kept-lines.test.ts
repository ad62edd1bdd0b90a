import { writeFileSync } from 'node:fs';
import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { KeptLines, openFile } from '@tapedeck/runtime/internal';
import { view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { transcriptLines } from '../bench/transcripts.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const records = [
  person({ uuid: 'u1' }, 'plan it'),
  model({ uuid: 'a1', parent: 'u1', id: 'm' }, [says('I read'), calls('t1')], {
    usage: { output_tokens: 3 },
  }),
  model({ uuid: 'a2', parent: 'a1', id: 'm' }, [calls('t2'), calls('t1')], { usage: { output_tokens: 9 } }),
  person({ uuid: 'r2', parent: 'a2' }, [returns('t2', 'two'), { type: 'unknown' }]),
  person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'one')]),
  {
    type: 'attachment',
    uuid: 'q1',
    parentUuid: 'r2',
    attachment: { type: 'queued_command', prompt: 'and this' },
  },
  model({ uuid: 'a3', parent: 'q1', id: 'n' }, [says('done')]),
  person({ uuid: 'u2', parent: 'a1' }, 'another way'),
  { type: 'system', subtype: 'compact_boundary', uuid: 'b1', parentUuid: null, logicalParentUuid: 'a3' },
  person({ uuid: 's1', parent: 'b1' }, 'It was read.', { isCompactSummary: true }),
  model({ uuid: 'a4', parent: 's1', id: 'o' }, [calls('t3')]),
];

test.each([
  ['records of each kind', jsonl(records).replace('}\n{', '}{')],
  ['a generated transcript', `${[...transcriptLines({ bytes: 40_000 })].join('\n')}\n`],
])('lines that are read again give the plan and the session of those in memory: %s', (_, content) => {
  using dir = tempDir();
  writeFileSync(dir.file('t.jsonl'), content);
  const file = openFile(dir.file('t.jsonl'));
  const there = parseJsonLines([Buffer.from(content)]).records;
  const away = new KeptLines(file, { bytes: 0 }).keep(there);
  expect(away.every(({ isAway }) => isAway)).toBe(true);
  const [one, other] = [there, away].map((lines) => planClaudeCode({ name: 's-1', lines }));
  const store = openStore();
  const again = openStore();
  if (one === undefined || other === undefined) throw new TypeError('two plans');
  expect(reconcile(again, other)).toEqual(reconcile(store, one));
  for (const { name } of one.conversations) {
    const shown = (of: typeof store) =>
      [...of.entries.read(name)].map(({ key, meta, payload }) => ({ key, meta, payload }));
    expect(shown(again)).toEqual(shown(store));
    expect(view(again.views.entries(name)).messages).toEqual(view(store.views.entries(name)).messages);
  }
  expect(reconcile(again, one).filter(({ added }) => added > 0)).toEqual([]);
  file.close();
});

test('a line that is not there any more as it was is no record', () => {
  using dir = tempDir();
  writeFileSync(dir.file('t.jsonl'), jsonl(records));
  const file = openFile(dir.file('t.jsonl'));
  const [first] = new KeptLines(file, { bytes: 0 }).keep(
    parseJsonLines([Buffer.from(jsonl(records))]).records,
  );
  writeFileSync(dir.file('t.jsonl'), 'something else');
  expect(() => first?.value).toThrow(expect.objectContaining({ code: 'IMPORT_SOURCE_CHANGED' }));
  file.close();
});
