import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  checkJournal,
  firstPrev,
  GraphError,
  lineBytesMax,
  lineHash,
  openJournal,
  readLines,
} from '@tapedeck/graph';
import type { Journal } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { fileOf, lines, tempDir } from './graph.support/lines.ts';

/** Does the store's work after each commit and at each open: appends the lines that the file lacks. */
function drain(journal: Journal, all: readonly string[]): void {
  const { g, hash, torn } = journal.tail();
  expect(hash).toBe(g === 0 ? firstPrev : lineHash(all[g - 1] ?? ''));
  if (torn || g < all.length) journal.append(all.slice(g));
}

const cases = (size: number) => Array.from({ length: size }, (_, i) => i);

describe('a new file', () => {
  test('is created by the first use, empty', () => {
    using dir = tempDir();
    const path = join(dir.path, 'session_graph.jsonl');
    using journal = openJournal(path);
    expect(existsSync(path)).toBe(false);
    expect(journal.tail()).toEqual({ g: 0, hash: firstPrev, torn: false });
    journal.append([]);
    expect(readFileSync(path, 'utf8')).toBe('');
  });

  test.each([0o000, 0o022, 0o077, 0o777])('has mode 0600 under umask %o', (umask) => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    const script = `process.umask(${umask}); const { openJournal } = await import('@tapedeck/graph/journal');
      openJournal(process.argv[1]).append(['{"g":1}']);`;
    // A process of its own, as the umask is everybody's here.
    execFileSync(
      process.execPath,
      ['--conditions=@tapedeck/source', '--input-type=module', '-e', script, path],
      { cwd: import.meta.dirname },
    );
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).toBe('{"g":1}\n');
  });

  test('requires its directory', () => {
    using dir = tempDir();
    using journal = openJournal(join(dir.path, 'no', 'g.jsonl'));
    expect(() => journal.tail()).toThrow(expect.objectContaining({ name: 'GraphError', code: 'GRAPH_IO' }));
  });
});

test('appends lines unchanged, and returns the last one', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  using journal = openJournal(path);
  const all = lines(3);
  journal.append(all.slice(0, 1));
  journal.append(all.slice(1));
  expect(readFileSync(path, 'utf8')).toBe(fileOf(all));
  expect(journal.tail()).toEqual({ g: 3, hash: lineHash(all[2] ?? ''), torn: false });
  using other = openJournal(path);
  expect(other.tail()).toEqual(journal.tail());
});

test('seals a torn tail when it has nothing to append, and continues after it', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  const all = lines(2);
  writeFileSync(path, `${all[0]}\n{"v":1`);
  using journal = openJournal(path);
  expect(journal.tail()).toMatchObject({ g: 1, torn: true });
  journal.append([]);
  journal.append(all.slice(1));
  expect(readFileSync(path, 'utf8')).toBe(fileOf([all[0] ?? '', '{"v":1', all[1] ?? '']));
  expect(journal.tail()).toMatchObject({ g: 2, torn: false });
});

test('a line with an LF is an error of the caller, and nothing is written', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  using journal = openJournal(path);
  expect(() => journal.append(['{"g":1}', '{"g":\n2}'])).toThrow(TypeError);
  expect(existsSync(path)).toBe(false);
});

test('a tail torn at any byte of the last line is sealed, and the file contains the line once', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  const all = lines(3);
  const whole = Buffer.from(fileOf(all));
  const lastStart = Buffer.byteLength(fileOf(all.slice(0, 2)));
  for (const kept of cases(whole.length - lastStart + 1)) {
    const before = whole.subarray(0, lastStart + kept);
    writeFileSync(path, before);
    using journal = openJournal(path);
    const { g, torn } = journal.tail();
    const complete = kept >= whole.length - lastStart - 1;
    expect({ g, torn }).toEqual({ g: complete ? 3 : 2, torn: kept > 0 && kept < whole.length - lastStart });
    drain(journal, all);
    const after = readFileSync(path);
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
    expect(journal.tail()).toEqual({ g: 3, hash: lineHash(all[2] ?? ''), torn: false });
    const report = checkJournal(readLines(path));
    expect(report).toMatchObject({ records: 3, g: 3, torn: false, problems: [] });
    expect(report.fragments).toBe(kept === 0 || complete ? 0 : 1);
    // A second open finds nothing to do.
    using again = openJournal(path);
    drain(again, all);
    expect(readFileSync(path).equals(after)).toBe(true);
  }
});

test('a drain that is interrupted again and again writes each line exactly once', () => {
  using dir = tempDir();
  const path = join(dir.path, 'g.jsonl');
  const all = lines(12);
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 48271) % 2147483647;
    return seed % below;
  };
  for (const round of cases(40)) {
    using journal = openJournal(path);
    const sizeBefore = existsSync(path) ? statSync(path).size : 0;
    drain(journal, all.slice(0, 1 + Math.floor((round * all.length) / 40)));
    const size = statSync(path).size;
    // A crash may keep any part of what was just written.
    if (size > sizeBefore) truncateSync(path, sizeBefore + 1 + random(size - sizeBefore));
  }
  using journal = openJournal(path);
  drain(journal, all);
  const report = checkJournal(readLines(path));
  expect(report).toMatchObject({ records: 12, g: 12, torn: false, problems: [] });
});

describe('the tail', () => {
  const all = lines(2);
  const good = fileOf(all);
  const last = { g: 2, hash: lineHash(all[1] ?? '') };

  test.each([
    ['a sealed fragment', `${good}{"v":1,"g":3,"ty\n`, { ...last, torn: false }],
    ['many sealed fragments', `${good}${'{"v":1\n'.repeat(50_000)}`, { ...last, torn: false }],
    ['empty lines', `${good}\n\n\n`, { ...last, torn: false }],
    ['a run of NULs', `${good}${'\0'.repeat(300_000)}`, { ...last, torn: true }],
    [
      'a megabyte of a record without LF',
      `${good}{"v":1,"g":3${'x'.repeat(1_000_000)}`,
      { ...last, torn: true },
    ],
    ['a megabyte line', `${good}{"v":1,"g":3,"x":"${'x'.repeat(1_000_000)}"}\n`, { ...last, torn: false }],
    [
      'bytes that are no UTF-8',
      Buffer.concat([Buffer.from(`${good}{"v":1,"g":3,"x":"`), Buffer.from([0xff, 0x22, 0x7d, 0x0a])]),
      { ...last, torn: false },
    ],
    ['nothing but a fragment', '{"v":1,"g":1', { g: 0, hash: firstPrev, torn: true }],
    ['nothing but LFs', '\n\n', { g: 0, hash: firstPrev, torn: false }],
  ])('is found behind %s', (_, content, tail) => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, content);
    using journal = openJournal(path);
    expect(journal.tail()).toEqual(tail);
  });

  test.each<[string, string | Buffer]>([
    ['rubbish', 'rubbish\n'],
    ['rubbish without LF', 'rubbish'],
    ['rubbish, and a fragment', 'rubbish\n{"v":1,"g":3'],
    ['a list', '[1]\n'],
    ['other JSON', '{"v":1,"g":"3"}\n'],
    ['a megabyte without LF', 'x'.repeat(1_000_000)],
    ['bytes that are no UTF-8', Buffer.from([0xff, 0xfe, 0x0a])],
    ['white space', ' \n'],
  ])('is refused when %s follows the last record', (_, content) => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, Buffer.concat([Buffer.from(good), Buffer.from(content)]));
    using journal = openJournal(path);
    const { g, hash } = journal.tail();
    expect(g).toBe(2);
    expect([firstPrev, ...all.map(lineHash)]).not.toContain(hash);
  });

  test.each([65_535, 65_536, 65_537, 131_072, lineBytesMax])(
    'is found when it ends around a block of %i bytes',
    (size) => {
      using dir = tempDir();
      const path = join(dir.path, 'g.jsonl');
      for (const more of [-1, 0, 1]) {
        const head = `{"v":1,"g":5,"prev":"${last.hash}","x":"`;
        const line = `${head}${'x'.repeat(size + more - head.length - 2)}"}`;
        writeFileSync(path, `${good}${line}\n`);
        using journal = openJournal(path);
        const expected = size + more > lineBytesMax ? last : { g: 5, hash: lineHash(line) };
        expect(journal.tail()).toEqual({ ...expected, torn: false });
      }
    },
  );

  test('is refused when it does not follow from the record before it', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, `${good}${all[0]}\n`);
    using journal = openJournal(path);
    expect(all.map(lineHash)).not.toContain(journal.tail().hash);
  });

  test('has the hash of the stored bytes, so that a changed file differs from the store', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, `\ufeff${all[0]}\n`);
    using journal = openJournal(path);
    expect(journal.tail()).toEqual({ g: 1, hash: lineHash(`\ufeff${all[0]}`), torn: false });
    writeFileSync(path, `${all[0]}\r\n`);
    expect(journal.tail()).toEqual({ g: 1, hash: lineHash(`${all[0]}\r`), torn: false });
  });
});

describe('a file that another process changes', () => {
  test('grown, shortened, replaced or removed, is read again', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    using journal = openJournal(path);
    const all = lines(4);
    journal.append(all.slice(0, 2));
    expect(journal.tail().g).toBe(2);
    appendFileSync(path, `${all[2]}\n{"v":1`);
    expect(journal.tail()).toMatchObject({ g: 3, torn: true });
    truncateSync(path, Buffer.byteLength(fileOf(all.slice(0, 1))));
    expect(journal.tail()).toMatchObject({ g: 1, torn: false });
    writeFileSync(`${path}.new`, fileOf(all));
    renameSync(`${path}.new`, path);
    expect(journal.tail().g).toBe(4);
    rmSync(path);
    expect(journal.tail().g).toBe(0);
    drain(journal, all);
    expect(readFileSync(path, 'utf8')).toBe(fileOf(all));
  });

  test('changed within its size, or replaced by one of the same size and age, is read again', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    const [before = ''] = lines(1);
    const after = before.replace('"s1"', '"x1"');
    using journal = openJournal(path);
    journal.append([before]);
    writeFileSync(path, `${after}\n`);
    utimesSync(path, 1_000, 1_000);
    expect(journal.tail().hash).toBe(lineHash(after));
    writeFileSync(`${path}.new`, `${before}\n`);
    utimesSync(`${path}.new`, 1_000, 1_000);
    renameSync(`${path}.new`, path);
    expect(journal.tail().hash).toBe(lineHash(before));
  });

  test('does not receive the lines meant for the previous file', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    using journal = openJournal(path);
    const all = lines(3);
    journal.append(all.slice(0, 2));
    rmSync(path);
    expect(() => journal.append(all.slice(2))).toThrow(expect.objectContaining({ code: 'GRAPH_IO' }));
    expect(readFileSync(path, 'utf8')).toBe('');
    drain(journal, all);
    expect(readFileSync(path, 'utf8')).toBe(fileOf(all));
  });

  test('may be used again after close', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    const journal = openJournal(path);
    const all = lines(2);
    journal.append(all.slice(0, 1));
    journal.close();
    journal.close();
    drain(journal, all);
    expect(readFileSync(path, 'utf8')).toBe(fileOf(all));
    journal.close();
  });
});

describe('a path that is no file of ours is refused', () => {
  const refuse = (make: (path: string, dir: string) => void, words: RegExp) => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    make(path, dir.path);
    using journal = openJournal(path);
    for (const act of [() => journal.tail(), () => journal.append(['{"g":1}'])]) {
      let caught: unknown;
      try {
        act();
      } catch (error) {
        caught = error;
      }
      expect(caught).toBeInstanceOf(GraphError);
      expect(caught).toMatchObject({
        code: 'GRAPH_IO',
        message: expect.stringMatching(words),
        cause: expect.any(Error),
      });
    }
  };

  test('a directory', () => refuse((path) => mkdirSync(path), /it is a directory/));
  test('a symbolic link', () =>
    refuse((path, dir) => {
      writeFileSync(join(dir, 'target'), '');
      symlinkSync('target', path);
    }, /it is a symbolic link/));
  test('a dangling link, which stays dangling', () =>
    refuse((path, dir) => {
      symlinkSync(join(dir, 'nothing'), path);
      expect(existsSync(join(dir, 'nothing'))).toBe(false);
    }, /it is a symbolic link/));
  test('a FIFO, without waiting for it', () =>
    refuse((path) => execFileSync('mkfifo', [path]), /it is not a regular file/));
  test('a device', () =>
    refuse((path) => {
      symlinkSync('/dev/null', path);
    }, /it is a symbolic link/));
  test('a file with two names', () =>
    refuse((path, dir) => {
      writeFileSync(path, '');
      linkSync(path, join(dir, 'other'));
    }, /it has 2 names/));
});
