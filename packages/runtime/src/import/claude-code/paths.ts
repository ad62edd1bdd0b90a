import { ByRecord } from './by-record.ts';
import { type Chain, pathTo } from './chain.ts';
import { type CodeRecord, canEnd, isBoundary, isSummary } from './records.ts';
import { messageId } from './turns.ts';

/** One way through a tree, from its root. */
export interface TreePath {
  readonly steps: readonly CodeRecord[];
  /** The number of steps that it has in common with the path from which it forks; 0 for the path to the head. */
  readonly shared: number;
  /** The index of the path from which it forks. */
  readonly from?: number;
  /** What was attached to results that parallel calls left off the path, by the step behind which the model got it. */
  readonly hanging: ReadonlyMap<CodeRecord, readonly CodeRecord[]>;
}

/**
 * The ways through a tree: first the one to its head, then each abandoned one that says something that no other path says,
 * as before a prompt that was typed anew. Blocks of an answer and results that parallel calls left on branches are no such
 * thing: they belong to a message of the path.
 */
export function pathsOf(tree: readonly CodeRecord[], chain: Chain): TreePath[] {
  const head = headOf(tree, chain);
  if (head === undefined) return [];
  const steps = pathTo(head, chain);
  const paths: Omit<TreePath, 'hanging'>[] = [{ steps, shared: 0 }];
  const owners = new ByRecord(steps, 0);
  /** The messages of the paths from which others fork. */
  const said = new Map<number, ReadonlySet<string>>();
  const silent = new Set<CodeRecord>();
  for (const end of tree.filter(canEnd).toReversed()) {
    if (owners.has(end) || silent.has(end)) continue;
    const own: CodeRecord[] = [];
    let at: CodeRecord | undefined = end;
    for (; at !== undefined && !owners.has(at); at = chain.parents.get(at)) own.push(at);
    const from = at === undefined ? 0 : (owners.get(at) ?? 0);
    const others = said.get(from) ?? idsIn(paths[from]?.steps ?? []);
    said.set(from, others);
    if (!own.some((record) => speaks(record, others))) {
      for (const record of own) silent.add(record);
      continue;
    }
    const all = pathTo(end, chain);
    for (const record of own) owners.set(record, paths.length);
    paths.push({ steps: all, shared: all.length - own.length, from });
  }
  const hanging = hangingIn(silent, owners, chain);
  return paths.map((path) => ({ ...path, hanging }));
}

/** What the model got of records that are on no path, by the nearest record before it that is on one. */
function hangingIn(
  silent: ReadonlySet<CodeRecord>,
  owners: Pick<ByRecord<number>, 'has'>,
  { parents }: Chain,
): ReadonlyMap<CodeRecord, readonly CodeRecord[]> {
  const hanging = new Map<CodeRecord, CodeRecord[]>();
  const given = [...silent].filter(
    (record) => !owners.has(record) && record.type !== 'user' && record.traits.isGiven,
  );
  for (const record of given.sort((a, b) => a.ordinal - b.ordinal)) {
    let at = parents.get(record);
    while (at !== undefined && !owners.has(at)) at = parents.get(at);
    if (at === undefined) continue;
    const others = hanging.get(at);
    if (others === undefined) hanging.set(at, [record]);
    else others.push(record);
  }
  return hanging;
}

/**
 * The end of the conversation: the newest record that descends from the leaf that the tool named last, or else the last
 * one of the tree.
 */
function headOf(tree: readonly CodeRecord[], chain: Chain): CodeRecord | undefined {
  const ends = tree.filter(canEnd);
  const named = chain.records.flatMap(({ type, leaf: id }) => (type === 'last-prompt' && id) || []);
  const wanted = new Set(named);
  const members = new Map<string | undefined, CodeRecord>();
  if (wanted.size > 0) for (const one of tree) if (wanted.has(one.id ?? '')) members.set(one.id, one);
  const leaf = members.get(named.findLast((id) => members.has(id)));
  if (leaf === undefined) return ends.at(-1);
  const elsewhere = new ByRecord<true>();
  for (const end of ends.toReversed())
    for (
      let at: CodeRecord | undefined = end;
      at !== undefined && !elsewhere.has(at);
      at = chain.parents.get(at)
    ) {
      if (at === leaf) return end;
      elsewhere.set(at, true);
    }
  return ends.at(-1);
}

function idsIn(steps: readonly CodeRecord[]): ReadonlySet<string> {
  return new Set(steps.flatMap((record) => (record.type === 'assistant' ? (messageId(record) ?? []) : [])));
}

/** Whether a record says something that is in no message of a path. */
export function speaks(record: CodeRecord, said: ReadonlySet<string> = new Set()): boolean {
  if (isBoundary(record) || isSummary(record)) return true;
  const { isApiError, hasContent, hasWords, isQueued } = record.traits;
  if (record.type === 'assistant') {
    const id = messageId(record);
    return !isApiError && hasContent && (id === undefined || !said.has(id));
  }
  return (record.type === 'user' || isQueued) && hasWords;
}
