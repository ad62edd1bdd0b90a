import { appendFileSync, mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import {
  claudeCode,
  readTranscript,
  SourceTable,
  type TranscriptTool,
  transcriptTools,
} from '@tapedeck/runtime/import';
import { type JsonObject, TapeError, type TapeErrorCode } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { type FilesImported, type ImportingFiles, importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const hello = person({ uuid: 'u1' }, 'Hello');
const answer = model({ uuid: 'a1', parent: 'u1' }, [says('Hi')]);
const bye = person({ uuid: 'u2', parent: 'a1' }, 'Bye');
const line = (record: object) => `${JSON.stringify(record)}\n`;

/** Imports one file, and checks that what it left verifies, and that it brings nothing again. */
async function imported(content: string | Uint8Array, how: ImportingFiles & { readonly name?: string } = {}) {
  using dir = tempDir();
  using store = openStore();
  const file = dir.file(how.name ?? 's-1.jsonl');
  writeFileSync(file, content);
  const all = await importFiles(store, [dir.path], how);
  expect([...store.verify()]).toEqual([]);
  const again = await importFiles(store, [dir.path], how);
  expect(
    again.done.flatMap(({ brought }) => brought?.sessions.filter(({ added }) => added > 0) ?? []),
  ).toEqual([]);
  const shown = all.names.map((name) => [...store.entries.read(name, { kind: 'message' })].length);
  return { ...all, shown };
}

/** What an import says of its only file. */
const countsOf = ({ done }: Pick<FilesImported, 'done'>) => done[0]?.brought?.counts;
const badOf = ({ done }: Pick<FilesImported, 'done'>) => done[0]?.brought?.bad;

test.each([
  [
    'cut off in a record',
    jsonl([hello, answer]) + line(bye).slice(0, 30),
    { truncated: 1, skipped: 0, messages: 2 },
    [{ line: 3, offset: jsonl([hello, answer]).length, why: 'the line ends inside a record' }],
  ],
  [
    'with a bad line',
    `${jsonl([hello])}{"a" 1}\n${jsonl([answer])}`,
    { skipped: 1 },
    [{ line: 2, why: "not JSON: expected ':' after property name" }],
  ],
  [
    'with a line that is some text',
    `${jsonl([hello])}root:x:0:0\n${jsonl([answer])}`,
    { skipped: 1 },
    [{ line: 2, why: 'not JSON' }],
  ],
  [
    'with a line that reads as a reason of the parser',
    `${jsonl([hello])}secret in JSON at position 1\n${jsonl([answer])}`,
    { skipped: 1 },
    [{ line: 2, why: 'not JSON' }],
  ],
  [
    'with a line that is a list',
    `${jsonl([hello])}[1]\n${jsonl([answer])}`,
    { skipped: 1 },
    [{ line: 2, why: 'it is JSON, but no object' }],
  ],
  [
    'with NUL bytes',
    `${jsonl([hello])}\0\0\0\n${jsonl([answer])}`,
    { skipped: 1 },
    [{ line: 2, why: '3 NUL bytes' }],
  ],
  [
    'with NUL bytes around a record',
    `${jsonl([hello])}\0${JSON.stringify(answer)}\0\n${jsonl([bye])}`,
    { skipped: 1, messages: 3 },
    [{ line: 2, why: '2 NUL bytes' }],
  ],
  [
    'with a NUL byte in a record',
    `${jsonl([hello])}{"type":"\0"}\n${jsonl([answer])}`,
    { skipped: 1 },
    [{ line: 2, offset: line(hello).length + 9, why: 'a NUL byte in a record' }],
  ],
  [
    'with bytes that are no UTF-8',
    Buffer.concat([
      Buffer.from(jsonl([hello, answer])),
      Buffer.from([0x7b, 0xff, 0x7d, 0x0a]),
      Buffer.from(jsonl([bye])),
    ]),
    { skipped: 1, messages: 3 },
    [{ line: 3, why: 'not UTF-8' }],
  ],
  [
    'nested 200,000 levels deep',
    `${jsonl([hello])}{"type":"user","deep":${'['.repeat(200_000)}${']'.repeat(200_000)}}\n${jsonl([answer])}`,
    { skipped: 1, messages: 2 },
    [{ line: 2, why: 'nested over 64 levels' }],
  ],
])(
  'a file %s costs what is bad in it, which is counted and has its place and the reason',
  async (_, content, counts, bad) => {
    const all = await imported(content);
    expect(countsOf(all)).toMatchObject(counts);
    expect(badOf(all)).toMatchObject(bad);
    expect(all.names).toEqual(['s-1']);
  },
);

test.each([
  ['a Codex rollout', { type: 'response_item', payload: { type: 'message' } }],
  ['a pi session', { type: 'message', id: 'p1', parentId: null, message: { role: 'user', content: 'Hi' } }],
  ['a Gemini CLI session', { sessionId: 'g1', projectHash: 'h', startTime: 't' }],
  ['a session.jsonl', { recordType: 'message', schemaVersion: 1, role: 'user', content: [] }],
])(
  'a record of %s is kept, counted and named with its place; --strict refuses it there',
  async (what, record) => {
    const content = jsonl([hello, record, answer]);
    const all = await imported(content);
    const offset = line(hello).length;
    const irregular = [{ line: 2, offset, why: `a record of ${what}, kept beside the conversation` }];
    expect(countsOf(all)).toMatchObject({ messages: 2, offPath: 1, skipped: 0, irregular: 1 });
    expect(all.done[0]?.brought?.irregular).toEqual(irregular);
    const how = { format: 'claude-code', chunks: [Buffer.from(content)], forms: transcriptTools } as const;
    expect(readTranscript('s-1.jsonl', how).irregular).toEqual(irregular);
    const code = 'IMPORT_UNKNOWN_FORMAT';
    const data = { line: 2, offset, strict: true };
    const refused = (await imported(content, { strict: true })).done[0]?.error;
    expect(refused).toMatchObject({ code, data });
    // It is kept nowhere.
    expect(refused?.message).toMatch(new RegExp(`: a record of ${what}$`));
    expect(() => readTranscript('s-1.jsonl', { ...how, strict: true })).toThrow(
      expect.objectContaining({ code, data: expect.objectContaining(data) }),
    );
  },
);

test('records glued together are taken, counted and named with their place; --strict refuses them', async () => {
  const content = jsonl([hello]) + JSON.stringify(answer) + jsonl([bye]);
  const all = await imported(content);
  const why = 'several records without a newline between them, each of which was taken';
  expect(countsOf(all)).toMatchObject({ glued: 1, skipped: 0, messages: 3 });
  expect(all.done[0]?.brought).toMatchObject({
    bad: [],
    irregular: [{ line: 2, offset: line(hello).length, why }],
  });
  const { done } = await imported(content, { strict: true });
  const refused = {
    data: { line: 2 },
    message: expect.stringMatching(/: several records without a newline between them$/),
  };
  expect(done[0]?.error).toMatchObject(refused);
});

test.each([
  ['name their parents before these come', null, 1],
  ['are a circle', 'u0', 2],
])('records that %s are one branch beside the last of them', async (_, parent, count) => {
  const records = Array.from({ length: 2_000 }, (__, i) =>
    person({ uuid: `u${i}`, parent: i === 1_999 ? parent : `u${i + 1}` }, `${i}`),
  );
  const { names, shown } = await imported(jsonl(records));
  expect([names, shown]).toEqual([
    ['s-1', 's-1-branch-u1998'],
    [count, 2_000],
  ]);
});

const called = model({ uuid: 'a1', parent: 'u1' }, [calls('t1')]);
const returned = person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'one')]);

test.each([
  [
    'an id that was used before',
    [hello, answer, { ...bye, uuid: 'a1' }, bye],
    [[3, 'its id was used before, kept beside the conversation']],
  ],
  [
    'the id of a copy that was used before',
    [hello, answer, { ...bye, forkedFrom: { messageUuid: 'a1' } }],
    [[3, 'its id was used before, taken as another record']],
  ],
  [
    'itself as its parent',
    [{ ...hello, parentUuid: 'u1' }, answer, { ...bye, parentUuid: 'u2' }],
    [
      [1, 'it is its own parent, taken as a beginning'],
      [3, 'it is its own parent, taken as if it followed the record before it'],
    ],
  ],
  [
    'parents in a circle',
    [
      { ...hello, parentUuid: 'a1' },
      answer,
      { ...bye, parentUuid: 'u3' },
      person({ uuid: 'u3', parent: 'u2' }, 'So'),
    ],
    [
      [1, 'its parents lead back to it in a circle, taken as a beginning'],
      [3, 'its parents lead back to it in a circle, taken as if it followed the record before it'],
    ],
  ],
  [
    'a call whose id was used before',
    [hello, called, returned, model({ uuid: 'a2', parent: 'r1' }, [says('Again'), calls('t1')])],
    [[4, 'the id of a call was used before, and the call is kept beside the conversation']],
  ],
])(
  'a record with %s is taken, counted and named with its place; --strict refuses it there',
  async (_, records, expected) => {
    const content = jsonl(records);
    const offsetOf = (at: number) => jsonl(records.slice(0, at - 1)).length;
    const irregular = expected.map(([at, why]) => ({ line: at, offset: offsetOf(Number(at)), why }));
    const all = await imported(content);
    expect(countsOf(all)).toMatchObject({ irregular: irregular.length, skipped: 0 });
    expect(all.done[0]?.brought?.irregular).toEqual(irregular);
    const how = { chunks: [Buffer.from(content)] };
    const { irregular: piped, counts } = readTranscript('s-1.jsonl', how);
    expect([piped, [...counts.values()][0]?.irregular]).toEqual([irregular, irregular.length]);
    const [{ line: at, offset }] = irregular as [(typeof irregular)[0]];
    const data = expect.objectContaining({ line: at, offset, strict: true });
    const refused = { code: 'IMPORT_UNKNOWN_FORMAT', data };
    expect((await imported(content, { strict: true })).done[0]?.error).toMatchObject(refused);
    expect(() => readTranscript('s-1.jsonl', { ...how, strict: true })).toThrow(
      expect.objectContaining(refused),
    );
  },
);

test('a copy that begins at a compaction, whose boundary names what was kept behind it, has no circle', async () => {
  const boundary = {
    ...{ type: 'system', subtype: 'compact_boundary', uuid: 'b1', parentUuid: null, sessionId: 's-1' },
    logicalParentUuid: 'a1',
    compactMetadata: { preservedMessages: { anchorUuid: 'b1-s', uuids: ['a1'], allUuids: ['a1'] } },
  };
  const summary = person({ uuid: 'b1-s', parent: 'b1' }, 'They said hello', { isCompactSummary: true });
  const kept = model({ uuid: 'a1', parent: 'b1-s' }, [says('Hi')]);
  const { done } = await imported(jsonl([boundary, summary, kept, bye]), { strict: true });
  expect(done.map(({ error, brought }) => [error, brought?.irregular])).toEqual([[undefined, []]]);
});

test('a copy in which /branch wrote records twice is as Claude Code writes it, and --strict refuses one with another content', async () => {
  const copyOf = (one: typeof hello) => ({ ...one, forkedFrom: { sessionId: 's-0', messageUuid: one.uuid } });
  const [first, second] = [copyOf(hello), copyOf(answer)];
  const copied = [first, second];
  const twice = [...copied, { ...first, parentUuid: 'a1' }, second, bye];
  const found = async (records: readonly object[]) => {
    const { done, shown } = await imported(jsonl(records), { strict: true });
    return [done.map(({ error, brought }) => error?.data.line ?? brought?.irregular), shown];
  };
  expect(await found(twice)).toEqual([[[]], [3]]);
  expect(await found([...copied, { ...first, parentUuid: 'a1' }, { ...second, version: '3' }, bye])).toEqual([
    [4],
    [],
  ]);
  expect(await found([...copied, hello, bye])).toEqual([[3], []]);
});

test('of many irregular records the first hundred are named, and all are counted, whatever is wrong with each', async () => {
  const repeats = Array.from({ length: 150 }, () => hello);
  const codex = { type: 'response_item', payload: { type: 'message' } };
  const all = await imported(jsonl([hello, ...repeats, codex]) + JSON.stringify(answer) + jsonl([bye]));
  expect(countsOf(all)).toMatchObject({ irregular: 152 });
  const { irregular = [] } = all.done[0]?.brought ?? {};
  expect(irregular.map((one) => one.line)).toEqual(Array.from({ length: 100 }, (_, i) => i + 2));
  expect(new Set(irregular.map(({ why }) => why))).toEqual(
    new Set(['its id was used before, kept beside the conversation']),
  );
});

test('--strict leaves out the file of a subagent that repeats an id, and takes the rest of its session', async () => {
  using dir = tempDir();
  using store = openStore();
  mkdirSync(dir.file('s-1/subagents'), { recursive: true });
  writeFileSync(dir.file('s-1.jsonl'), jsonl([hello, answer]));
  const said = person({ uuid: 'x1' }, 'Look', { isSidechain: true, agentId: 'x' });
  writeFileSync(dir.file('s-1/subagents/agent-x.jsonl'), jsonl([said, said]));
  const { done, names } = await importFiles(store, [dir.path], { strict: true });
  expect([done.map(({ error }) => error?.data.line), names]).toEqual([[undefined, 2], ['s-1']]);
  const lenient = await importFiles(store, [dir.path]);
  expect(lenient.names).toEqual(['s-1', 'agent-x']);
  expect(lenient.done.map(({ brought }) => brought?.irregular.map((one) => one.line))).toEqual([[], [2]]);
});

test('what is irregular in a large file that grows is named as in one that is read at once', async () => {
  using dir = tempDir();
  using store = openStore();
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const file = dir.file('s-1.jsonl');
  const turns = Array.from({ length: 300 }, (_, i) => [
    person({ uuid: `u${i}`, parent: i === 0 ? null : `a${i - 1}` }, 'x'.repeat(1000)),
    model({ uuid: `a${i}`, parent: `u${i}` }, [says(`${i}`)]),
  ]).flat();
  const records = [...turns.slice(0, 10), turns[4], ...turns.slice(10), turns[599], turns[8]];
  const found: unknown[] = [];
  for (const count of [599, 600, 601, 602, 603]) {
    writeFileSync(file, jsonl(records.slice(0, count)));
    const { done } = await importFiles(store, [file], { table });
    using other = openStore();
    const whole = await importFiles(other, [file]);
    const of = (one: FilesImported) => [one.done[0]?.brought?.counts, one.done[0]?.brought?.irregular];
    expect(of({ ...whole, done })).toEqual(of(whole));
    found.push(done[0]?.brought?.counts.irregular);
  }
  expect(found).toEqual([1, 1, 1, 2, 3]);
});

test('a figure of tokens that is no whole number counts as 0, and has its place', async () => {
  const usage = {
    input_tokens: -5,
    output_tokens: 7,
    cache_read_input_tokens: 0.5,
    cache_creation_input_tokens: null,
  };
  using dir = tempDir();
  using store = openStore();
  const bad = model({ uuid: 'a1', parent: 'u1' }, [says('Hi')], { usage });
  writeFileSync(dir.file('s-1.jsonl'), jsonl([hello, bad, bye]));
  const { done } = await importFiles(store, [dir.path]);
  expect(done[0]?.brought).toMatchObject({
    counts: { irregular: 1 },
    irregular: [{ line: 2, why: 'a figure of tokens is no whole number, and counts as 0' }],
  });
  expect(store.sessions.calls().map((one) => one.usage)).toMatchObject([
    { input: 0, output: 7, cacheRead: 0 },
  ]);
});

test.each([
  [
    'of other bytes',
    Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) % 251)),
    /^line 1, byte \d+: /,
  ],
  ['that is an array', '[{"type":"user"}]\n', /^line 1, byte 0: it is JSON, but no object$/],
  ['cut off in its compression', gzipSync(jsonl([hello, answer])).subarray(0, 40), /damaged or cut off/],
])('a file %s is listed with its reason, and leaves nothing', async (_, content, why) => {
  const { found, done, names } = await imported(content, { name: 's-1.jsonl' });
  expect([found.problems.length, found.problems[0]?.why, done, names]).toEqual([
    1,
    expect.stringMatching(why),
    [],
    [],
  ]);
});

test('an empty file is counted, and one of another program is named', async () => {
  for (const text of ['', '\n', ' \r\n\n']) {
    const { found } = await imported(text);
    expect(found).toMatchObject({ empty: 1, problems: [], files: [], strangers: [] });
  }
  expect((await imported('{"type":"session_meta"}\n')).found).toMatchObject({
    strangers: [{}],
    problems: [],
  });
});

/** A compaction that names the record before it and the one that it kept. */
function compactionThatKept(
  uuid: string,
  {
    after,
    kept,
    anchor = 'none',
  }: { readonly after: string; readonly kept: string; readonly anchor?: string },
): JsonObject {
  const preservedSegment = { headUuid: kept, tailUuid: kept, anchorUuid: anchor };
  return {
    ...{ type: 'system', subtype: 'compact_boundary', uuid, parentUuid: null, logicalParentUuid: after },
    ...{ sessionId: 's-1', compactMetadata: { trigger: 'manual', preTokens: 9, preservedSegment } },
  };
}

const summary = { ...person({ uuid: 's1', parent: 'b1' }, 'All of it'), isCompactSummary: true };

test.each([
  ['are their own parents', [{ ...hello, parentUuid: 'u1' }, answer, bye], 3],
  ['follow each other in a circle', [{ ...hello, parentUuid: 'u2' }, answer, bye], 3],
  [
    'stand before a compaction that they follow, and that kept them',
    [hello, { ...answer, parentUuid: 'b1' }, compactionThatKept('b1', { after: 'u1', kept: 'a1' })],
    1,
  ],
  [
    'follow what a compaction kept that follows them',
    [hello, answer, compactionThatKept('b1', { after: 'u2', kept: 'a1', anchor: 's1' }), summary, bye],
    3,
  ],
  ['have ids twice', [hello, answer, hello, { ...bye, uuid: 'a1' }, bye], 3],
  [
    'have ids that are paths',
    [
      { ...hello, uuid: '../../etc/passwd' },
      { ...answer, parentUuid: '../../etc/passwd' },
    ],
    2,
  ],
  [
    'have ids that mean something to JavaScript',
    [
      { ...hello, uuid: '__proto__' },
      { ...answer, uuid: 'constructor', parentUuid: '__proto__' },
    ],
    2,
  ],
  [
    'have ids that no key can have',
    [
      { ...hello, uuid: 'u'.repeat(5000) },
      model({ uuid: 'a\ud800', parent: 'u'.repeat(5000) }, [calls('c'.repeat(900)), calls('c\ud800')]),
      person({ uuid: 'r\0', parent: 'a\ud800' }, [
        returns('c\ud800', 'two'),
        returns('c'.repeat(900), 'one'),
      ]),
      { ...bye, uuid: 'a\ud801', parentUuid: 'r\0' },
      { ...bye, uuid: 'b'.repeat(900), parentUuid: 'r\0' },
      { ...hello, uuid: 's1', isSidechain: true, agentId: 'x\ud800'.repeat(900) },
    ],
    3,
  ],
  [
    'run backwards',
    [hello, { ...answer, timestamp: '1999-01-01T00:00:00Z' }, { ...bye, timestamp: 'yesterday' }],
    3,
  ],
])('records that %s make a session that verifies', async (_, records, messages) => {
  const { shown, done } = await imported(jsonl(records));
  expect([shown[0], done[0]?.error]).toEqual([messages, undefined]);
});

test('records with ids that look like those of an import are written once', async () => {
  using dir = tempDir();
  using store = openStore();
  const path = dir.file('s-1.jsonl');
  const records = [
    hello,
    model({ uuid: 'a1~again1', parent: 'u1' }, [calls('interrupted')]),
    person({ uuid: 'r1~again1', parent: 'a1~again1' }, [returns('interrupted', 'one')]),
  ];
  writeFileSync(path, jsonl(records));
  await importFiles(store, [path]);
  const before = store.sessions.list().map(({ session, head }) => [session, head]);
  await importFiles(store, [path]);
  expect(store.sessions.list().map(({ session, head }) => [session, head])).toEqual(before);
});

test('call ids that are reused keep each its result, and session ids that are paths are no paths', async () => {
  const twice = [
    hello,
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [calls('t1')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'one')]),
    model({ uuid: 'a2', parent: 'r1', id: 'm2' }, [calls('t1')]),
    person({ uuid: 'r2', parent: 'a2' }, [returns('t1', 'two')]),
  ].map((record) => ({ ...record, sessionId: '../../../tmp/x', agentId: undefined }));
  const { names, done } = await imported(jsonl(twice), { name: 'notes.jsonl' });
  expect([names, done[0]?.error]).toEqual([[expect.stringMatching(/^claude-code-[0-9a-f]{12}$/)], undefined]);
});

test('sessions whose ids differ by case alone are imported under names that do not, with their branches and subagents', async () => {
  using dir = tempDir();
  using store = openStore();
  for (const [name, agent] of [
    ['s-a', 'x'],
    ['S-A', 'X'],
  ] as const) {
    const records = [
      { ...hello, uuid: `${name}1` },
      { ...answer, uuid: `${name}2`, parentUuid: `${name}1` },
      { ...bye, uuid: `${name}3`, parentUuid: `${name}2` },
      { ...answer, uuid: `${name}4`, parentUuid: `${name}1` },
      { ...bye, uuid: `${name}5`, parentUuid: `${name}4` },
    ].map((record) => ({ ...record, sessionId: name }));
    // In a folder of its own, for such names may be those of one file.
    const folder = dir.file(`${agent === 'x' ? 'small' : 'capital'}/${name}/subagents`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${folder}/../../${name}.jsonl`, jsonl(records));
    const said = person({ uuid: `${name}6` }, 'Look', { isSidechain: true, agentId: agent, sessionId: name });
    writeFileSync(`${folder}/agent-${agent}.jsonl`, jsonl([said]));
  }
  const { names, done } = await importFiles(store, [dir.path]);
  expect(done.map(({ error }) => error)).toEqual([undefined, undefined, undefined, undefined]);
  expect(names).toHaveLength(6);
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(6);
  expect(names.map((name) => [...store.entries.read(name, { kind: 'message' })].length).sort()).toEqual([
    1, 1, 3, 3, 3, 3,
  ]);
  expect([...store.verify()]).toEqual([]);
  const again = await importFiles(store, [dir.path]);
  expect(again.names.toSorted()).toEqual(names.toSorted());
  expect(
    again.done.flatMap(({ brought }) => brought?.sessions ?? []).filter(({ added }) => added > 0),
  ).toEqual([]);
});

test('a file of a subagent that is no transcript is left out alone; without the main file nothing is imported', async () => {
  using dir = tempDir();
  using store = openStore();
  const agents = dir.file('s-1/subagents');
  mkdirSync(agents, { recursive: true });
  writeFileSync(dir.file('s-1.jsonl'), jsonl([hello, answer]));
  const said = jsonl([person({ uuid: 'x1' }, 'Look', { isSidechain: true, agentId: 'x' })]);
  writeFileSync(`${agents}/agent-x.jsonl`, said + 'nonsense\n'.repeat(3));
  const first = await importFiles(store, [dir.path]);
  expect(first.done.map(({ file: { role }, error }) => [role, error?.code])).toEqual([
    ['main', undefined],
    ['subagent', 'IMPORT_BAD_JSON'],
  ]);
  expect(first.names).toEqual(['s-1']);
  writeFileSync(`${agents}/agent-x.jsonl`, said);
  expect((await importFiles(store, [dir.path])).names).toEqual(['s-1', 'agent-x']);
  writeFileSync(dir.file('s-1.jsonl'), jsonl([hello]) + 'nonsense\n'.repeat(3));
  const { done, names } = await importFiles(store, [dir.path]);
  expect([done.map(({ error }) => error?.data.line), names]).toEqual([[2, undefined], []]);
});

/** Claude Code, with something that happens while a file is read. */
const meanwhile = (act: () => void): TranscriptTool => ({
  ...claudeCode,
  plan: async (files) => {
    const plan = await claudeCode.plan?.(files);
    act();
    if (plan === undefined) throw new TypeError('it is read');
    return plan;
  },
});

test('a file that changes while it is read is imported when it is still; one that grew or went is imported as it was', async () => {
  using dir = tempDir();
  using store = openStore();
  const file = dir.file('s-1.jsonl');
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const whole = jsonl([hello, answer]);
  const during = async (act: () => void) => {
    writeFileSync(file, whole);
    const { done } = await importFiles(store, [file], { table, tool: meanwhile(act) });
    return [done[0]?.error?.code, done[0]?.error?.data.file, store.sessions.find('s-1') !== undefined];
  };
  expect(await during(() => truncateSync(file, 20))).toEqual(['IMPORT_SOURCE_CHANGED', file, false]);
  const replaced = () => {
    rmSync(file);
    writeFileSync(file, whole);
  };
  expect(await during(replaced)).toEqual(['IMPORT_SOURCE_CHANGED', file, false]);
  expect(table.all).toEqual([]);
  expect(await during(() => appendFileSync(file, line(bye)))).toEqual([undefined, undefined, true]);
  expect(table.at(file)?.read.line).toBe(3);
  const grown = await importFiles(store, [file], { table });
  expect(grown.done[0]).toMatchObject({ seen: 'grown', brought: { sessions: [{ added: 1 }] } });
  await importFiles(store, [file], { table });
  appendFileSync(file, line(person({ uuid: 'u3', parent: 'u2' }, 'Still there?')));
  const gone = await importFiles(store, [file], { table, tool: meanwhile(() => rmSync(file)) });
  expect(gone.done[0]).toMatchObject({ brought: { sessions: [{ added: 1 }] } });
});

test('a part of a session that its tool replaces while it is read is taken as it was, and again by the next import', async () => {
  using dir = tempDir();
  using store = openStore();
  const agents = dir.file('s-1/subagents');
  mkdirSync(agents, { recursive: true });
  writeFileSync(dir.file('s-1.jsonl'), jsonl([hello, answer]));
  const side = { isSidechain: true, agentId: 'x' };
  writeFileSync(`${agents}/agent-x.jsonl`, jsonl([person({ uuid: 'x1' }, 'Look', side)]));
  const meta = `${agents}/agent-x.meta.json`;
  writeFileSync(meta, '{"description":"One"}');
  const table = SourceTable.open(dir.file('sources.jsonl'));
  const replaced = () => {
    writeFileSync(`${meta}.tmp`, '{"description":"Two"}');
    renameSync(`${meta}.tmp`, meta);
  };
  const { done } = await importFiles(store, [dir.path], { table, tool: meanwhile(replaced) });
  expect(done.map(({ error }) => error?.code)).toEqual([undefined, undefined, undefined]);
  expect(store.sessions.find('agent-x')?.title).toBe('One');
  await importFiles(store, [dir.path], { table });
  expect(store.sessions.find('agent-x')?.title).toBe('Two');
});

test.each<[TapeErrorCode, boolean]>([
  ['TAPE_CONFLICT', true],
  ['TAPE_BAD_POINT', true],
  ['TAPE_IO', false],
])(
  '%s in one transcript keeps the others from being imported only if it is one of the home',
  async (code, isOwn) => {
    using dir = tempDir();
    using store = openStore();
    for (const id of ['s-1', 's-2', 's-3'])
      writeFileSync(dir.file(`${id}.jsonl`), line({ ...hello, uuid: `${id}-u1`, sessionId: id }));
    const refusing = wrapStore(store, ({ method, args, act }) => {
      if (method !== 'sessions.find' && args[0] === 's-2') throw new TapeError(code, 'refused');
      return act();
    });
    const all = importFiles(refusing, [dir.path]);
    if (!isOwn) return await expect(all).rejects.toMatchObject({ code });
    const { done } = await all;
    expect(done.map(({ file, error }) => [file.session, error?.code])).toEqual([
      ['s-1', undefined],
      ['s-2', code],
      ['s-3', undefined],
    ]);
    const { names } = await importFiles(store, [dir.path]);
    expect(names.map((name) => [...store.entries.read(name, { kind: 'message' })].length)).toEqual([1, 1, 1]);
    expect([...store.verify()]).toEqual([]);
  },
);
