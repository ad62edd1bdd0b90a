import type { HomeStore, Seq } from '@tapedeck/tape';
import { copiesIn } from '../copies/copies.ts';
import { countedElsewhere } from '../copies/counted-elsewhere.ts';
import { type Back, backIn as backInFamily } from '../copies/walk.ts';
import { type Change, changeOf, commonOf, sameOf, spineOf } from '../imported/change.ts';
import { firstKeyIn } from '../imported/first-said.ts';
import { type Imported, importedAt, importedIn, isImportRewind } from '../imported/imported.ts';
import { withoutMoved } from '../imported/moved-lines.ts';
import type { Writing } from './writing.ts';

/** What a session has, and the head at which it was read. */
export interface ReadTape {
  readonly head: Seq;
  readonly hash: string | undefined;
  readonly imported: Imported;
  /** What has to be written so that it reads as its plan. */
  readonly change: Change;
  readonly back: Back | undefined;
}

/**
 * Reads what a session has of a conversation.
 * @param others the other sessions of the conversation
 * @param isNew whether it was forked just now
 */
export function readTape(
  store: HomeStore,
  writing: Writing,
  {
    session,
    others,
    isNew,
  }: {
    readonly session: string;
    readonly others: readonly string[];
    readonly isNew: boolean;
  },
): ReadTape {
  const { conversation } = writing;
  // The head first: what is appended while the tape is read is then not overlooked.
  const info = store.sessions.find(session);
  const { head = 0, headHash } = info ?? {};
  const own = importedIn(store, session, conversation.base);
  // What was erased behind the place of a fork, or on the tape itself.
  const above = isNew && info?.parentId !== undefined ? importedIn(store, info.parentId) : own;
  const imported = {
    ...own,
    erased: own.erased.union(above.erased),
    elsewhere: countedElsewhere(store, writing, info),
    beside: others.map((one) => importedIn(store, one)),
    erasedElsewhere: writing.erasedElsewhere,
  };
  const back = backIn(store, writing, info?.id, imported);
  const change = changeOf(conversation, imported, back);
  // A source that was written anew can have a line more or less.
  const needed = writing.rewritten ? withoutMoved(change, conversation, imported) : change;
  return { head, hash: headHash, imported, change: needed, back };
}

/** Where a session showed more of the conversation before a person rewound it: it can be forked there, whatever hides that now. */
export function beforeRewind(
  store: HomeStore,
  writing: Writing,
  { session, imported, change: { same } }: ReadTape & { readonly session: string },
): Back | undefined {
  if (imported.rewound.size === 0) return undefined;
  let best = mostOf(store, writing, store.sessions.find(session)?.id);
  for (const rewind of store.entries.read(session, { own: true, kind: 'rewind' })) {
    if (isImportRewind(rewind)) continue;
    const one = shownBefore(store, writing, { session, at: rewind.seq - 1 });
    if (one.same > (best?.same ?? same)) best = one;
  }
  return best !== undefined && best.same > same ? best : undefined;
}

/** What of a conversation a session showed at a position, as far as nothing else was between it, or was cut from it. */
function shownBefore(
  store: HomeStore,
  { conversation }: Writing,
  { session, at }: { readonly session: string; readonly at: Seq },
): Back {
  const { spine, base } = conversation;
  const { shown, ownWork = Number.POSITIVE_INFINITY } = importedAt(store, session, at, base);
  const all = spineOf(shown).filter(({ seq }) => seq < ownWork);
  let same = commonOf(conversation, all);
  // Between a call and its last result nothing can be cut.
  while (same > 0 && [spine[same], all[same]].some((next) => next?.kind === 'tool-result')) same -= 1;
  return { same, rewindTo: all[same - 1]?.seq ?? 0, shown: all.slice(0, same) };
}

/** Where a session showed more of the conversation before the source left a prompt that it goes on from now. */
function backIn(
  store: HomeStore,
  writing: Writing,
  id: string | undefined,
  imported: Imported,
): Back | undefined {
  const { conversation } = writing;
  if (imported.ownWork !== undefined || imported.rewound.size > 0) return undefined;
  const { same, rewindTo } = sameOf(conversation, imported);
  // What follows has to have been written, and rewound, before.
  if (rewindTo === undefined || !imported.known.has(conversation.spine[same]?.key ?? '')) return undefined;
  const back = mostOf(store, writing, id);
  return back !== undefined && back.same > same ? back : undefined;
}

/** Where a session showed most of the conversation, whatever was rewound since. */
function mostOf(
  store: HomeStore,
  { plan, conversation, rewritten, as }: Writing,
  id: string | undefined,
): Back | undefined {
  const { kind, base } = conversation;
  const isTree = (kind === 'main' || kind === 'branch') && base === undefined && as === undefined;
  const isOther = rewritten || plan.isNamed === true || plan.exportOf !== undefined;
  if (id === undefined || !isTree || isOther) return undefined;
  const family = copiesIn(store).family(firstKeyIn(conversation));
  return family && backInFamily(family, id, conversation);
}
