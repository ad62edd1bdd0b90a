import { ByRecord } from './by-record.ts';
import { type Chain, pathTo } from './chain.ts';
import { type CompactedPath, CompactionsAgain } from './compactions-again.ts';
import { Places } from './places.ts';
import { type CodeRecord, canEnd, isBoundary, isSummary } from './records.ts';
import { type AnswerRecords, answerRecordsOf, messageId } from './turns.ts';

/** One way through a tree, from its root. */
export interface TreePath extends CompactedPath {
  /** Its steps behind those that it has in common with the path from which it forks. */
  readonly own: readonly CodeRecord[];
  /** The number of steps that it has in common with that; 0 for the path to the head. */
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
export function pathsOf(
  tree: readonly CodeRecord[],
  chain: Chain,
): { readonly paths: readonly TreePath[]; readonly places: Places } {
  const tips = tipsIn(tree, chain);
  const head = headOf(tree, tips, chain);
  const places = new Places();
  if (head === undefined) return { paths: [], places };
  const compactions = new CompactionsAgain(tree, chain);
  const first = compactions.on(pathTo(head, chain));
  const paths: Omit<TreePath, 'hanging'>[] = [{ ...first, shared: 0 }];
  places.add(first, 0);
  let answers: AnswerRecords | undefined;
  const silent = new Set<CodeRecord>();
  for (const end of tips.toReversed()) {
    if (places.ownerOf(end) !== undefined || silent.has(end)) continue;
    const own: CodeRecord[] = [];
    let at: CodeRecord | undefined = end;
    for (; at !== undefined && places.ownerOf(at) === undefined; at = chain.parents.get(at)) own.push(at);
    const from = (at && places.ownerOf(at)) ?? 0;
    answers ??= answerRecordsOf(tree);
    const has = (id: string) => answers?.get(id)?.some((record) => places.has(from, record)) === true;
    if (!own.some((record) => speaks(record, { has }))) {
      for (const record of own) silent.add(record);
      continue;
    }
    const steps = compactions.on(own.reverse(), at);
    const shared = at === undefined ? 0 : (places.depthOf(at) ?? 0) + 1;
    places.add(steps, shared, from);
    paths.push({ ...steps, shared, from });
  }
  const hanging = hangingIn(silent, places, chain);
  return { paths: paths.map((path) => ({ ...path, hanging })), places };
}

/** What a path has at a step: that of the path that brought the step, of whose own steps something is `known`. */
export function atStep<T>(
  paths: readonly Pick<TreePath, 'shared' | 'from'>[],
  known: (path: number) => readonly T[] | undefined,
  { path, step }: { readonly path: number; readonly step: number },
): T | undefined {
  let at = path;
  for (let one = paths[at]; one?.from !== undefined && step < one.shared; one = paths[at]) at = one.from;
  return known(at)?.[step - (paths[at]?.shared ?? 0)];
}

/** The steps of a path from one on. */
export function stepsFrom(paths: readonly TreePath[], path: number, step: number): readonly CodeRecord[] {
  const { own, shared, from } = paths[path] as TreePath;
  if (step >= shared || from === undefined) return step <= shared ? own : own.slice(step - shared);
  return [...stepsFrom(paths, from, step).slice(0, shared - step), ...own];
}

/** What the model got of records that are on no path, by the nearest record before it that is on one. */
function hangingIn(
  silent: ReadonlySet<CodeRecord>,
  places: Places,
  { parents }: Chain,
): ReadonlyMap<CodeRecord, readonly CodeRecord[]> {
  const hanging = new Map<CodeRecord, CodeRecord[]>();
  const given = [...silent].filter(
    (record) => places.ownerOf(record) === undefined && record.type !== 'user' && record.traits.isGiven,
  );
  for (const record of given.sort((a, b) => a.ordinal - b.ordinal)) {
    let at = parents.get(record);
    while (at !== undefined && places.ownerOf(at) === undefined) at = parents.get(at);
    if (at === undefined) continue;
    const others = hanging.get(at);
    if (others === undefined) hanging.set(at, [record]);
    else others.push(record);
  }
  return hanging;
}

/** The ends of which no other end descends: in a damaged file, what follows a record may be before it. */
function tipsIn(tree: readonly CodeRecord[], { parents }: Chain): readonly CodeRecord[] {
  const ends = tree.filter(canEnd);
  const inner = new ByRecord<true>();
  for (const end of ends)
    for (let at = parents.get(end); at !== undefined && !inner.has(at); at = parents.get(at))
      inner.set(at, true);
  return ends.filter((end) => !inner.has(end));
}

/**
 * The end of the conversation: the newest tip that descends from the leaf that the tool named last, or else the last end of the
 * tree. What was named before a first prompt was typed anew is where the user was until then.
 */
function headOf(
  tree: readonly CodeRecord[],
  tips: readonly CodeRecord[],
  chain: Chain,
): CodeRecord | undefined {
  const roots = tree.filter((record) => !chain.parents.has(record));
  const since = roots.length > 1 ? (roots.at(-1)?.ordinal ?? 0) : 0;
  const named = chain.records.flatMap(
    ({ type, leaf: id, ordinal }) => (type === 'last-prompt' && ordinal > since && id) || [],
  );
  const wanted = new Set(named);
  const members = new Map<string | undefined, CodeRecord>();
  if (wanted.size > 0) for (const one of tree) if (wanted.has(one.id ?? '')) members.set(one.id, one);
  const leaf = members.get(named.findLast((id) => members.has(id)));
  if (leaf === undefined) return tree.findLast(canEnd);
  const elsewhere = new ByRecord<true>();
  for (const end of tips.toReversed())
    for (
      let at: CodeRecord | undefined = end;
      at !== undefined && !elsewhere.has(at);
      at = chain.parents.get(at)
    ) {
      if (at === leaf) return end;
      elsewhere.set(at, true);
    }
  return tree.findLast(canEnd);
}

/** Whether a record says something that is in no message of a path. */
export function speaks(record: CodeRecord, said: Pick<ReadonlySet<string>, 'has'> = new Set()): boolean {
  if (isBoundary(record) || isSummary(record)) return true;
  const { isApiError, hasContent, hasWords, isQueued } = record.traits;
  if (record.type === 'assistant') {
    const id = messageId(record);
    return !isApiError && hasContent && (id === undefined || !said.has(id));
  }
  return (record.type === 'user' || isQueued) && hasWords;
}
