import { join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { assistant, openTapeStore, type SqliteTapeStore, user } from '@tapedeck/tape';
import type { Journal } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { hasPeak, peakMemory } from '../support/peak-memory.ts';
import { sized } from '../support/size.ts';
import { memoryDir } from '../support/temp-dir.ts';

/** What every verb may need, in MB, however large the home is. A process that only opens a database needs 50. */
const budget = 120;

/** The same of a verb that searches: it indexes up to 16 MB of what is not indexed yet. */
const searchBudget = 180;

const limit = sized(60_000, 300_000, 3_600_000);

const usage = { input: 100, output: 20, reasoning: 0, cacheRead: 10, cacheWrite: 5 };

async function within(home: string, lines: readonly string[], most = budget): Promise<void> {
  for (const line of lines) {
    const { peak, bytes } = await peakMemory(home, line.split(' '));
    expect(bytes, line).toBeGreaterThan(0);
    expect(peak, `MB of tape ${line}`).toBeLessThanOrEqual(most);
  }
}

function storeIn(home: string, journal?: Journal): SqliteTapeStore {
  return openTapeStore(join(home, 'tape.db'), {
    durability: 'fast',
    ...(journal !== undefined && { journal }),
  });
}

/** Roots with ten children each, whose work is merged. */
function manySessions(home: string, count: number): void {
  {
    using store = storeIn(home);
    for (let n = 0; n < count; n += 11) {
      store.sessions.open(`s${n}`);
      store.entries.append(`s${n}`, [user('Plan it.'), assistant('Planned.', { model: 'a/b', usage })]);
      for (let at = n + 1; at < n + 11; at += 1) {
        store.lineage.fork(`s${n}`, { name: `s${at}`, intention: { nextSteps: 'Do it.' } });
        store.entries.append(`s${at}`, [assistant('Done.', { run: 'r', model: 'a/b', usage })]);
        store.lineage.merge(`s${at}`);
      }
    }
  }
  // Writes the graph file in one go.
  storeIn(home, openJournal(join(home, 'session_graph.jsonl'))).close();
}

function longSession(home: string, count: number): void {
  using store = storeIn(home, openJournal(join(home, 'session_graph.jsonl')));
  store.sessions.open('main');
  for (let n = 0; n < count; n += 1000)
    store.entries.append(
      'main',
      Array.from({ length: 1000 }, (_, i) =>
        assistant(`entry ${n + i} ${'x'.repeat(sized(200, 1_500, 200))}`, { model: 'a/b', usage }),
      ),
    );
}

describe.skipIf(!hasPeak)('120 MB suffice (needs /proc)', () => {
  test('for verbs that look at many sessions', { timeout: limit }, async () => {
    using dir = memoryDir();
    manySessions(dir.path, sized(110, 2_200, 100_001));
    await within(dir.path, [
      'verify',
      'audit',
      'usage',
      'usage --tree',
      'sessions',
      'sessions --json',
      'sessions --tree --jsonl',
      'sessions --sort tokens --quiet',
      'graph',
      'graph --all',
      'graph --json',
      ...['tree', 'dot', 'mermaid', 'svg'].map((format) => `graph --format ${format}`),
    ]);
  });

  test('for verbs that look at a long session', { timeout: limit }, async () => {
    using dir = memoryDir();
    longSession(dir.path, sized(1_000, 30_000, 1_000_000));
    await within(dir.path, [
      'log main --jsonl',
      'log main --json',
      'verify',
      'verify main',
      'audit',
      'usage main',
      'graph',
    ]);
    await within(dir.path, ['redact main@3 --reason test'], searchBudget);
  });
});
