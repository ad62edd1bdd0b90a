import { gzipSync, zstdCompressSync } from 'node:zlib';
import { openTapeStore, type SqliteTapeStore, TapeError, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { leavesOf, recordsOf, sealed, withLeaf } from '../support/hostile-bundle.ts';
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
  const changes = sized(150, 3_000, 100_000);
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
  const changes = sized(250, 8_000, 200_000);
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
  const changes = sized(120, 2_000, 50_000);
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
    ['a newer version', put(0, { ...records[0], v: 2 }), /version 2/],
    ['another format', put(0, { ...records[0], bundle: 'tar' }), /header/],
    ['deep JSON', put(entry, `{"e":${'['.repeat(200_000)}${']'.repeat(200_000)}}`), /list of 9 or 11/],
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
  const zeros = Buffer.alloc(sized(70, 200, 400) * 1024 * 1024, '\n');
  for (const bomb of [gzipSync(zeros, { level: 9 }), zstdCompressSync(zeros)])
    expect(await refused(there, bomb)).toMatchObject({
      code: 'TAPE_BAD_BUNDLE',
      message: expect.stringMatching(/times its size/),
    });
});
