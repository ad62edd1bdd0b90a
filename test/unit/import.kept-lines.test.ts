import { readdirSync, writeFileSync } from 'node:fs';
import {
  type JsonLine,
  parseJsonLines,
  planClaudeCode,
  type RecordList,
  reconcile,
} from '@tapedeck/runtime/import';
import { KeptLines, openFile, Spool } from '@tapedeck/runtime/internal';
import { view } from '@tapedeck/tape';
import { expect, test, vi } from 'vitest';
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

/** Lines of an open file of which at most some bytes stay in memory. */
function kept(file: ReturnType<typeof openFile>, records: readonly JsonLine[], bytes = 0) {
  const lines = new KeptLines({ ...file, size: file.facts.size }, { bytes });
  for (const record of records) lines.push(record);
  return lines;
}

test.each([
  ['records of each kind', jsonl(records).replace('}\n{', '}{')],
  ['a generated transcript', `${[...transcriptLines({ bytes: 40_000 })].join('\n')}\n`],
])('lines that are read again give the plan and the session of those in memory: %s', (_, content) => {
  using dir = tempDir();
  writeFileSync(dir.file('t.jsonl'), content);
  const file = openFile(dir.file('t.jsonl'));
  const there = parseJsonLines([Buffer.from(content)]).records;
  const away = kept(file, there);
  expect(away.values().every(({ isAway }) => isAway)).toBe(true);
  expect(away.length).toBe(there.length);
  const ends = (lines: RecordList) => [0, -1, lines.length, -1 - lines.length].map((i) => lines.at(i)?.value);
  expect(ends(away)).toEqual(ends(there));
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

test('a plan takes the content of a result, and of what is beside the conversation, only while it reads all lines', () => {
  using dir = tempDir();
  const content = `${[...transcriptLines({ bytes: 40_000 })].join('\n')}\n`;
  writeFileSync(dir.file('t.jsonl'), content);
  const file = openFile(dir.file('t.jsonl'));
  const there = parseJsonLines([Buffer.from(content)]).records;
  const away = kept(file, there);
  const taken: number[] = [];
  const read = away.read.bind(away);
  vi.spyOn(away, 'read').mockImplementation((place) => {
    taken.push(place.line);
    return read(place);
  });
  for (const record of away) expect(record.value).toBeDefined();
  expect(taken).toEqual(there.map(({ line }) => line));
  taken.length = 0;
  planClaudeCode({ name: 's-1', lines: away });
  const again = there.filter(({ line }) => taken.lastIndexOf(line) > taken.lastIndexOf(there.length));
  const isPrompt = ({ value }: JsonLine) => !JSON.stringify(value.message).includes('tool_use_id');
  const spoken = there.filter(
    (one) => one.value.type === 'assistant' || (one.value.type === 'user' && isPrompt(one)),
  );
  expect(spoken.length).toBeLessThan(there.length);
  expect(again.map(({ line }) => line)).toEqual(spoken.map(({ line }) => line));
  file.close();
});

test('lines that are read again one after another take few reads of the file, and in any other order they are the same', () => {
  using dir = tempDir();
  const content = `${[...transcriptLines({ bytes: 200_000 })].join('\n')}\n`;
  writeFileSync(dir.file('t.jsonl'), content);
  const file = openFile(dir.file('t.jsonl'));
  const there = parseJsonLines([Buffer.from(content)]).records;
  const readInto = vi.spyOn(file, 'readInto');
  const valuesOf = (lines: Iterable<JsonLine>) => [...lines].map(({ value }) => value);
  expect(valuesOf(kept(file, there))).toEqual(valuesOf(there));
  expect(readInto.mock.calls.length).toBeLessThan(there.length / 5);
  const backwards = [...kept(file, there)].toReversed();
  expect(valuesOf(backwards)).toEqual(valuesOf([...there].toReversed()));
  file.close();
});

test('what a prompt that was typed anew leaves is compared with several sessions, and read about twice for that', () => {
  using dir = tempDir();
  const turn = (n: number, parent: string | undefined) => [
    person({ uuid: `u${n}`, ...(parent !== undefined && { parent }) }, `prompt ${n}`),
    model({ uuid: `a${n}`, parent: `u${n}`, id: `m${n}` }, [says(`answer ${n}`)]),
  ];
  const before = Array.from({ length: 60 }, (_, n) => turn(n, n === 0 ? undefined : `a${n - 1}`)).flat();
  const content = jsonl([...before, ...turn(60, 'a30')]);
  writeFileSync(dir.file('t.jsonl'), content);
  const file = openFile(dir.file('t.jsonl'));
  const lines = kept(file, parseJsonLines([Buffer.from(content)]).records);
  const store = openStore();
  reconcile(
    store,
    planClaudeCode({ name: 's-1', lines: parseJsonLines([Buffer.from(jsonl(before))]).records }),
  );
  const plan = planClaudeCode({ name: 's-1', lines });
  const read = vi.spyOn(lines, 'read');
  const done = reconcile(store, plan);
  expect(done.map(({ created, rewound }) => [created, rewound])).toEqual([
    [false, true],
    [true, false],
  ]);
  // The fields of a record are taken one after another.
  const taken = read.mock.calls.filter(([{ line }], i, all) => line !== all[i - 1]?.[0].line);
  expect(taken.length / before.length).toBeLessThan(2.5);
  file.close();
});

test('a line that is not there any more as it was is no record', () => {
  using dir = tempDir();
  writeFileSync(dir.file('t.jsonl'), jsonl(records));
  const file = openFile(dir.file('t.jsonl'));
  const [first] = kept(file, parseJsonLines([Buffer.from(jsonl(records))]).records);
  writeFileSync(dir.file('t.jsonl'), 'something else');
  expect(() => first?.value).toThrow(expect.objectContaining({ code: 'IMPORT_SOURCE_CHANGED' }));
  file.close();
});

test('of records with more values than text, fewer stay in memory', () => {
  using dir = tempDir();
  const full = Array.from({ length: 10 }, () => ({ data: Array.from({ length: 1_000 }, () => ({})) }));
  writeFileSync(dir.file('t.jsonl'), jsonl(full));
  const file = openFile(dir.file('t.jsonl'));
  const there = parseJsonLines([Buffer.from(jsonl(full))]).records;
  const bytes = there.reduce((sum, line) => sum + line.bytes, 0);
  const lines = kept(file, there, 3 * bytes);
  const away = [...lines].filter(({ isAway }) => isAway);
  expect(away.length).toBeGreaterThan(5);
  expect(away.map(({ value }) => value)).toEqual(full.slice(-away.length));
  file.close();
});

test('of content that gets too large while it is read, what stayed in memory is read again', () => {
  const text = Buffer.from(jsonl(records));
  const there = parseJsonLines([text]).records;
  const spool = new Spool('t.jsonl.zst');
  spool.write(text);
  const lines = new KeptLines(spool);
  for (const record of there.values().take(5)) lines.push(record);
  expect([...lines].map(({ isAway }) => isAway === true)).toEqual(Array(5).fill(false));
  for (let mb = 0; mb < 65; mb += 1) spool.write(Buffer.alloc(1024 * 1024));
  for (const record of there.values().drop(5)) lines.push(record);
  expect([...lines].map(({ isAway }) => isAway)).toEqual(Array(there.length).fill(true));
  expect([...lines].map(({ value }) => value)).toEqual([...there].map(({ value }) => value));
  spool.close();
});

test('the content of a compressed file has no name on the disk, and needs no TMPDIR that is there', () => {
  using dir = tempDir();
  vi.stubEnv('TMPDIR', dir.path);
  const spool = new Spool('t.jsonl.zst');
  spool.write(Buffer.from('one, '));
  spool.write(Buffer.from('two'));
  expect(readdirSync(dir.path)).toEqual([]);
  const place = Buffer.alloc(10);
  expect([spool.size, spool.readInto(place.subarray(0, 3), 3), spool.readInto(place, 100)]).toEqual([
    8, 3, 0,
  ]);
  expect(String(place.subarray(0, 3))).toBe(', t');
  spool.close();
  vi.stubEnv('TMPDIR', dir.file('none'));
  const other = new Spool('t.jsonl.zst');
  other.write(Buffer.from('one'));
  expect(other.readInto(place, 0)).toBe(3);
  other.close();
  vi.unstubAllEnvs();
});
