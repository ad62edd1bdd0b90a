import { existsSync, readFileSync } from 'node:fs';
import { checkJournal, readLines } from '@tapedeck/graph';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { type Acknowledged, lostOrDoubled } from './acknowledged.ts';
import { importAll } from './crash-acts.ts';
import { graphDifferences } from './graph-agrees.ts';
import { halves } from './halves.ts';
import { facts, type RawDb } from './raw-db.ts';

/** What is wrong with a home after its recovery; the store is open on it for writing. Mends what can be mended. */
export function faultsAfterRecovery(
  { store, db, graph }: { store: SqliteTapeStore; db: RawDb; graph: string },
  acks: readonly Acknowledged[],
): string[] {
  const faults = whole({ store, db, graph });
  for (const { code, session } of [...store.examine()])
    if (code === 'staging-left' && session !== null) importAll(store, session);
  for (const finding of [...store.examine()]) store.mend(finding);
  faults.push(...[...store.examine()].map(({ code, message }) => `${code} after mending: ${message}`));
  const before = facts(db);
  faults.push(...acks.flatMap((ack) => lostOrDoubled(store, ack)));
  if (facts(db) !== before) faults.push('asking for what was done already changed something');
  return [...faults, ...whole({ store, db, graph })];
}

/** Damage, acts of which only a part is there, and a graph file that is not the lineage. */
function whole({ store, db, graph }: { store: SqliteTapeStore; db: RawDb; graph: string }): string[] {
  const report = checkJournal(existsSync(graph) ? readLines(graph) : []);
  const text = existsSync(graph) ? readFileSync(graph, 'utf8') : '';
  return [
    ...[...store.verify()].map(({ code, message }) => `${code}: ${message}`),
    ...halves(db),
    ...report.problems.map(({ code, message }) => `graph ${code}: ${message}`),
    ...graphDifferences(text, db),
    ...[...store.sessions({ all: true })].flatMap(({ name }) =>
      store.inbox(name).map(({ key }) => `${name} has ${key} in its inbox still`),
    ),
  ];
}
