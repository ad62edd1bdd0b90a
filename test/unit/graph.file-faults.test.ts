import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import {
  checkJournal,
  FileComparison,
  GraphError,
  openJournal,
  openSessionGraph,
  readLines,
} from '@tapedeck/graph';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { type Journal, sha256 } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore, refusal } from '../support/store.ts';
import { memoryDir, type TempDir, tempDir } from '../support/temp-dir.ts';
import { twelveActs } from '../support/twelve-acts.ts';
import { faults } from './graph.support/faults.ts';

/** A store of twelve acts of lineage, the same in every run. */
function twelve(journal: Journal): SqliteTapeStore {
  const store = openStore(':memory:', { journal });
  twelveActs(store);
  return store;
}

const bytesOf = (lines: readonly string[]) => Buffer.from(lines.map((line) => `${line}\n`).join(''));

/** The twelve lines. */
function writtenLines(): string[] {
  using dir = tempDir();
  using _store = twelve(openJournal(dir.file('g.jsonl')));
  return readFileSync(dir.file('g.jsonl'), 'utf8').split('\n').slice(0, -1);
}

const lines = writtenLines();

/** The sessions that a program reads from the file without the store. */
function read(path: string) {
  openSessionGraph(path).list();
  return checkJournal(readLines(path));
}

test('the twelve lines to damage exist, and two stores write the same', () => {
  expect(lines).toHaveLength(12);
  expect(writtenLines()).toEqual(lines);
});

describe('a graph file with', () => {
  test.each(faults)('$what', ({ spoil, named = [], opening }) => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    using store = twelve(openJournal(path));
    writeFileSync(path, spoil(lines));
    const before = readFileSync(path);
    expect(read(path).problems.map(({ code, line }) => `${code} ${line}`)).toEqual(named);
    store.catchUp();
    const after = readFileSync(path);
    const { aside } = store.graphFile;
    if (opening === 'diverged') {
      expect(aside).toEqual([`${path}.aside-${sha256(before).slice(0, 8)}`]);
      expect(readFileSync(aside[0] ?? '').equals(before)).toBe(true);
      expect(after.equals(bytesOf(lines))).toBe(true);
    } else {
      expect(aside).toEqual([]);
      expect(after.subarray(0, before.length).equals(before)).toBe(true);
      const added = after.subarray(before.length).toString('utf8');
      if (opening === 'same') expect(added).toBe('');
      else {
        expect(added.startsWith('\n')).toBe(opening === 'sealed');
        const whole = after.toString('utf8').split('\n');
        expect(whole.filter((line) => lines.includes(line))).toEqual(lines);
      }
    }
    // The next act succeeds whatever the file was; its receipt says, once, that the file differed.
    const { graphLagging, graphDiverged } = store.lineage.fork('main', { name: 'next' });
    expect({ graphLagging, graphDiverged }).toEqual({
      graphLagging: undefined,
      graphDiverged: opening === 'diverged' ? true : undefined,
    });
    expect(store.lineage.fork('main', { name: 'next-one' })).not.toHaveProperty('graphDiverged');
    const last = readFileSync(path);
    expect(last.subarray(0, after.length).equals(after)).toBe(true);
    expect(last.subarray(after.length).toString('utf8').split('\n').length).toBe(3);
    read(path);
  });

  test('any byte of its last three lines as its last: the fragment stays, and every line is written once', () => {
    using dir = memoryDir();
    const path = dir.file('g.jsonl');
    using store = twelve(openJournal(path));
    const all = bytesOf(lines);
    for (let size = bytesOf(lines.slice(0, 9)).length; size < all.length; size += sized(7, 7, 1)) {
      writeFileSync(path, all.subarray(0, size));
      store.catchUp();
      const after = readFileSync(path);
      expect(after.subarray(0, size).equals(all.subarray(0, size)), `at ${size}`).toBe(true);
      const text = after.toString('utf8');
      expect(
        text.split('\n').filter((line) => lines.includes(line)),
        `at ${size}`,
      ).toEqual(lines);
      const fragment = all.subarray(all.lastIndexOf(10, size - 1) + 1, size).toString('utf8');
      const sealed = fragment === '' || lines.includes(fragment) ? [] : [fragment];
      expect(
        text.split('\n').filter((line) => line !== '' && !lines.includes(line)),
        `at ${size}`,
      ).toEqual(sealed);
    }
  });

  test('a line of 100 MB before the last, and one as its end', () => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    using store = twelve(openJournal(path));
    const huge = sized(100, 100, 1_000) * 1_000_000;
    const head = bytesOf(lines.slice(0, 11)).length;
    truncateSync(path, head);
    truncateSync(path, head + huge);
    appendFileSync(path, `\n${lines[11]}\n`);
    expect(read(path)).toMatchObject({ records: 12, fragments: 1, problems: [] });
    store.catchUp();
    truncateSync(path, head + huge);
    expect(read(path)).toMatchObject({ records: 11, torn: true, problems: [] });
    store.catchUp();
    expect(read(path)).toMatchObject({ records: 12, fragments: 1, torn: false, problems: [] });
  });
});

describe('a graph file that is missing or behind is rewritten byte for byte', () => {
  test.each(Array.from({ length: 13 }, (_, n) => n))('%i lines are left', (n) => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    using store = twelve(openJournal(path));
    rmSync(path);
    if (n > 0) writeFileSync(path, bytesOf(lines.slice(0, n)), { mode: 0o600 });
    store.catchUp();
    expect(readFileSync(path).equals(bytesOf(lines))).toBe(true);
  });
});

describe('a graph file that is set aside', () => {
  test('gets a name of its own, also when the same bytes were set aside before', () => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    using store = twelve(openJournal(path));
    const [digest] = [sha256('rubbish').slice(0, 8)];
    for (let n = 0; n < 3; n += 1) {
      writeFileSync(path, 'rubbish');
      store.catchUp();
      expect(readFileSync(path).equals(bytesOf(lines))).toBe(true);
    }
    const asides = ['', '.2', '.3'].map((ending) => `${path}.aside-${digest}${ending}`);
    expect(store.graphFile.aside).toEqual(asides);
    for (const aside of asides) expect(readFileSync(aside, 'utf8')).toBe('rubbish');
  });

  test('is reported, and lags, when no new file can be written', () => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    const file = openJournal(path);
    let isFull = false;
    using store = twelve({
      tail: () => file.tail(),
      setAside: () => file.setAside(),
      append: (added) => {
        if (isFull) throw Object.assign(new Error('no space left'), { code: 'GRAPH_IO' });
        file.append(added);
      },
    });
    writeFileSync(path, 'rubbish');
    isFull = true;
    expect(store.lineage.fork('main', { name: 'full' })).toMatchObject({
      graphLagging: true,
      graphDiverged: true,
    });
    expect(store.graphFile.aside).toHaveLength(1);
    isFull = false;
    const next = store.lineage.fork('main', { name: 'free' });
    expect(next).not.toHaveProperty('graphLagging');
    expect(next).not.toHaveProperty('graphDiverged');
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(15);
  });

  test('is written anew by the next open when the process died after it was moved', () => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    using store = twelve(openJournal(path));
    writeFileSync(path, 'rubbish');
    openJournal(path).setAside();
    expect(existsSync(path)).toBe(false);
    store.catchUp();
    expect(readFileSync(path).equals(bytesOf(lines))).toBe(true);
  });

  test('is not when the database is new: its records are all that is left of another one', () => {
    using dir = tempDir();
    const path = dir.file('g.jsonl');
    writeFileSync(path, bytesOf(lines));
    expect(refusal(() => openStore(':memory:', { journal: openJournal(path) })).code).toBe('GRAPH_DIVERGED');
    expect(readFileSync(path).equals(bytesOf(lines))).toBe(true);
    writeFileSync(path, 'rubbish');
    using store = openStore(':memory:', { journal: openJournal(path) });
    expect(store.graphFile.aside).toHaveLength(1);
  });
});

describe('a graph file that cannot be written: acts succeed, and report that it lags', () => {
  const refused = async (make: (path: string, dir: TempDir) => unknown, mend: (path: string) => void) => {
    using dir = tempDir();
    mkdirSync(dir.file('home'), { mode: 0o700 });
    const path = dir.file('home/g.jsonl');
    using store = twelve(openJournal(path));
    const made = await make(path, dir);
    try {
      expect(store.lineage.fork('main', { name: 'x' })).toMatchObject({ session: 'x', graphLagging: true });
      store.catchUp();
      try {
        read(path);
      } catch (error) {
        expect(error).toBeInstanceOf(GraphError);
      }
      expect(store.sessions.find('x')?.session).toBe('x');
    } finally {
      mend(path);
      if (made instanceof Object && 'close' in made) (made as { close(): void }).close();
    }
    expect(store.lineage.fork('main', { name: 'y' })).not.toHaveProperty('graphLagging');
    expect(read(path)).toMatchObject({ records: 14, problems: [] });
  };
  const remove = (path: string) => rmSync(path, { recursive: true });

  test('a directory', () =>
    refused((path) => {
      rmSync(path);
      mkdirSync(path);
    }, remove));
  test('a FIFO', () =>
    refused((path) => {
      rmSync(path);
      execFileSync('mkfifo', [path]);
    }, remove));
  test('a socket', () =>
    refused(async (path) => {
      rmSync(path);
      const server = createServer().listen(path);
      await new Promise((resolve) => server.once('listening', resolve));
      return server;
    }, remove));
  test('a link', () =>
    refused((path, dir) => {
      rmSync(path);
      writeFileSync(dir.file('victim'), '');
      symlinkSync(dir.file('victim'), path);
    }, remove));
  // For root, permissions do not count.
  const user = process.getuid?.() !== 0;
  test.skipIf(!user)('a read-only file (needs a user that is not root)', () =>
    refused(
      (path) => {
        // Another file: the descriptor of the one that the store has open would still write.
        const bytes = readFileSync(path);
        rmSync(path);
        writeFileSync(path, bytes, { mode: 0o400 });
      },
      (path) => chmodSync(path, 0o600),
    ),
  );
  test.skipIf(!user)('a read-only directory (needs a user that is not root)', () =>
    refused(
      (path) => {
        rmSync(path);
        chmodSync(dirname(path), 0o500);
      },
      (path) => chmodSync(dirname(path), 0o700),
    ),
  );
});

/** A change of a fuzzer: a run of bytes changed, removed, duplicated, moved or inserted. */
const mutation = fc.record({
  kind: fc.constantFrom('change', 'remove', 'double', 'move', 'insert', 'cut', 'zero'),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  to: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 2000 })),
  whole: fc.boolean(),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 6 }),
    fc.constantFrom('\n', '\r\n', '\0', '}', '{"v":1').map((text) => Buffer.from(text)),
  ),
});

type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutate(bytes: Buffer, { kind, at, to, length, whole, bytes: other }: Mutation): Buffer {
  // Whole lines as often as any place in them.
  const place = (where: number) => {
    const exact = Math.floor(where * bytes.length);
    return whole ? bytes.indexOf(10, exact) + 1 : exact;
  };
  const from = place(at);
  const end = whole ? bytes.indexOf(10, from) + 1 || bytes.length : Math.min(bytes.length, from + length);
  const [before, run, after] = [bytes.subarray(0, from), bytes.subarray(from, end), bytes.subarray(end)];
  switch (kind) {
    case 'change':
      return Buffer.concat([before, run.map((byte) => byte ^ (other[0] ?? 1)), after]);
    case 'zero':
      return Buffer.concat([before, Buffer.alloc(run.length), after]);
    case 'remove':
      return Buffer.concat([before, after]);
    case 'double':
      return Buffer.concat([before, run, run, after]);
    case 'insert':
      return Buffer.concat([before, other, run, after]);
    case 'cut':
      return Buffer.from(before);
    default: {
      const rest = Buffer.concat([before, after]);
      const there = Math.min(rest.length, place(to));
      return Buffer.concat([rest.subarray(0, there), run, rest.subarray(there)]);
    }
  }
}

test(
  'after any change of its bytes readers continue, old bytes stay in a file, and the fault is named',
  () => {
    using dir = memoryDir();
    const path = dir.file('g.jsonl');
    // One store for all: only the file is another one each time.
    let journal = openJournal(path);
    using store = twelve({
      tail: () => journal.tail(),
      append: (added) => journal.append(added),
      setAside: () => journal.setAside(),
    });
    const all = bytesOf(lines);
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 3 }), (mutations) => {
        const before = mutations.reduce(mutate, all);
        writeFileSync(path, before);
        const { problems, g, hash } = read(path);
        journal.close();
        journal = openJournal(path);
        const known = store.graphFile.aside.length;
        store.catchUp();
        const after = readFileSync(path);
        const [aside] = store.graphFile.aside.slice(known);
        const kept = readFileSync(aside ?? path);
        expect(kept.subarray(0, before.length).equals(before)).toBe(true);
        if (aside !== undefined) {
          expect(kept.length).toBe(before.length);
          const differs = g === 0 || hash !== store.lineageHash(g)?.hash;
          using comparison = new FileComparison(aside);
          for (const line of lines) comparison.expect(line);
          expect(problems.length > 0 || differs || comparison.standing === 'differs').toBe(true);
          expect(after.equals(all)).toBe(true);
          rmSync(aside);
          return;
        }
        // Opened, and nothing named: then every line is there, in order and once.
        if (read(path).problems.length > 0) return;
        const whole = after.toString('utf8').split('\n');
        expect(whole.filter((line) => lines.includes(line))).toEqual(lines);
        expect(read(path)).toMatchObject({ records: 12, g: 12, torn: false });
      }),
      {
        numRuns: sized(60, 200, 200_000),
        examples: [
          // A line appears twice, and the second time without its LF.
          [
            [
              { kind: 'cut', at: 0, to: 0, length: 1, whole: true, bytes: Uint8Array.of(0) },
              { kind: 'move', at: 0.998, to: 0, length: 1, whole: false, bytes: Uint8Array.of(0) },
              { kind: 'double', at: 0, to: 0, length: 489, whole: false, bytes: Buffer.from([10]) },
            ],
          ],
          // The last LF became a tab: what is left is no record that lacks only its LF.
          [
            [
              {
                kind: 'change',
                at: 1 - 1 / (2 * all.length),
                to: 0,
                length: 1,
                whole: false,
                bytes: Uint8Array.of(3),
              },
            ],
          ],
        ],
      },
    );
  },
  sized(180_000, 180_000, 1_800_000),
);

describe('a graph file that is as the last update left it', () => {
  /** A journal that counts how often the store compares all lines. */
  function counting(path: string) {
    const journal = openJournal(path);
    const holds = journal.holds.bind(journal);
    let compared = 0;
    journal.holds = (all) => {
      compared += 1;
      return holds(all);
    };
    return { journal, compared: () => compared };
  }

  test('is not read from its beginning again, by this store or the next one', () => {
    using dir = tempDir();
    const [db, path] = [dir.file('tape.db'), dir.file('g.jsonl')];
    {
      const { journal, compared } = counting(path);
      using store = openTapeStore(db, { journal });
      twelveActs(store);
      const before = compared();
      for (let n = 0; n < 5; n += 1) store.lineage.fork('main', { name: `more-${n}` });
      expect(compared()).toBe(before);
    }
    const { journal, compared } = counting(path);
    using store = openTapeStore(db, { journal });
    store.lineage.fork('main', { name: 'next' });
    expect(compared()).toBe(0);
  });

  test('is compared once, and kept, after it was copied or touched', () => {
    using dir = tempDir();
    const [db, path] = [dir.file('tape.db'), dir.file('g.jsonl')];
    {
      using store = openTapeStore(db, { journal: openJournal(path) });
      twelveActs(store);
    }
    const bytes = readFileSync(path);
    rmSync(path);
    writeFileSync(path, bytes, { mode: 0o600 });
    const { journal, compared } = counting(path);
    using store = openTapeStore(db, { journal });
    expect(compared()).toBe(1);
    expect(store.graphFile.aside).toEqual([]);
    store.lineage.fork('main', { name: 'next' });
    expect(compared()).toBe(1);
    expect(readFileSync(path).subarray(0, bytes.length).equals(bytes)).toBe(true);
  });

  test('is set aside when an edit keeps its length and the time of its last change', () => {
    using dir = tempDir();
    const [db, path] = [dir.file('tape.db'), dir.file('g.jsonl')];
    {
      using store = openTapeStore(db, { journal: openJournal(path) });
      twelveActs(store);
    }
    const { atime, mtime } = statSync(path);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"g":1,', '"g":9,'));
    utimesSync(path, atime, mtime);
    using store = openTapeStore(db, { journal: openJournal(path) });
    expect(store.graphFile.aside).toHaveLength(1);
  });

  test('is not set aside when a comparison of all lines cannot read it', () => {
    using dir = tempDir();
    const [db, path] = [dir.file('tape.db'), dir.file('g.jsonl')];
    {
      using store = openTapeStore(db, { journal: openJournal(path) });
      twelveActs(store);
    }
    const before = readFileSync(path);
    utimesSync(path, 1, 1); // It is not as the last update left it.
    const journal = openJournal(path);
    journal.holds = () => openJournal(dir.path).holds([]); // A directory cannot be read.
    using store = openTapeStore(db, { journal });
    expect(store.sessions.open('x')).toMatchObject({ created: true, graphLagging: true });
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(dir.path).filter((name) => name.includes('aside'))).toEqual([]);
  });
});
