import { existsSync, readFileSync } from 'node:fs';
import { checkJournal, readLines } from '@tapedeck/graph';
import { openJournal } from '@tapedeck/graph/journal';
import { openTapeStore, type SqliteTapeStore } from '@tapedeck/tape';
import { type Acknowledged, lostOrDoubled } from './acknowledged.ts';
import { importAll } from './crash-acts.ts';
import { graphDifferences } from './graph-agrees.ts';
import { halves } from './halves.ts';
import { facts, type RawDb, rawDb } from './raw-db.ts';
import type { TempHome } from './temp-home.ts';

/** The faults of a home after its recovery. Opens it, which is the last recovery, and repairs what it can. */
export function faultsAfterRecovery(
  home: Pick<TempHome, 'db' | 'graph'>,
  acks: readonly Acknowledged[],
): string[] {
  try {
    using journal = openJournal(home.graph);
    using store = openTapeStore(home.db, { journal });
    using db = rawDb(home.db);
    return faultsOf({ store, db, graph: home.graph }, acks);
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}

interface Recovered {
  readonly store: SqliteTapeStore;
  readonly db: RawDb;
  readonly graph: string;
}

function faultsOf({ store, db, graph }: Recovered, acks: readonly Acknowledged[]): string[] {
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
function whole({ store, db, graph }: Recovered): string[] {
  const report = checkJournal(existsSync(graph) ? readLines(graph) : []);
  const text = existsSync(graph) ? readFileSync(graph, 'utf8') : '';
  return [
    ...[...store.verify()].map(({ code, message }) => `${code}: ${message}`),
    ...halves(db),
    ...report.problems.map(({ code, message }) => `graph ${code}: ${message}`),
    ...graphDifferences(text, db),
    ...[...store.sessions.list({ all: true })].flatMap(({ session: name, id }) =>
      store.inbox.list(id).map(({ key }) => `${name} has ${key} in its inbox still`),
    ),
  ];
}
