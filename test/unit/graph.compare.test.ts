import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { comparing, FileComparison, type Standing } from '@tapedeck/graph';
import { openJournal } from '@tapedeck/graph/journal';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { encodeLine } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { twelveActs } from '../support/twelve-acts.ts';
import { type Fault, faults } from './graph.support/faults.ts';

function standingOf(store: SqliteTapeStore, path: string): [Standing, number | undefined] {
  using comparison = new FileComparison(path);
  const lines = comparing(comparison, {
    read: (from) => store.lineage.read({ from }),
    encode: encodeLine,
  });
  expect(Array.from(lines, ({ g }) => g)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
  return [comparison.standing, comparison.line];
}

/** What a comparison says of a fault that the check of the file alone, or the next opening, reports. */
function expected({ what, named = [], opening }: Fault): Standing {
  // What is glued begins like a record, so it counts as a fragment: its record is missing.
  if (what === 'a fragment glued to the last line') return 'behind';
  if (named.length > 0 || opening === 'diverged') return 'differs';
  return opening === 'same' || /^(?:the last LF gone|NULs at the end)$/.test(what) ? 'same' : 'behind';
}

describe('a graph file compared with its database:', () => {
  using dir = tempDir();
  const path = dir.file('g.jsonl');
  const lines = (() => {
    using store = openStore(':memory:', { journal: openJournal(path) });
    twelveActs(store);
    return readFileSync(path, 'utf8').split('\n').slice(0, -1);
  })();

  test.each(faults)('$what', (fault) => {
    using own = tempDir();
    const file = own.file('g.jsonl');
    using store = openStore(':memory:');
    twelveActs(store);
    writeFileSync(file, fault.spoil(lines));
    const [standing, line] = standingOf(store, file);
    expect(standing).toBe(expected(fault));
    expect(line !== undefined).toBe(standing === 'differs');
  });

  test('a missing file', () => {
    using own = tempDir();
    using store = openStore(':memory:');
    twelveActs(store);
    expect(standingOf(store, own.file('none'))).toEqual(['behind', undefined]);
  });

  test('a directory', () => {
    using own = tempDir();
    using store = openStore(':memory:');
    twelveActs(store);
    expect(standingOf(store, own.path)).toEqual(['unreadable', undefined]);
  });

  test('lines that another process adds to both meanwhile are no difference', () => {
    using own = tempDir();
    const file = own.file('g.jsonl');
    using store = openStore(':memory:', { journal: openJournal(file) });
    store.sessions.open('main');
    using comparison = new FileComparison(file);
    let added = 0;
    const seen: number[] = [];
    for (const { g } of comparing(comparison, {
      read: (from) => {
        // Read before the next line is written, as a page of another process's lines would be.
        const page = [...store.lineage.read({ from })];
        if (added < 3) store.lineage.fork('main', { name: `f${added++}` });
        return page;
      },
      encode: encodeLine,
    }))
      seen.push(g);
    expect([comparison.standing, seen]).toEqual(['same', [1, 2, 3, 4]]);
    rmSync(file);
  });
});
