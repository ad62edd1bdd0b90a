import { readFileSync } from 'node:fs';
import { ImportError } from '@tapedeck/runtime/import';
import { TapeError } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { faults, imported } from '../support/transcript.ts';

const demo = readFileSync(new URL('../../packages/cli/demo/transcript.jsonl', import.meta.url));
// One character a byte, so that bytes can be changed and put together again.
const lines = demo.toString('latin1').trimEnd().split('\n');
const at = fc.nat({ max: lines.length - 1 });
const ids = lines.flatMap((line) => (JSON.parse(line) as { uuid?: string }).uuid ?? []);

/** A change of a file: of its bytes, of the order of its lines, or of what a line says of itself and others. */
type Change = (given: readonly string[]) => readonly string[];

const field = fc.constantFrom(
  'uuid',
  'parentUuid',
  'type',
  'message',
  'timestamp',
  'sessionId',
  'isSidechain',
);
const odd = fc.oneof(
  fc.constantFrom<unknown>(null, '', 0, -1, 1e21, [], {}, true, '__proto__', '\ud800', 'NaN'),
  fc.constantFrom(...ids),
);

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(at, fc.nat({ max: 400 }), fc.nat({ max: 255 })).map(
    ([i, offset, byte]): Change =>
      (given) =>
        given.map((line, n) => (n === i ? flip(line, offset, byte) : line)),
  ),
  at.map(
    (i): Change =>
      (given) =>
        given.toSpliced(i, 1),
  ),
  fc.tuple(at, at).map(
    ([i, j]): Change =>
      (given) =>
        given.toSpliced(i, 0, given[j] ?? ''),
  ),
  fc.tuple(at, at).map(
    ([i, j]): Change =>
      (given) =>
        swap(given, i, j),
  ),
  fc.tuple(at, field, odd).map(
    ([i, name, value]): Change =>
      (given) =>
        given.map((line, n) => (n === i ? withField(line, name, value) : line)),
  ),
  fc.tuple(at, fc.constantFrom('[', '{"a":')).map(
    ([i, open]): Change =>
      (given) =>
        given.map((line, n) => (n === i ? open.repeat(100_000) : line)),
  ),
  fc.constant<Change>((given) => given.slice(0, 0)),
);

function flip(line: string, offset: number, byte: number): string {
  const bytes = Buffer.from(line);
  if (bytes.length > 0) bytes[offset % bytes.length] = byte;
  return bytes.toString('latin1');
}

function swap(given: readonly string[], i: number, j: number): readonly string[] {
  return given.map((line, n) => (n === i ? (given[j] ?? line) : n === j ? (given[i] ?? line) : line));
}

function withField(line: string, name: string, value: unknown): string {
  try {
    return JSON.stringify({ ...JSON.parse(line), [name]: value });
  } catch {
    return line;
  }
}

test('a damaged transcript is a typed error, or a valid history; none is imported by half', () => {
  let [refused, taken] = [0, 0];
  const runs = sized(100, 250, 100_000);
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      const text = changes.reduce<readonly string[]>((given, act) => act(given), lines).join('\n');
      try {
        const { drafts } = imported(Buffer.from(text, 'latin1'));
        taken += 1;
        expect(faults(drafts)).toEqual([]);
        if (taken % 20 !== 0) return;
        using store = openStore();
        const staged = store.imports.stage('main');
        store.imports.append(staged.id, drafts);
        store.imports.publish([staged.id]);
        expect([...store.verify()]).toEqual([]);
      } catch (error) {
        if (!(error instanceof ImportError) && !(error instanceof TapeError)) throw error;
        refused += 1;
      }
    }),
    { numRuns: runs },
  );
  // Both happen, or the changes are of no use.
  expect([refused, taken].map((n) => n > runs / 50)).toEqual([true, true]);
});
