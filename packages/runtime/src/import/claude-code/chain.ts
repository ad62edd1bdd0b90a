import type { DerivedEdge } from '../plan.ts';
import { type CodeRecord, isBoundary, isSummary } from '../records.ts';

/** The records of a file as a forest. */
export interface Chain {
  readonly records: readonly CodeRecord[];
  /** The predecessor of each record that has one. */
  readonly parents: ReadonlyMap<CodeRecord, CodeRecord>;
  /** The records that are part of a chain, by their trees; the roots are in the order of the file. */
  readonly trees: readonly (readonly CodeRecord[])[];
  readonly derived: readonly DerivedEdge[];
}

/**
 * Links records to their predecessors. A predecessor that the file lacks, and the one of a compaction that names none, is
 * the main record before it in the file: one file is one session, and its order is the only evidence left. Any other record
 * without a predecessor begins a tree: the first one, and the one after `/clear`. A link that would close a circle is cut.
 */
export function chainOf(records: readonly CodeRecord[]): Chain {
  const byId = new Map<string, CodeRecord>();
  for (const record of records) if (record.id !== undefined) byId.set(record.id, record);
  const parents = new Map<CodeRecord, CodeRecord>();
  const derived: DerivedEdge[] = [];
  const chained = records.filter(({ id }) => id !== undefined);
  // Links that all lead backwards in the file close no circle.
  let forwards = false;
  for (const record of chained) {
    const named = record.parent === undefined ? undefined : byId.get(record.parent);
    const restarts = isBoundary(record) || isSummary(record);
    const before =
      record.before !== undefined && (record.parent !== undefined || restarts)
        ? byId.get(record.before)
        : undefined;
    const parent = named ?? before;
    if (parent === undefined) continue;
    forwards ||= parent.ordinal >= record.ordinal;
    if (forwards && reaches(parent, record, parents)) continue;
    parents.set(record, parent);
    if (named !== undefined) continue;
    derived.push({ of: record.key, from: parent.key, why: restarts ? 'compaction' : 'parent-missing' });
  }
  return { records, parents, trees: treesOf(chained, parents), derived };
}

/** Whether a record is among the predecessors of another, or is that record. */
function reaches(
  from: CodeRecord,
  record: CodeRecord,
  parents: ReadonlyMap<CodeRecord, CodeRecord>,
): boolean {
  for (let at: CodeRecord | undefined = from; at !== undefined; at = parents.get(at))
    if (at === record) return true;
  return false;
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
