import { ByRecord } from './by-record.ts';
import type { Chain } from './chain.ts';
import { keptBy } from './kept.ts';
import { type CodeRecord, isBoundary, isSummary } from './records.ts';

/** A part of a path with the compactions that come again on it. */
export interface CompactedPath {
  readonly own: readonly CodeRecord[];
  /** The steps of those: another path has them at their places. */
  readonly again: ReadonlySet<CodeRecord>;
}

const none: ReadonlySet<CodeRecord> = new Set();

/**
 * The compactions of a tree that come again. What is typed anew within what the last one kept names its predecessor there, which
 * is before the boundary in the file. The model gets the summary, what was kept up to there, and what was typed: so the
 * compaction is on that way, too.
 */
export class CompactionsAgain {
  readonly #tree: readonly CodeRecord[];
  readonly #parents: Chain['parents'];
  /** The last boundary before each record in the file. */
  readonly #boundaries: Pick<ByRecord<CodeRecord>, 'get'> | undefined;
  #byId: ReadonlyMap<string | undefined, CodeRecord> | undefined;

  constructor(tree: readonly CodeRecord[], { parents }: Pick<Chain, 'parents'>) {
    this.#tree = tree;
    this.#parents = parents;
    this.#boundaries = boundariesBefore(tree);
  }

  /** A path with the compactions that come again before its steps. @param before its predecessor */
  on(path: readonly CodeRecord[], before?: CodeRecord): CompactedPath {
    if (this.#boundaries === undefined) return { own: path, again: none };
    const again = new Set<CodeRecord>();
    const own: CodeRecord[] = [];
    let last = before;
    for (const step of path) {
      const boundary = this.#boundaries.get(step);
      if (boundary !== undefined && last !== undefined && last.ordinal < boundary.ordinal)
        for (const record of this.#between(last, boundary)) {
          again.add(record);
          own.push(record);
        }
      own.push(step);
      last = step;
    }
    return { own, again };
  }

  /** The boundary, what leads from it to the summary, and that, if it kept a record, and is not above it. */
  #between(last: CodeRecord, boundary: CodeRecord): readonly CodeRecord[] {
    this.#byId ??= new Map(this.#tree.map((record) => [record.id, record]));
    const { uuids, head, tail, anchor } = keptBy(boundary);
    // "Summarize from here" names itself there: what it kept is before all of it.
    const steps = this.#steps(this.#byId.get(anchor), boundary);
    if (!isSummary(steps.at(-1) ?? boundary)) return [];
    const isKept =
      (last.id !== undefined && uuids.has(last.id)) ||
      this.#steps(this.#byId.get(tail), this.#byId.get(head)).includes(last);
    return isKept && this.#isBefore(last, boundary) ? steps : [];
  }

  /** The steps from a record to one that descends from it, both included; none where it does not. */
  #steps(end: CodeRecord | undefined, first: CodeRecord | undefined): readonly CodeRecord[] {
    const steps: CodeRecord[] = [];
    for (let at = first && end; at !== undefined; at = this.#parents.get(at)) {
      steps.push(at);
      if (at === first) return steps.reverse();
    }
    return [];
  }

  /** Whether a record, and all that leads to it, precedes another one in the file. */
  #isBefore(record: CodeRecord, { ordinal }: CodeRecord): boolean {
    for (let at: CodeRecord | undefined = record; at !== undefined; at = this.#parents.get(at))
      if (at.ordinal >= ordinal) return false;
    return true;
  }
}

function boundariesBefore(tree: readonly CodeRecord[]): ByRecord<CodeRecord> | undefined {
  const before = new ByRecord<CodeRecord>();
  let boundary: CodeRecord | undefined;
  for (const record of tree) {
    if (boundary !== undefined) before.set(record, boundary);
    if (isBoundary(record)) boundary = record;
  }
  return boundary && before;
}
