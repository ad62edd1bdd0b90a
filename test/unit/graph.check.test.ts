import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkJournal, firstPrev, type JournalReport, lineHash, readLines } from '@tapedeck/graph';
import { describe, expect, test } from 'vitest';
import { fileOf, lines, tempDir } from './graph.support/lines.ts';

const [l1 = '', l2 = '', l3 = '', l4 = '', l5 = '', l6 = ''] = lines(6);
const all = [l1, l2, l3, l4, l5, l6];

function check(content: string | Uint8Array): JournalReport {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  writeFileSync(path, content);
  return checkJournal(readLines(path));
}

/** The findings in short: `code line g`. */
function findings(file: readonly string[]): string[] {
  return check(fileOf(file)).problems.map(({ code, line, g }) => `${code} ${line} ${g}`);
}

const clean = { g: 6, hash: lineHash(l6), records: 6, fragments: 0, torn: false, problems: [] };

describe('check accepts', () => {
  test.each<[string, string | Uint8Array, Partial<JournalReport>]>([
    ['an empty file', '', { g: 0, hash: firstPrev, records: 0 }],
    ['a whole file', fileOf(all), {}],
    ['a torn tail', `${fileOf(all)}{"v":1,"g":7`, { torn: true }],
    [
      'sealed fragments',
      fileOf([l1, l2.slice(0, 50), '', l2, '{', l3, l4, '\0\0\0', l5, l6]),
      { fragments: 4 },
    ],
    [
      'a sealed fragment that ends inside a character',
      Buffer.concat([
        Buffer.from(`${l1}\n{"v":1,"x":"`),
        Buffer.from([0xe2, 0x82, 0x0a]),
        Buffer.from(fileOf(all.slice(1))),
      ]),
      { fragments: 1 },
    ],
    [
      'a long run of NULs that was sealed',
      fileOf([l1, '\0'.repeat(300_000), ...all.slice(1)]),
      { fragments: 1 },
    ],
  ])('%s', (_, content, expected) => {
    expect(check(content)).toEqual({ ...clean, ...expected });
  });
});

describe('check finds', () => {
  const forgedLine = l4.replace('"s4"', '"evil"');
  const put = (g: number, prev: string) =>
    l4.replace('"g":4', `"g":${g}`).replace(/"prev":"\w+"/, `"prev":"${prev}"`);

  test.each<[string, string[], string[]]>([
    ['a line that was changed', [l1, l2, l3, forgedLine, l5, l6], ['forged 5 5']],
    ['the last line with another number', [l1, l2, put(3, firstPrev)], ['forged 3 3']],
    ['the first line changed', [l1.replace('"s1"', '"x"'), ...all.slice(1)], ['forged 2 2']],
    ['a line put in', [l1, l2, put(3, firstPrev), l3, l4, l5, l6], ['forged 3 3']],
    [
      'a line put in with a number far ahead',
      [l1, l2, put(900, firstPrev), l3, l4, l5, l6],
      ['forged 3 900'],
    ],
    ['a line put in with a number of another', [l1, l2, l3, l4, put(2, firstPrev), l5, l6], ['forged 5 2']],
    ['a line added behind the last', [...all, put(7, lineHash(l5))], ['forged 7 7']],
    ['JSON that is no record', [l1, '{"hello":1}', l2, l3, l4, l5, l6], ['forged 2 undefined']],
    ['a line that is gone', [l1, l2, l4, l5, l6], ['missing 3 3']],
    ['lines that are gone', [l1, l5, l6], ['missing 2 2']],
    ['the first line gone', all.slice(1), ['missing 1 1']],
    ['two gaps', [l1, l3, l5, l6], ['missing 2 2', 'missing 3 4']],
    ['two lines swapped', [l1, l2, l4, l3, l5, l6], ['swapped 4 3']],
    ['the first two swapped', [l2, l1, l3, l4, l5, l6], ['swapped 2 1']],
    ['the last two swapped', [l1, l2, l3, l4, l6, l5], ['swapped 6 5']],
    ['a line that came much too late', [l1, l2, l4, l5, l3, l6], ['swapped 5 3']],
    ['a line twice', [l1, l2, l2, l3, l4, l5, l6], ['duplicated 3 2']],
    ['the last line twice', [...all, l6], ['duplicated 7 6']],
    ['a line again, later', [l1, l2, l3, l4, l1, l5, l6], ['duplicated 5 1']],
    ['the whole file twice', [...all, ...all], [1, 2, 3, 4, 5, 6].map((g) => `duplicated ${6 + g} ${g}`)],
    ['a record glued to a fragment', [l1, l2, `${l3.slice(0, 70)}${l3}`, l4, l5, l6], ['glued 3 3']],
    ['records glued to each other', [l1, `${l2}${l3}`, l4, l5, l6], ['glued 2 2']],
    ['a lost record behind a fragment of it', [l1, l2, l3.slice(0, -10), l4, l5, l6], ['missing 4 3']],
    [
      'line ends of another system',
      all.map((line) => `${line}\r`),
      [2, 3, 4, 5, 6].map((g) => `forged ${g} ${g}`),
    ],
  ])('%s', (_, file, expected) => {
    expect(findings(file)).toEqual(expected);
  });

  test('describes each finding in words', () => {
    const { problems } = check(fileOf([l1, l4, `${l5}${l6}`, l6]));
    expect(problems.map(({ message }) => message)).toMatchInlineSnapshot(`
      [
        "records 2 to 3 are missing before record 4",
        "has record 5 glued to other text",
        "record 6 is repeated",
      ]
    `);
  });

  test('continues after a finding: the last record in order is the one that the store compares', () => {
    expect(check(fileOf([l1, l2, l4, l3, l5, l6]))).toMatchObject({ g: 6, hash: lineHash(l6), records: 6 });
    expect(check(fileOf([l1, `${l2}${l3}`, l4, l5, l6]))).toMatchObject({
      g: 6,
      hash: lineHash(l6),
      records: 6,
    });
  });
});

test('check finds any one line that was changed, removed, duplicated or moved', () => {
  for (let at = 0; at < all.length; at += 1) {
    const without = all.toSpliced(at, 1);
    // A cut at the end shows only against the store.
    if (at < all.length - 1) expect(findings(without)).not.toEqual([]);
    expect(findings(all.toSpliced(at, 0, all[at] ?? ''))).not.toEqual([]);
    if (at < all.length - 1)
      expect(findings(all.with(at, `${all[at]?.slice(0, -1)},"x":1}`))).not.toEqual([]);
    for (let to = 0; to < all.length; to += 1)
      if (to !== at) expect(findings(without.toSpliced(to, 0, all[at] ?? ''))).not.toEqual([]);
  }
});
