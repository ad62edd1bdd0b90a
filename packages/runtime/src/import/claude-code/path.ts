import { type CodeRecord, canEnd, isBoundary, isSummary } from './records.ts';

/** The records that lead to the end of the conversation, in order. */
export interface Path {
  readonly steps: readonly CodeRecord[];
  /** Steps whose parent is missing or repeats. */
  readonly dangling: number;
}

/**
 * Walks back from the last record of the file that can end a conversation to its root. Abandoned branches,
 * such as before an edited prompt, are off the path. A file of one subagent consists of sidechain records
 * only, which form the path; in any other file sidechains are off the path.
 *
 * A compaction starts a new root. It names its predecessor, but real files often lack that record; then the
 * preceding main record of the file is used, because one file is one session and its order is the only
 * evidence left. Any other missing parent makes a root, and so does a cycle.
 */
export function pathOf(records: readonly CodeRecord[]): Path {
  const byId = new Map<string, CodeRecord>();
  for (const record of records) if (record.id !== undefined) byId.set(record.id, record);
  const ends = records.filter(canEnd);

  const steps: CodeRecord[] = [];
  const seen = new Set<CodeRecord>();
  let dangling = 0;
  let at = ends.findLast(({ sidechain }) => !sidechain) ?? ends.at(-1);
  while (at !== undefined) {
    if (seen.has(at)) {
      dangling += 1;
      break;
    }
    seen.add(at);
    steps.push(at);
    let next = at.parent === undefined ? undefined : byId.get(at.parent);
    if (next === undefined && at.parent !== undefined) dangling += 1;
    if (next === undefined && (isBoundary(at) || isSummary(at)) && at.before !== undefined)
      next = byId.get(at.before);
    at = next;
  }
  return { steps: steps.reverse(), dangling };
}
