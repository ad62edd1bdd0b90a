import type { Entry, HomeStore, Seq } from '@tapedeck/tape';
import { begins } from '../imported/blocks.ts';
import { type Change, isSame, spineOf } from '../imported/change.ts';
import { resumedAs } from '../imported/copy-notes.ts';
import type { Imported, Shown } from '../imported/imported.ts';
import { keysOf } from '../plan/keys-of.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import { isStandIn } from '../plan/output.ts';
import { type ConversationPlan, type ImportPlan, isAside } from '../plan/plan.ts';

/** A source, as it was read now. */
interface Reading {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  /** Whether its file lacks a part of what was read of it. */
  readonly rewritten: boolean;
}

/** A session of it, and what has to be written so that it reads as the source. */
interface Compared {
  readonly session: string;
  readonly imported: Imported;
  readonly change: Change;
}

/**
 * Whether what a source has is no continuation of what its session shows: the session went on here, or was rewound, the source
 * is older or was rewritten, or it is a transcript that was exported of this session, which nothing of it rewinds. Entries that
 * no view shows can always be added.
 */
export function isParted(store: HomeStore, reading: Reading, compared: Compared): boolean {
  const { spine, base } = reading.conversation;
  const {
    imported: { shown, rewound, ownWork },
    change: { same, rewindTo, drafts },
  } = compared;
  if (rewindTo === undefined && drafts.every(isAside)) return false;
  if (rewindTo !== undefined && hidesOther(store, reading, compared, rewindTo)) return true;
  // What a person took out of sight stays so.
  if (spine.slice(same).some(({ key = '' }) => rewound.has(key))) return true;
  const last = spineOf(shown)[same - 1]?.seq ?? base?.cut ?? 0;
  return ownWork !== undefined && ownWork > last;
}

/** Whether a rewind would hide what the source lacks, or has in another form. */
function hidesOther(
  store: HomeStore,
  { plan, conversation, rewritten }: Reading,
  { session, imported }: Compared,
  rewindTo: Seq,
): boolean {
  const { id = '', base = 0 } = store.sessions.find(session) ?? {};
  if (id === plan.exportOf) return true;
  const hidden = spineOf(imported.shown).filter(({ seq, key }) => seq > rewindTo && !isStandIn(key));
  // What it inherits may be there under other ids.
  const isOther = conversation.kind === 'branch' || resumedAs(store, id) !== undefined;
  const keys = keysFor(plan, conversation);
  // A file gets longer: one that lacks what was read is an older copy, or was rewritten.
  if (hidden.some(({ seq, key }) => !(isOther && seq <= base) && !keys.has(key))) return true;
  const drafts = new Map(conversation.spine.map((draft) => [draft.key, draft]));
  return hidden.some((entry) => {
    const draft = drafts.get(entry.key);
    // What the source has in a branch is not hidden: a prompt that was typed anew leads elsewhere.
    if (draft === undefined) return rewritten && !keys.has(entry.key);
    if (isSame(draft, entry)) return false;
    const now = wholeDraft(draft);
    const isPart = entry.kind === 'message' || entry.mark === 'boundary';
    const before = isPart ? entryAt(store, session, entry) : undefined;
    if (before === undefined) return rewritten;
    // Of an answer, a part had come, or the summary of a compaction had not: then, or to this older copy, which ends with it.
    const mayBeOlder = entry.kind === 'message' || draft === conversation.spine.at(-1);
    return !begins(before, now) && (rewritten || (mayBeOlder && begins(now, before)));
  });
}

function entryAt(store: HomeStore, session: string, { seq }: Shown): Entry | undefined {
  return [...store.entries.read(session, { from: seq, to: seq })][0];
}

/** The keys of what a conversation may have by now: of a source that is known by a name alone, its own. */
function keysFor(plan: ImportPlan, { spine }: ConversationPlan): ReadonlySet<string> {
  // A prompt that was typed anew only leads elsewhere.
  return plan.isNamed === true ? new Set(spine.map(({ key = '' }) => key)) : keysOf(plan);
}
