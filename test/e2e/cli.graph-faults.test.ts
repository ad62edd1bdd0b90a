import { readFileSync, writeFileSync } from 'node:fs';
import { openJournal } from '@tapedeck/graph';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempHome } from '../support/temp-home.ts';
import { twelveActs } from '../support/twelve-acts.ts';
import { faults } from '../unit/graph.support/faults.ts';

test('verify names each fault of a graph file with its line, accepts a file that only lags, and writes nothing', async () => {
  using home = tempHome();
  {
    using store = openStore(home.db, { journal: openJournal(home.graph) });
    twelveActs(store);
  }
  const lines = readFileSync(home.graph, 'utf8').split('\n').slice(0, -1);
  for (const { what, spoil, named = [], opening } of faults) {
    writeFileSync(home.graph, spoil(lines));
    const before = [readFileSync(home.graph), readFileSync(home.db)];
    const { code, stdout } = await home.here(['verify', '--json']);
    const { problems } = JSON.parse(stdout) as { problems: { code: string; message: string }[] };
    const told = problems.map((p) => [p.code, /line (\d+)/.exec(p.message)?.[1]].join(' '));
    const differs = named.length === 0 && opening === 'diverged';
    const expected = differs
      ? [expect.stringMatching(/^graph-(?:differs |foreign)/)]
      : named.map((one) => `graph-${one}`);
    expect(told, what).toEqual(expected);
    expect(code, what).toBe(expected.length === 0 ? 0 : 5);
    expect([readFileSync(home.graph), readFileSync(home.db)], what).toEqual(before);
  }
});
