import type { HomeStore } from '@tapedeck/tape';
import type { SourceTable } from '../sources/index.ts';
import type { Conversation } from './conversations.ts';

/**
 * The conversations of which something was imported before, then the others, the one that began first before the others: the
 * order in which to import many. A copy that was made since then finds what its source has got meanwhile, and one that begins
 * at a compaction of its source finds that; imported before its source, it would store both, and so would the source.
 */
export function knownFirst<T extends Conversation>(
  conversations: readonly T[],
  { table, store }: { readonly table?: SourceTable; readonly store: HomeStore },
): readonly T[] {
  const keyOf = (tool: string, main: string) => `${tool} ${main}`;
  const all = table?.all ?? [];
  const read = new Set(all.flatMap(({ tool, main, at }) => (at > 0 ? [keyOf(tool, main)] : [])));
  // Behind an import that was killed, and without a table, its session alone says it.
  const isKnown = ({ tool, session }: Conversation) =>
    read.has(keyOf(tool.name, session)) || store.sessions.find(session) !== undefined;
  const known = new Set(conversations.filter(isKnown));
  const others = conversations.filter((one) => !known.has(one));
  const began = new Map(others.map((one) => [one, beginOf(one)]));
  return [...known, ...others.sort((a, b) => (began.get(a) ?? 0) - (began.get(b) ?? 0))];
}

/** The time of its first record; where that says none, it comes last. */
function beginOf({ files: [main] }: Conversation): number {
  const time = Date.parse(main?.first ?? '');
  return Number.isNaN(time) ? Number.MAX_VALUE : time;
}
