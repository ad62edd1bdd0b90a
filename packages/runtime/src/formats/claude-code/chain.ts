import type { DerivedEdge } from '../../plan/plan.ts';
import { ByRecord } from './by-record.ts';
import { keptBy } from './kept.ts';
import { type CodeRecord, isBoundary, isSummary } from './records.ts';

/** The records of a file as a forest. */
export interface Chain {
  readonly records: readonly CodeRecord[];
  /** The predecessor of each record that has one. */
  readonly parents: Pick<ByRecord<CodeRecord>, 'get' | 'has'>;
  /** The records that are part of a chain, by their trees, in the order in which these begin. A tree can have several roots. */
  readonly trees: readonly (readonly CodeRecord[])[];
  /** The links that no record names: the record, its predecessor, and why. */
  readonly derived: readonly DerivedLink[];
  /** The first record of each circle, which follows the one before it in place of its parent. */
  readonly circular: ReadonlySet<CodeRecord>;
}

/** A link of a record to a predecessor that it does not name. */
export interface DerivedLink extends Pick<DerivedEdge, 'why' | 'evidence'> {
  readonly record: CodeRecord;
  readonly parent: CodeRecord;
}

/**
 * Links records to their predecessors. Where the file does not say which that is, it is the main record before it in the
 * file that does not follow it: one file is one session, and its order is the only evidence left. So it is with a parent
 * that the file lacks, with a compaction that names none, and with the first record of a circle. Any other record without
 * a predecessor begins a tree: the first one, and the one after `/clear`. A first prompt that was typed anew has none either,
 * and is in the tree of the one in whose place it is.
 */
export function chainOf(records: readonly CodeRecord[]): Chain {
  const first = records[0]?.ordinal ?? 1;
  const found = (ordinal: number | undefined) =>
    ordinal === undefined ? undefined : records[ordinal - first];
  const parents = new ByRecord<CodeRecord>();
  const chained = records.filter(({ isChained }) => isChained);
  for (const record of chained) {
    const parent = found(record.parentAt);
    if (parent !== undefined) parents.set(record, parent);
  }
  const cut = cutCircles(chained, parents);
  const circular = cut.union(followKept(chained, parents));
  const rootOf = rootsIn(parents);
  const derived = new Map<CodeRecord, DerivedLink>();
  for (const record of chained) {
    if (parents.has(record) || !isBridged(record)) continue;
    let parent = found(record.beforeAt);
    while (parent !== undefined && rootOf(parent) === record)
      // What is between the two records of such a link follows the same root.
      parent = found((derived.get(parent)?.parent ?? parent).beforeAt);
    if (parent === undefined) continue;
    parents.set(record, parent);
    derived.set(record, { record, parent, ...reasonOf(record, parent, circular.has(record)) });
  }
  return {
    records,
    parents,
    trees: treesOf(chained, parents, rootOf),
    derived: [...derived.values()],
    circular,
  };
}

/** Whether a record without a predecessor in the file has one all the same. */
function isBridged(record: CodeRecord): boolean {
  return record.parent !== undefined || isBoundary(record) || isSummary(record);
}

function reasonOf(
  record: CodeRecord,
  { ordinal }: CodeRecord,
  isCircular: boolean,
): Pick<DerivedEdge, 'why' | 'evidence'> {
  const before = `record ${ordinal} is the one before it`;
  if (isCircular) {
    const fault = isOwnParent(record)
      ? 'it is its own parent'
      : `its parent ${record.parent} follows it in a circle`;
    return { why: 'circle', evidence: `line ${record.line}, byte ${record.offset}: ${fault}; ${before}` };
  }
  const why = isBoundary(record) || isSummary(record) ? 'compaction' : 'parent-missing';
  const named =
    record.parent === undefined ? 'it names no parent' : `its parent ${record.parent} is not in the file`;
  return { why, evidence: `${named}; ${before}` };
}

/**
 * Puts what follows the last record that a compaction kept behind its summary, as the model gets it: Claude Code names that
 * record, which it has in memory behind the summary. And lets a compaction follow the last record that it kept, where it names
 * the last one that it summed up, and what it kept follows that ("Summarize up to here"): so what it kept is on its path.
 * Returns the records that are the first ones of circles since, as only a damaged file has them.
 */
function followKept(chained: readonly CodeRecord[], parents: ByRecord<CodeRecord>): ReadonlySet<CodeRecord> {
  const boundaries = chained.filter(isBoundary).map((boundary) => ({ boundary, ...keptBy(boundary) }));
  const wanted = new Set(boundaries.flatMap(({ tail, anchor }) => [tail, anchor]));
  const named = new Map(chained.filter(({ id }) => wanted.has(id)).map((one) => [one.id, one]));
  named.delete(undefined);
  const summaries = new Map<number | undefined, CodeRecord>();
  for (const { boundary, tail, anchor } of boundaries) {
    const [last, summary] = [named.get(tail), named.get(anchor)];
    if (last === undefined || last.ordinal > boundary.ordinal) continue;
    if (summary !== undefined && summary.ordinal > boundary.ordinal) summaries.set(last.ordinal, summary);
    const summedUp = parents.get(boundary);
    for (let at = summedUp && parents.get(last); at !== undefined && at !== boundary; at = parents.get(at))
      if (at === summedUp) {
        parents.set(boundary, last);
        break;
      }
  }
  if (summaries.size === 0) return new Set();
  for (const record of chained) {
    const summary = summaries.get(record.parentAt);
    if (summary !== undefined && record.ordinal > summary.ordinal) parents.set(record, summary);
  }
  return cutCircles(chained, parents);
}

/** Whether a record names itself as its parent. */
export function isOwnParent({ ordinal, parentAt }: CodeRecord): boolean {
  return parentAt === ordinal;
}

/** Takes the predecessor of the first record of each circle away, and returns these records. */
function cutCircles(chained: readonly CodeRecord[], parents: ByRecord<CodeRecord>): ReadonlySet<CodeRecord> {
  const cut = new Set<CodeRecord>();
  /** The records that were walked over, by the one from which the walk began. */
  const walks = new ByRecord<CodeRecord>();
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
    cut.add(first);
  }
  return cut;
}

/** Finds the root of a record, also after roots have got predecessors. */
function rootsIn(parents: Chain['parents']): (record: CodeRecord) => CodeRecord {
  /** What is before a record, as far as it was walked. */
  const ahead = new ByRecord<CodeRecord>();
  return (record) => {
    const walked: CodeRecord[] = [];
    let root = record;
    for (;;) {
      const next = ahead.get(root) ?? parents.get(root);
      if (next === undefined) break;
      walked.push(root);
      root = next;
    }
    for (const one of walked) ahead.set(one, root);
    return root;
  };
}

function treesOf(
  chained: readonly CodeRecord[],
  parents: ByRecord<CodeRecord>,
  rootOf: (record: CodeRecord) => CodeRecord,
): (readonly CodeRecord[])[] {
  /** The first root of the tree of each root. */
  const firsts = new ByRecord<CodeRecord>();
  let [first, clearsElsewhere] = [undefined as CodeRecord | undefined, false];
  for (const record of chained) {
    clearsElsewhere ||= record.traits.hasPromptSource;
    if (parents.has(record)) continue;
    first = first !== undefined && clearsElsewhere && record.type === 'user' ? first : record;
    firsts.set(record, first);
  }
  return [...Map.groupBy(chained, (record) => firsts.get(rootOf(record))).values()];
}

/** A record and its predecessors, the first one first. */
export function pathTo(end: CodeRecord, { parents }: Pick<Chain, 'parents'>): CodeRecord[] {
  const path: CodeRecord[] = [];
  for (let at: CodeRecord | undefined = end; at !== undefined; at = parents.get(at)) path.push(at);
  return path.reverse();
}
