import { text } from '../text.ts';
import { blocksOf, isBlank } from './blocks.ts';
import { type Chain, pathTo } from './chain.ts';
import { type CodeRecord, canEnd, isBoundary, isQueued, isSummary } from './records.ts';
import { messageId } from './turns.ts';

/** One way through a tree, from its root. */
export interface TreePath {
  readonly steps: readonly CodeRecord[];
  /** The number of steps that it has in common with the path from which it forks; 0 for the path to the head. */
  readonly shared: number;
  /** The index of the path from which it forks. */
  readonly from?: number;
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
  const paths: TreePath[] = [{ steps, shared: 0 }];
  const owners = new Map(steps.map((record) => [record, 0]));
  const said = [idsIn(steps)];
  const silent = new Set<CodeRecord>();
  for (const end of tree.filter(canEnd).toReversed()) {
    if (owners.has(end) || silent.has(end)) continue;
    const own: CodeRecord[] = [];
    let at: CodeRecord | undefined = end;
    for (; at !== undefined && !owners.has(at); at = chain.parents.get(at)) own.push(at);
    const from = at === undefined ? 0 : (owners.get(at) ?? 0);
    if (!own.some((record) => speaks(record, said[from]))) {
      for (const record of own) silent.add(record);
      continue;
    }
    const all = pathTo(end, chain);
    for (const record of own) owners.set(record, paths.length);
    said.push(idsIn(all));
    paths.push({ steps: all, shared: all.length - own.length, from });
  }
  return paths;
}

/**
 * The end of the conversation: the newest record that descends from the leaf that the tool named last, or else the last
 * one of the tree.
 */
function headOf(tree: readonly CodeRecord[], chain: Chain): CodeRecord | undefined {
  const ends = tree.filter(canEnd);
  const members = new Map(tree.map((record) => [record.id, record]));
  const leaf = chain.records
    .filter(({ raw }) => raw.type === 'last-prompt')
    .flatMap(({ raw }) => members.get(text(raw.leafUuid)) ?? [])
    .at(-1);
  if (leaf === undefined) return ends.at(-1);
  const elsewhere = new Set<CodeRecord>();
  for (const end of ends.toReversed())
    for (
      let at: CodeRecord | undefined = end;
      at !== undefined && !elsewhere.has(at);
      at = chain.parents.get(at)
    ) {
      if (at === leaf) return end;
      elsewhere.add(at);
    }
  return ends.at(-1);
}

function idsIn(steps: readonly CodeRecord[]): ReadonlySet<string> {
  return new Set(steps.flatMap((record) => (record.type === 'assistant' ? (messageId(record) ?? []) : [])));
}

/** Whether a record says something that is in no message of a path. */
export function speaks(record: CodeRecord, said: ReadonlySet<string> = new Set()): boolean {
  if (isBoundary(record) || isSummary(record)) return true;
  const blocks = blocksOf(record.raw).filter((block) => !isBlank(block));
  if (record.type === 'assistant') {
    const id = messageId(record);
    return record.raw.isApiErrorMessage !== true && blocks.length > 0 && (id === undefined || !said.has(id));
  }
  const isHeard = record.type === 'user' || isQueued(record.raw);
  return isHeard && blocks.some(({ type }) => type !== 'tool_result');
}
