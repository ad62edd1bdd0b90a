import { type Draft, type Entry, type Json, openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { entryBytesMax, restoreBlobs } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyJson, anyText, nested } from '../support/arbitrary-json.ts';
import { hashedPayloads } from '../support/format-hash.ts';
import { rawDb } from '../support/raw-db.ts';
import { sized } from '../support/size.ts';
import { openStore, refusal } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const any = (payload: unknown, more: Partial<Draft> = {}): Draft => ({ kind: 'x-any', payload, ...more });

/** What a reader gets, with external bytes put back, as text: it distinguishes 1 from "1", and keeps the order. */
const textOf = (store: SqliteTapeStore, { payload }: Entry) =>
  JSON.stringify(restoreBlobs(payload, (hash) => store.entries.blob(hash)));

const last = (store: SqliteTapeStore, count: number) => [...store.entries.read('main', { last: count })];

describe('appended entries return unchanged', () => {
  test('any JSON, with any key and any text in it', () => {
    using store = openStore();
    store.sessions.open('main');
    fc.assert(
      fc.property(fc.array(anyJson, { minLength: 1, maxLength: 4 }), (payloads) => {
        store.entries.append(
          'main',
          payloads.map((payload) => any(payload)),
        );
        const read = last(store, payloads.length).map((entry) => textOf(store, entry));
        expect(read).toEqual(payloads.map((payload) => JSON.stringify(payload)));
      }),
      { numRuns: sized(40, 100, 20_000) },
    );
    expect([...store.verify()]).toEqual([]);
  });

  test('any text, in messages, meta, event names and keys, or names and keys are refused', () => {
    using store = openStore();
    store.sessions.open('main');
    fc.assert(
      fc.property(anyText, anyText, (text, name) => {
        const draft: Draft = { kind: 'event', name, payload: text, meta: { [text]: text }, key: name };
        const before = store.sessions.find('main')?.head;
        let at: number;
        try {
          at = store.entries.append('main', [draft]).to;
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^TAPE_(?:BAD_ENTRY|KEY_CONFLICT)$/) });
          expect(store.sessions.find('main')?.head).toBe(before);
          return;
        }
        const [entry] = store.entries.read('main', { from: at, to: at });
        expect(entry).toMatchObject({ name, payload: text, key: `u:${name}` });
        expect(Object.entries(entry?.meta ?? {})).toEqual([[text, text]]);
      }),
      { numRuns: sized(20, 40, 4_000) },
    );
    expect([...store.verify()]).toEqual([]);
  });

  test('the stored bytes are the hashed bytes, also in a backup', async () => {
    using dir = tempDir();
    const sample = fc.sample(anyJson, { numRuns: sized(150, 150, 20_000), seed: 20_261_121 });
    using store = openTapeStore(dir.file('tape.db'), { durability: 'fast' });
    store.sessions.open('main');
    for (let at = 0; at < sample.length; at += 100)
      store.entries.append(
        'main',
        sample.slice(at, at + 100).map((payload) => any(payload)),
      );
    await store.backup(dir.file('copy.db'));
    using copy = openTapeStore(dir.file('copy.db'), { readonly: true });
    const given = sample.map((payload) => JSON.stringify(payload));
    for (const [file, of] of [
      ['tape.db', store],
      ['copy.db', copy],
    ] as const) {
      using raw = rawDb(dir.file(file));
      const stored = hashedPayloads(raw, 'main').slice(1);
      const read = [...of.entries.read('main', { from: 2 })];
      expect(read.map(({ payload }) => JSON.stringify(payload))).toEqual(stored);
      expect(read.map((entry) => textOf(of, entry))).toEqual(given);
      expect([...of.verify()]).toEqual([]);
    }
  });

  test('bytes of any length, as bytes and as base64', () => {
    using store = openStore();
    store.sessions.open('main');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const data = Buffer.from(bytes).toString('base64');
        const parts = [
          { mediaType: 'a/b', data },
          { mediaType: 'a/b', data: bytes },
        ];
        store.entries.append('main', [any(parts)]);
        const [entry] = last(store, 1);
        const [text, binary] = restoreBlobs(entry?.payload ?? null, (hash) =>
          store.entries.blob(hash),
        ) as typeof parts;
        expect(text?.data).toBe(data);
        expect(Buffer.from(binary?.data as Uint8Array).equals(bytes)).toBe(true);
      }),
      { numRuns: sized(12, 24, 4_000) },
    );
    expect([...store.verify()]).toEqual([]);
  });
});

describe('a limit', () => {
  test.each<[string, (levels: number) => Draft]>([
    ['payload', (levels) => any(nested(levels))],
    ['meta', (levels) => any(1, { meta: { a: nested(levels - 1) } })],
  ])('on nesting is exact: 64 levels of %s', (_, draft) => {
    using store = openStore();
    store.sessions.open('main');
    store.entries.append('main', [draft(64)]);
    expect(refusal(() => store.entries.append('main', [draft(65)])).code).toBe('TAPE_BAD_ENTRY');
    expect(refusal(() => store.entries.append('main', [draft(200_000)])).code).toBe('TAPE_BAD_ENTRY');
    const [entry] = last(store, 1);
    const { payload, meta } = draft(64);
    expect(JSON.stringify([entry?.payload, entry?.meta])).toBe(JSON.stringify([payload, meta ?? {}]));
    expect(store.sessions.find('main')?.head).toBe(2);
  });

  const units: [string, number][] = [
    ['😀', 4],
    ['\ud800', 6],
    ['x', 1],
    ['é', 2],
    ['\u2028', 3],
    ['\0', 6],
  ];
  test.each(sized(units.slice(1, 2), units, units))(
    'on size is exact, in bytes as they are stored: %j',
    (unit, size) => {
      using dir = tempDir();
      const path = dir.file('tape.db');
      const room = entryBytesMax - 2;
      const fits = unit.repeat(Math.floor(room / size)) + 'x'.repeat(room % size);
      {
        using store = openTapeStore(path, { durability: 'fast' });
        store.sessions.open('main');
        expect(refusal(() => store.entries.append('main', [any(`${fits}x`)])).code).toBe('TAPE_BAD_ENTRY');
        expect(refusal(() => store.entries.append('main', [any(1), any(`${fits}x`)])).code).toBe(
          'TAPE_BAD_ENTRY',
        );
        store.entries.append('main', [any(fits)]);
        const [entry] = last(store, 1);
        expect(entry?.seq).toBe(2);
        expect(entry?.payload === fits).toBe(true);
        expect([...store.verify('main')]).toEqual([]);
      }
      using raw = rawDb(path);
      const [, payload = ''] = hashedPayloads(raw, 'main');
      expect(Buffer.byteLength(payload)).toBe(entryBytesMax);
    },
  );

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
    ['a big integer', 1n],
    [
      'a circle',
      (() => {
        const a: Json[] = [];
        a.push(a);
        return a;
      })(),
    ],
  ])('on what JSON can hold: %s is refused', (_, payload) => {
    using store = openStore();
    store.sessions.open('main');
    expect(refusal(() => store.entries.append('main', [any(payload)])).code).toBe('TAPE_BAD_ENTRY');
    expect(store.sessions.find('main')?.head).toBe(1);
  });
});
