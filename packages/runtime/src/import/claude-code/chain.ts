import type { DerivedEdge } from '../plan.ts';
import { type CodeRecord, isBoundary, isSummary } from './records.ts';

/** The records of a file as a forest. */
export interface Chain {
  readonly records: readonly CodeRecord[];
  /** The predecessor of each record that has one. */
  readonly parents: ReadonlyMap<CodeRecord, CodeRecord>;
  /** The records that are part of a chain, by their trees; the roots are in the order of the file. */
  readonly trees: readonly (readonly CodeRecord[])[];
  /** The links that no record names: the record, its predecessor, and why. */
  readonly derived: readonly DerivedLink[];
}

/** A link of a record to a predecessor that it does not name. */
export interface DerivedLink extends Pick<DerivedEdge, 'why' | 'evidence'> {
  readonly record: CodeRecord;
  readonly parent: CodeRecord;
}

/**
 * Links records to their predecessors. A predecessor that the file lacks, and the one of a compaction that names none, is
 * the main record before it in the file: one file is one session, and its order is the only evidence left. Any other record
 * without a predecessor begins a tree: the first one, and the one after `/clear`. Of a circle, the first record in the file
 * begins a tree.
 */
export function chainOf(records: readonly CodeRecord[]): Chain {
  const byId = new Map<string, CodeRecord>();
  for (const record of records) if (record.id !== undefined) byId.set(record.id, record);
  const parents = new Map<CodeRecord, CodeRecord>();
  const chained = records.filter(({ id }) => id !== undefined);
  const found = (id: string | undefined) => (id === undefined ? undefined : byId.get(id));
  for (const record of chained) {
    const isBridged = record.parent !== undefined || isBoundary(record) || isSummary(record);
    const parent = found(record.parent) ?? (isBridged ? found(record.before) : undefined);
    if (parent !== undefined) parents.set(record, parent);
  }
  cutCircles(chained, parents);
  const derived = chained.flatMap((record): DerivedLink[] => {
    const parent = parents.get(record);
    if (parent === undefined || parent === found(record.parent)) return [];
    const why = isBoundary(record) || isSummary(record) ? 'compaction' : 'parent-missing';
    const named =
      record.parent === undefined ? 'it names no parent' : `its parent ${record.parent} is not in the file`;
    const evidence = `${named}; record ${parent.ordinal} is the one before it`;
    return [{ record, parent, why, evidence }];
  });
  return { records, parents, trees: treesOf(chained, parents), derived };
}

function cutCircles(chained: readonly CodeRecord[], parents: Map<CodeRecord, CodeRecord>): void {
  /** The records that were walked over, by the one from which the walk began. */
  const walks = new Map<CodeRecord, CodeRecord>();
  for (const start of chained) {
    const walked: CodeRecord[] = [];
    let at: CodeRecord | undefined = start;
    for (; at !== undefined && !walks.has(at); at = parents.get(at)) {
      walks.set(at, start);
      walked.push(at);
    }
    if (at === undefined || walks.get(at) !== start) continue;
    const circle = walked.slice(walked.indexOf(at));
    const first = circle.reduce((a, b) => (a.ordinal < b.ordinal ? a : b));
    parents.delete(first);
  }
}

function treesOf(
  chained: readonly CodeRecord[],
  parents: ReadonlyMap<CodeRecord, CodeRecord>,
): (readonly CodeRecord[])[] {
  const roots = new Map<CodeRecord, CodeRecord>();
  const rootOf = (record: CodeRecord): CodeRecord => {
    const walked: CodeRecord[] = [];
    let at = record;
    for (;;) {
      const known = roots.get(at);
      const parent = known === undefined ? parents.get(at) : undefined;
      if (known !== undefined || parent === undefined) {
        const root = known ?? at;
        for (const one of walked) roots.set(one, root);
        roots.set(at, root);
        return root;
      }
      walked.push(at);
      at = parent;
    }
  };
  const trees = new Map<CodeRecord, CodeRecord[]>();
  for (const record of chained) {
    const root = rootOf(record);
    const tree = trees.get(root);
    if (tree === undefined) trees.set(root, [record]);
    else tree.push(record);
  }
  return [...trees.values()];
}

/** A record and its predecessors, the first one first. */
export function pathTo(end: CodeRecord, { parents }: Pick<Chain, 'parents'>): CodeRecord[] {
  const path: CodeRecord[] = [];
  for (let at: CodeRecord | undefined = end; at !== undefined; at = parents.get(at)) path.push(at);
  return path.reverse();
}
