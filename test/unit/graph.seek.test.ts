import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { findRecords } from '@tapedeck/graph';
import { openJournal } from '@tapedeck/graph/journal';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

test('each record of a graph file is found by its number, also beside lines that are none', () => {
  using dir = tempDir();
  const graph = dir.file('session_graph.jsonl');
  {
    using store = openStore(dir.file('tape.db'), { journal: openJournal(graph) });
    store.sessions.open('main');
    for (let n = 0; n < 400; n += 1)
      store.lineage.fork('main', {
        name: `child-${n}`,
        intention: { nextSteps: 'x'.repeat((n * 37) % 180) },
      });
  }
  const lines = readFileSync(graph, 'utf8').trimEnd().split('\n');
  const numbers = lines.map((_, at) => at + 1);
  const expected = new Map(lines.map((line, at) => [at + 1, line]));
  expect(lines.join('\n').length).toBeGreaterThan(200_000);
  expect(findRecords(graph, numbers)).toEqual(expected);
  expect(findRecords(graph, [0, 402, 1e9])).toEqual(new Map());
  // A line that is missing, and text of others.
  const without = lines.toSpliced(200, 1).toSpliced(100, 0, 'what a person wrote', '');
  writeFileSync(graph, `${without.join('\n')}\n`);
  expected.delete(201);
  expect(findRecords(graph, numbers)).toEqual(expected);
  appendFileSync(graph, '{"v":1,"g":402,"torn');
  expect(findRecords(graph, [402, 401])).toEqual(new Map([[401, lines[400]]]));
  expect(findRecords(dir.file('none.jsonl'), [1])).toEqual(new Map());
});
