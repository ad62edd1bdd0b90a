import type { HomeStore } from '@tapedeck/tape';
import type { ForkPreview } from '@tapedeck/tape/store';
import { asidesIn, type CopiedPart } from '../copies/copied.ts';
import { countedElsewhere } from '../copies/counted-elsewhere.ts';
import { changeOf } from '../imported/change.ts';
import { importedIn, inheritedFrom, nothingImported } from '../imported/imported.ts';
import type { ConversationPlan } from '../plan/plan.ts';
import type { ReadTape } from './read-tape.ts';
import type { Writing } from './writing.ts';

/** A session that is not forked yet: from which one (its id), where, and what it begins with before anything of an import. */
export interface ComingFork extends Pick<ForkPreview, 'range' | 'base' | 'entries'> {
  readonly from: string;
}

/** The last position that a fork has before anything of an import. */
export function headOf({ base, entries }: ComingFork): number {
  return base + entries.length;
}

/**
 * Reads what a session will have of a conversation when it is forked: what it inherits.
 * @param others the other sessions of the conversation
 */
export function readFork(
  store: HomeStore,
  writing: Writing,
  fork: ComingFork,
  others: readonly string[],
): ReadTape {
  const { conversation } = writing;
  const inherited = inheritedFrom(store, fork, conversation.base);
  const imported = {
    ...inherited,
    // What was erased behind the place of a fork, too.
    erased: inherited.erased.union(importedIn(store, fork.from).erased),
    elsewhere: countedElsewhere(store, writing, { parentId: fork.from }),
    beside: others.map((one) => importedIn(store, one)),
    erasedElsewhere: writing.erasedElsewhere,
  };
  return tapeOf(fork, imported, changeOf(conversation, imported));
}

/**
 * The same of one that is forked where the home has a part of the conversation, without reading that. Undefined where it is not
 * forked there, or needs the positions of what it inherits.
 */
export function readCopy(
  store: HomeStore,
  writing: Writing,
  fork: ComingFork,
  { cut, count, erased }: CopiedPart,
): ReadTape | undefined {
  const { conversation } = writing;
  if (fork.base !== cut || keepsBehind(conversation, count)) return undefined;
  const imported = {
    ...nothingImported,
    ...asidesIn(store, fork.from, conversation, cut),
    erased,
    elsewhere: countedElsewhere(store, writing, { parentId: fork.from }),
    erasedElsewhere: writing.erasedElsewhere,
  };
  return tapeOf(fork, imported, changeOf(conversation, imported, { same: count }));
}

/** Whether a compaction behind the first entries of a conversation keeps some of these. */
function keepsBehind({ spine, keeps }: ConversationPlan, count: number): boolean {
  return keeps.size > 0 && spine.some(({ key = '' }, i) => i >= count && keeps.has(key));
}

function tapeOf(fork: ComingFork, imported: ReadTape['imported'], change: ReadTape['change']): ReadTape {
  return { head: headOf(fork), hash: undefined, imported, change, back: undefined };
}
