import { gzipSync, zstdCompressSync } from 'node:zlib';
import { openTapeStore, type SqliteTapeStore, TapeError, user } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { leavesOf, recordsOf, sealed, withLeaf } from '../support/hostile-bundle.ts';
import { badNames } from '../support/names.ts';
import { fillForForgeries } from '../support/random-forgery.ts';
import { seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);
const timeout = sized(240_000, 900_000, 6 * 3_600_000);

function filled(): SqliteTapeStore {
  const store = openStore(':memory:', { secrets: [] });
  fillForForgeries(store);
  store.entries.append('main', [user([{ type: 'image', image: new Uint8Array(300).fill(7) }])]);
  return store;
}

/** What a store has: an import that is refused changes nothing of it. */
function stateOf(store: SqliteTapeStore): unknown {
  return [store.sessions.list({ all: true }), [...store.lineage.read()], store.count()];
}

/** Refuses a bundle, or takes it in without damage. Returns the error. */
async function refused(store: SqliteTapeStore, bundle: string | Uint8Array): Promise<TapeError | undefined> {
  const before = stateOf(store);
  try {
    await adopt(store, bundle);
  } catch (error) {
    if (!(error instanceof TapeError)) throw error;
    expect(stateOf(store)).toEqual(before);
    return error;
  }
  expect([...store.verify()].filter(({ code }) => code !== 'not-here')).toEqual([]);
  return undefined;
}

test('no bit of a bundle can be changed, and no byte be left out', { timeout }, async () => {
  using here = filled();
  using there = openTapeStore(':memory:', { secrets: [] });
  const bytes = Buffer.from(bundleOf(here, 'main', { scope: 'tree' }));
  const random = seeded(seed);
  const changes = sized(30, 50, 100_000);
  for (let n = 0; n < changes; n += 1) {
    const changed = Buffer.from(bytes);
    const at = random.below(bytes.length);
    changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
    expect((await refused(there, changed))?.code, `bit of byte ${at}`).toBe('TAPE_BAD_BUNDLE');
  }
  for (let n = 0; n < changes / 3; n += 1) {
    const cut = bytes.subarray(0, random.below(bytes.length));
    expect((await refused(there, cut))?.code, `cut at ${cut.length}`).toBe('TAPE_BAD_BUNDLE');
  }
  expect(await refused(there, bytes)).toBeUndefined();
});

const values: readonly unknown[] = [
  ...[null, true, -1, 0, 1, 2, 3, 99, 1e15, 1.5, '', 'x', '@', 'main', 'child', '..', '__proto__', [], {}],
  ...[
    '0'.repeat(64),
    'f'.repeat(64),
    '01JD0000000000000000000001',
    '{"a":1}',
    '[[[[',
    'a\u0000b',
    'a\ud800b',
  ],
  ...['2026-01-01T00:00:00.000Z', 'archived', 'merged', 'merge:x:y', 'x'.repeat(5_000), 'rewind', 'boundary'],
];

test('a bundle with a right digest and any other value in it is refused, or is whole', {
  timeout,
}, async () => {
  using here = filled();
  const records = recordsOf(bundleOf(here, 'main', { scope: 'tree' }));
  const random = seeded(seed);
  let refusals = 0;
  const changes = sized(50, 60, 200_000);
  for (let n = 0; n < changes; n += 1) {
    const at = random.below(records.length);
    const record = records[at] as Record<string, unknown>;
    const put = values[random.below(values.length)];
    const isLine = typeof record.line === 'string';
    const inner: unknown = isLine ? JSON.parse(String(record.line)) : record;
    const changed = withLeaf(inner, random.below(leavesOf(inner)), put);
    const one = isLine ? { line: JSON.stringify(changed) } : (changed as object);
    using there = openTapeStore(':memory:', { secrets: [] });
    const error = await refused(there, sealed(records.with(at, one as Record<string, unknown>)));
    if (error !== undefined) {
      expect(error.code, `${JSON.stringify(one).slice(0, 200)}: ${error.message}`).toMatch(
        /^TAPE_(?:BAD_BUNDLE|EXISTS|BAD_NAME)$/,
      );
      refusals += 1;
    }
  }
  expect(refusals).toBeGreaterThan(changes / 2);
});

test('records in another order, twice, or left out are refused at their line', { timeout }, async () => {
  using here = filled();
  const records = recordsOf(bundleOf(here, 'main', { scope: 'tree' }));
  const random = seeded(seed);
  let refusals = 0;
  const changes = sized(30, 50, 50_000);
  for (let n = 0; n < changes; n += 1) {
    const [a, b] = [random.below(records.length), random.below(records.length)];
    const changed = [...records];
    const how = random.below(3);
    if (how === 0) changed.splice(a, 1);
    else if (how === 1) changed.splice(b, 0, records[a] as Record<string, unknown>);
    else
      [changed[a], changed[b]] = [
        records[b] as Record<string, unknown>,
        records[a] as Record<string, unknown>,
      ];
    if (how === 2 && a === b) continue;
    using there = openTapeStore(':memory:', { secrets: [] });
    const error = await refused(there, sealed(changed));
    if (error === undefined) continue;
    expect(error.code, error.message).toBe('TAPE_BAD_BUNDLE');
    expect(error.data).toMatchObject({ file: 'a.tape' });
    refusals += 1;
  }
  expect(refusals).toBeGreaterThan(changes / 2);
});

test('forms that no bundle has are refused with their line', async () => {
  using here = filled();
  using there = openTapeStore(':memory:', { secrets: [] });
  const whole = bundleOf(here, 'main', { scope: 'tree' });
  const records = recordsOf(whole);
  const at = (field: string) => records.findIndex((record) => field in record);
  const last = records.findLastIndex((record) => 'e' in record);
  const [tape, entry, line] = [at('tape'), at('e'), at('line')];
  const ofTape = (records[tape]?.tape ?? {}) as { readonly ulid: string };
  const ofLast = (records[last]?.e ?? []) as unknown[];
  const put = (index: number, record: object | string) =>
    sealed((records as (object | string)[]).with(index, record));
  const cases: readonly (readonly [string, string | Uint8Array, RegExp])[] = [
    ['nothing', '', /it is empty/],
    ['another file', 'hello\n', /not JSON/],
    ['no end', whole.split('\n').slice(0, -2).join('\n'), /cut off/],
    ['a newer version', put(0, { ...records[0], v: 3 }), /version 3/],
    ['another format', put(0, { ...records[0], bundle: 'tar' }), /header/],
    ['deep JSON', put(entry, `{"e":${'['.repeat(200_000)}${']'.repeat(200_000)}}`), /more parts/],
    [
      '__proto__',
      put(tape, JSON.stringify(records[tape]).replace('"kind"', '"__proto__":{"x":1},"kind"')),
      /unknown field/,
    ],
    ['__proto__ at the top', put(entry, `{"__proto__":{"e":1}}`), /no record/],
    [
      'its own parent',
      put(tape, {
        tape: { ...ofTape, parent: ofTape.ulid },
      }),
      /parent/,
    ],
    ['a bad name', put(tape, { tape: { ...ofTape, name: '../x' } }), /name/],
    ['a bad id', put(tape, { tape: { ...ofTape, ulid: 'ILLEGAL' } }), /id/],
    [
      'a deep payload',
      put(last, {
        e: [...ofLast.slice(0, 9), '['.repeat(100) + ']'.repeat(100), null],
      }),
      /nested/,
    ],
    [
      'a wrong hash on the last entry',
      put(last, { e: ofLast.with(7, 'a'.repeat(64)) }),
      /head|follow|line|hash/,
    ],
    ['a line that is no line', put(line, { line: '{"v":1}' }), /line of the lineage/],
    [
      'a line of invalid UTF-8',
      Buffer.from(`${whole.slice(0, 200)}\xff${whole.slice(200)}`, 'latin1'),
      /UTF-8|JSON/,
    ],
    ['more after the end', `${whole}{}\n`, /follows the end/],
    ['a cut gzip', gzipSync(whole).subarray(0, 300), /unpacked/],
    ['a cut zstd', zstdCompressSync(whole).subarray(0, 300), /unpacked|cut off/],
    [
      'what is no gzip',
      Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.from('xxxxxxxxxxxxxxxx')]),
      /unpacked/,
    ],
  ];
  for (const [what, bundle, why] of cases) {
    const error = await refused(there, bundle);
    expect(error?.code, what).toBe('TAPE_BAD_BUNDLE');
    expect(error?.message, what).toMatch(why);
  }
  expect(await refused(there, gzipSync(whole))).toBeUndefined();
  expect(await refused(there, zstdCompressSync(whole))).toBeUndefined();
  expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
});

test('a bundle that unpacks to much more than its size is refused on the way', { timeout }, async () => {
  using there = openTapeStore(':memory:', { secrets: [] });
  const zeros = Buffer.alloc(sized(70, 70, 400) * 1024 * 1024, '\n');
  for (const bomb of [gzipSync(zeros, { level: 9 }), zstdCompressSync(zeros)])
    expect(await refused(there, bomb)).toMatchObject({
      code: 'TAPE_BAD_BUNDLE',
      message: expect.stringMatching(/times its size/),
    });
});

/** Ids that are none: other lengths, other letters, past the last time, and paths. */
const badIds: readonly unknown[] = [
  ...['', 'x', '01JD000000000000000000000', '01JD00000000000000000000001', '01jd0000000000000000000001'],
  ...['01JD000000000000000000000I', '01JD000000000000000000000L', '01JD000000000000000000000O'],
  ...[
    '01JD000000000000000000000U',
    '81JD0000000000000000000001',
    '../../etc/passwd',
    '01JD000000000000000000000\n',
  ],
  ...['01JD000000000000000000000\u0661', 'main', 1, true, {}, ['01JD0000000000000000000001']],
];

test('names and ids of every bad shape are refused wherever they stand', { timeout }, async () => {
  using here = filled();
  const records = recordsOf(bundleOf(here, 'main', { scope: 'tree' }));
  using there = openTapeStore(':memory:', { secrets: [] });
  const put = async (at: number, record: object, what: string) => {
    const error = await refused(there, sealed(records.with(at, record as Record<string, unknown>)));
    expect(error?.code, what).toBe('TAPE_BAD_BUNDLE');
    expect(error?.data, what).toMatchObject({ line: at + 1 });
  };
  const tape = records.findIndex((record) => 'tape' in record);
  const of = records.findIndex((record) => 'of' in record);
  const line = records.findIndex((record) => 'line' in record);
  const ofTape = records[tape]?.tape as Record<string, unknown>;
  const ofLine = JSON.parse(String(records[line]?.line)) as Record<string, unknown>;
  for (const name of badNames.filter((one) => one.length <= 128))
    await put(tape, { tape: { ...ofTape, name } }, `name ${JSON.stringify(name)}`);
  for (const id of badIds) {
    const what = `id ${JSON.stringify(id)}`;
    await put(0, { ...records[0], session: id }, what);
    for (const field of ['ulid', 'parent'])
      await put(tape, { tape: { ...ofTape, [field]: id } }, `${field} ${what}`);
    await put(of, { of: id }, what);
    for (const field of ['event_id', 'session', 'parent', 'into'])
      await put(line, { line: JSON.stringify({ ...ofLine, [field]: id }) }, `${field} ${what}`);
  }
});

test('cycles, gaps, doubles and numbers past all bounds are refused', { timeout }, async () => {
  using here = filled();
  const records = recordsOf(bundleOf(here, 'main', { scope: 'tree' }));
  using there = openTapeStore(':memory:', { secrets: [] });
  const tapes = records.flatMap((record, at) => ('tape' in record ? [at] : []));
  const [main = 0, child = 0] = tapes;
  const tapeAt = (at: number) => records[at]?.tape as Record<string, unknown>;
  const withTape = (at: number, change: object) =>
    sealed(records.with(at, { tape: { ...tapeAt(at), ...change } }));
  const entry = records.findIndex((record) => 'e' in record) + 1;
  const ofEntry = records[entry]?.e as unknown[];
  const withEntry = (...e: unknown[]) => sealed(records.with(entry, { e }));
  const huge = Number.MAX_SAFE_INTEGER;
  const nested = '['.repeat(200_000) + ']'.repeat(200_000);
  const cases: readonly (readonly [string, string])[] = [
    [
      'two that are parents of each other',
      withTape(main, { ...tapeAt(child), ulid: tapeAt(main).ulid, parent: tapeAt(child).ulid }),
    ],
    ['a parent that is missing', withTape(child, { parent: '01JD00000000000000000000ZZ' })],
    ['a session twice', sealed(records.toSpliced(child, 0, records[main] ?? {}))],
    ['a base past the parent', withTape(child, { base: huge, head: huge, floor: 0 })],
    ['a head past all entries', withTape(main, { head: huge })],
    ['a floor below that of the parent', withTape(child, { floor: -1 })],
    ['a position that is missing', sealed(records.toSpliced(entry, 1))],
    ['a position twice', sealed(records.toSpliced(entry, 0, records[entry] ?? {}))],
    ['a position past all', withEntry(huge, ...ofEntry.slice(1))],
    ['a position that is no whole number', withEntry(1.5, ...ofEntry.slice(1))],
    ['a reference past the entry', withEntry(...ofEntry.with(4, huge).with(2, 'boundary'))],
    ['a time past all', withEntry(...ofEntry.with(5, huge))],
    ['an entry of 10 fields', withEntry(...ofEntry.slice(0, 10))],
    ['an entry of 12 fields', withEntry(...ofEntry, null)],
    ['a kind that does not exist', withEntry(...ofEntry.with(1, 'x-'))],
    ['a nested list', sealed((records as (object | string)[]).with(entry, `{"e":${nested}}`))],
    ['a nested line', sealed((records as (object | string)[]).with(main + 3, { line: nested }))],
    ['a record of two fields', sealed(records.with(entry, { e: ofEntry, of: 1 }))],
    ['versions that are none', sealed(records.with(0, { ...records[0], v: '1' }))],
    ['a version between', sealed(records.with(0, { ...records[0], v: 1.5 }))],
    ['a version past all', sealed(records.with(0, { ...records[0], v: huge }))],
    ['no sessions', sealed([records[0] as object])],
    ['bytes that no entry needs', sealed(records.toSpliced(entry, 0, { b: [sha256('x'), 1, 0, 'eA=='] }))],
    ['bytes with another hash', sealed(records.toSpliced(entry, 0, { b: [sha256('y'), 1, 0, 'eA=='] }))],
    ['a size past all', sealed(records.toSpliced(entry, 0, { b: [sha256('x'), huge, 0, 'eA=='] }))],
  ];
  for (const [what, bundle] of cases)
    expect((await refused(there, bundle))?.code, what).toBe('TAPE_BAD_BUNDLE');
});

test('a line of millions of small parts is refused before it is read as JSON', { timeout }, async () => {
  using here = filled();
  const records = recordsOf(bundleOf(here, 'main')) as (object | string)[];
  using there = openTapeStore(':memory:', { secrets: [] });
  const at = records.findIndex((record) => Object.hasOwn(record as object, 'e'));
  const parts = '[],'.repeat(sized(200_000, 3_000_000, 20_000_000));
  const whole = await refused(there, sealed(records.with(0, `{"bundle":[${parts}1]}`)));
  expect(whole).toMatchObject({ code: 'TAPE_BAD_BUNDLE', message: expect.stringContaining('too long') });
  for (const line of [`{"e":[${parts}1]}`, `{"e":{"a":[${parts}1]}}`]) {
    const error = await refused(there, sealed(records.with(at, line)));
    expect(error).toMatchObject({ code: 'TAPE_BAD_BUNDLE', message: expect.stringContaining('parts') });
  }
});
