import { hashLine } from '@tapedeck/tape/store';

/** A change of a graph file by a crash or by hand, and the expected outcome. */
export interface Fault {
  readonly what: string;
  readonly spoil: (lines: readonly string[]) => string | Uint8Array;
  /** The findings of the check, as `code line`. */
  readonly named?: readonly string[];
  /**
   * What the next opening for writing does: continues after the last line (`sealed` when it ends a fragment first), or
   * sets aside a file whose end differs from the database, and writes a new one.
   */
  readonly opening: 'same' | 'goes on' | 'sealed' | 'diverged';
}

const fileOf = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');
const part = (lines: readonly string[], from: number, to?: number) => fileOf(lines.slice(from, to));
const at = (lines: readonly string[], n: number) => lines[n - 1] ?? '';
/** The file with line `n` put otherwise. */
const put = (lines: readonly string[], n: number, ...others: readonly string[]) =>
  fileOf(lines.toSpliced(n - 1, 1, ...others));
const changed = (line: string) => line.replace('"v":1', '"v":2');
const flip = (line: string) => line.replace('"kind"', '"kinb"');
/** A forged record, chained to the one before it as by a forger who knows the format. */
const forged = (lines: readonly string[], n: number) =>
  at(lines, n - 1)
    .replace(`"g":${n - 1}`, `"g":${n}`)
    .replace(/"prev":"\w+"/, `"prev":"${hashLine(at(lines, n - 1))}"`);

/** Faults in a file of twelve lines. */
export const faults: readonly Fault[] = [
  { what: 'nothing at all', spoil: fileOf, opening: 'same' },
  { what: 'all bytes gone', spoil: () => '', opening: 'goes on' },
  { what: 'only LFs', spoil: () => '\n\n\n', opening: 'goes on' },
  { what: 'an empty line in the middle', spoil: (l) => put(l, 5, at(l, 5), ''), opening: 'same' },
  { what: 'empty lines at the end', spoil: (l) => `${fileOf(l)}\n\n`, opening: 'same' },
  { what: 'the last line gone', spoil: (l) => part(l, 0, 11), opening: 'goes on' },
  { what: 'the last six lines gone', spoil: (l) => part(l, 0, 6), opening: 'goes on' },
  { what: 'the last LF gone', spoil: (l) => fileOf(l).slice(0, -1), opening: 'sealed' },
  {
    what: 'half of the last line gone',
    spoil: (l) => part(l, 0, 11) + at(l, 12).slice(0, 200),
    opening: 'sealed',
  },
  {
    what: 'a fragment that was sealed',
    spoil: (l) => put(l, 9, at(l, 9).slice(0, 99), at(l, 9)),
    opening: 'same',
  },
  {
    what: 'many sealed fragments',
    spoil: (l) => put(l, 9, ...Array(500).fill('{"v":1,"g"'), at(l, 9)),
    opening: 'same',
  },
  { what: 'NULs at the end', spoil: (l) => `${fileOf(l)}${'\0'.repeat(4096)}`, opening: 'sealed' },
  { what: 'rubbish after the last line', spoil: (l) => `${fileOf(l)}rubbish\n`, opening: 'diverged' },
  { what: 'rubbish without an LF at the end', spoil: (l) => `${fileOf(l)}rubbish`, opening: 'diverged' },
  {
    what: 'a character cut in the middle at the end',
    spoil: (l) =>
      Buffer.concat([Buffer.from(`${part(l, 0, 11)}{"v":1,"g":12,"x":"`), Buffer.from([0xe2, 0x82])]),
    opening: 'sealed',
  },
  {
    what: 'rubbish, and a line that was torn',
    spoil: (l) => `${part(l, 0, 11)}rubbish\n${at(l, 12).slice(0, 200)}`,
    opening: 'diverged',
  },
  {
    what: 'a long line of rubbish at the end',
    spoil: (l) => `${fileOf(l)}${'x'.repeat(400_000)}\n`,
    opening: 'diverged',
  },
  {
    what: 'NULs where the last line was',
    spoil: (l) => `${part(l, 0, 11)}${'\0'.repeat(at(l, 12).length)}\n`,
    opening: 'goes on',
  },
  {
    what: 'NULs in the middle',
    spoil: (l) => put(l, 6, '\0'.repeat(at(l, 6).length)),
    named: ['missing 7'],
    opening: 'diverged',
  },
  {
    what: 'NULs over the end of a line',
    spoil: (l) =>
      `${part(l, 0, 6)}${at(l, 7).slice(0, 200)}${'\0'.repeat(300)}${at(l, 8).slice(100)}\n${part(l, 8)}`,
    named: ['missing 8'],
    opening: 'diverged',
  },
  {
    what: 'a byte flipped in the middle',
    spoil: (l) => put(l, 6, flip(at(l, 6))),
    named: ['forged 7'],
    opening: 'diverged',
  },
  {
    what: 'a byte flipped in the first line',
    spoil: (l) => put(l, 1, flip(at(l, 1))),
    named: ['forged 2'],
    opening: 'diverged',
  },
  { what: 'a byte flipped in the last line', spoil: (l) => put(l, 12, flip(at(l, 12))), opening: 'diverged' },
  {
    what: 'a brace flipped in the middle',
    spoil: (l) => put(l, 6, `[${at(l, 6).slice(1)}`),
    named: ['missing 7'],
    opening: 'diverged',
  },
  {
    what: 'a bit over ASCII in the middle',
    spoil: (l) => {
      const b = Buffer.from(fileOf(l));
      const i = part(l, 0, 5).length + 40;
      b[i] = (b[i] ?? 0) | 0x80;
      return b;
    },
    named: ['missing 7'],
    opening: 'diverged',
  },
  {
    what: 'the number of a line changed',
    spoil: (l) => put(l, 6, at(l, 6).replace('"g":6', '"g":60')),
    named: ['missing 6', ...each('swapped', 7, 12)],
    opening: 'diverged',
  },
  {
    what: 'a line doubled',
    spoil: (l) => put(l, 6, at(l, 6), at(l, 6)),
    named: ['duplicated 7'],
    opening: 'diverged',
  },
  {
    what: 'the last line doubled',
    spoil: (l) => put(l, 12, at(l, 12), at(l, 12)),
    named: ['duplicated 13'],
    opening: 'diverged',
  },
  {
    what: 'everything doubled',
    spoil: (l) => fileOf(l) + fileOf(l),
    named: each('duplicated', 13, 24),
    opening: 'diverged',
  },
  { what: 'a line taken out', spoil: (l) => put(l, 6), named: ['missing 6'], opening: 'diverged' },
  { what: 'the first line taken out', spoil: (l) => put(l, 1), named: ['missing 1'], opening: 'diverged' },
  {
    what: 'the line before the last taken out',
    spoil: (l) => put(l, 11),
    named: ['missing 11'],
    opening: 'diverged',
  },
  {
    what: 'two neighbours swapped',
    spoil: (l) => put(l, 6, at(l, 7), at(l, 6)).replace(`${at(l, 6)}\n${at(l, 7)}\n`, `${at(l, 6)}\n`),
    named: ['swapped 7'],
    opening: 'diverged',
  },
  {
    what: 'the last two swapped',
    spoil: (l) => fileOf([...l.slice(0, 10), at(l, 12), at(l, 11)]),
    named: ['swapped 12'],
    opening: 'diverged',
  },
  {
    what: 'a line moved far',
    spoil: (l) => fileOf([...l.slice(0, 2), at(l, 9), ...l.slice(2, 8), ...l.slice(9)]),
    named: ['forged 3', 'missing 10'],
    opening: 'diverged',
  },
  {
    what: 'the order turned around',
    spoil: (l) => fileOf(l.toReversed()),
    named: ['forged 1', ...each('swapped', 2, 11)],
    opening: 'diverged',
  },
  {
    what: 'two lines glued',
    spoil: (l) => fileOf(l).replace(`${at(l, 6)}\n`, at(l, 6)),
    named: ['glued 6'],
    opening: 'diverged',
  },
  {
    what: 'a fragment glued to a line',
    spoil: (l) => put(l, 6, at(l, 6).slice(0, 80) + at(l, 6)),
    named: ['glued 6'],
    opening: 'diverged',
  },
  {
    what: 'a fragment glued to the last line',
    spoil: (l) => put(l, 12, at(l, 12).slice(0, 80) + at(l, 12)),
    named: ['glued 12'],
    opening: 'goes on',
  },
  { what: 'a line forged at the end', spoil: (l) => `${fileOf(l)}${forged(l, 13)}\n`, opening: 'diverged' },
  {
    what: 'a line forged in the middle',
    spoil: (l) => put(l, 6, forged(l, 6)),
    named: ['forged 7'],
    opening: 'diverged',
  },
  {
    what: 'a line put in between',
    spoil: (l) => put(l, 6, forged(l, 6), at(l, 6)),
    named: ['forged 7', 'forged 8'],
    opening: 'diverged',
  },
  {
    what: 'other JSON in the middle',
    spoil: (l) => put(l, 6, '[]', at(l, 6)),
    named: ['forged 6'],
    opening: 'diverged',
  },
  {
    what: 'other JSON at the end',
    spoil: (l) => `${fileOf(l)}{"hello":"world"}\n`,
    named: ['forged 13'],
    opening: 'diverged',
  },
  {
    what: 'a line of a version to come',
    spoil: (l) => put(l, 6, changed(at(l, 6))),
    named: ['forged 7'],
    opening: 'diverged',
  },
  {
    what: 'CRLF everywhere',
    spoil: (l) => fileOf(l).replaceAll('\n', '\r\n'),
    named: each('forged', 2, 12),
    opening: 'diverged',
  },
  {
    what: 'CRLF in one place',
    spoil: (l) => put(l, 6, `${at(l, 6)}\r`),
    named: ['forged 7'],
    opening: 'diverged',
  },
  { what: 'a byte order mark', spoil: (l) => `\ufeff${fileOf(l)}`, named: ['forged 2'], opening: 'diverged' },
  { what: 'UTF-16', spoil: (l) => Buffer.from(fileOf(l), 'utf16le'), opening: 'diverged' },
  {
    what: 'bytes that are no UTF-8 at the end',
    spoil: (l) => Buffer.concat([Buffer.from(fileOf(l)), Buffer.from([0xff, 0xfe, 0xc0, 10])]),
    opening: 'diverged',
  },
  { what: 'another text', spoil: () => 'my diary, page one.\nMonday: rain.\n', opening: 'diverged' },
  { what: 'one line of another text', spoil: () => 'hello', opening: 'diverged' },
  { what: 'the beginning of the first line', spoil: (l) => at(l, 1).slice(0, 7), opening: 'sealed' },
  {
    what: 'a home of another user',
    spoil: (l) => fileOf(l).replaceAll('main', 'niam'),
    named: [...each('forged', 2, 6), 'forged 9'],
    opening: 'diverged',
  },
];

/** The same of every line from one to another. */
function each(code: string, from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, i) => `${code} ${from + i}`);
}
