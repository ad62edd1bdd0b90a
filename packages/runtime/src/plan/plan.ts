/**
 * What a transcript holds: all files of a session as a plan of conversations (`plan.ts`), each of messages
 * (`transcript.ts`) whose end may still change (`open-end.ts`, `later-draft.ts`). `format.ts` is what each format has to know,
 * `format-error.ts` is what one throws, `irregular.ts` and `faulty-lines.ts` say what is wrong with records and where,
 * `one-conversation.ts` is the plan of a format without a tree. Imports `lines` and `errors`.
 */

import type { Draft, Seq } from '@tapedeck/tape';
import type { FaultyLine } from './faulty-lines.ts';
import type { OpenEnd } from './open-end.ts';
import type { TranscriptCounts } from './transcript.ts';

/** What a conversation is to the one that it comes from. */
export type ConversationKind = 'main' | 'branch' | 'cleared' | 'subagent';

/** An edge that no record names, and what it was concluded from. */
export interface DerivedEdge {
  /** The key of the conversation in which it is; of an edge between two, that of the later one. */
  readonly conversation: string;
  /** The key of the record whose predecessor was concluded, or of a conversation. */
  readonly of: string;
  /** The key of what precedes it. */
  readonly from: string;
  readonly why: 'parent-missing' | 'circle' | 'compaction' | 'cleared' | 'workflow' | 'subagent';
  /** What says so, for people. */
  readonly evidence: string;
}

/** An entry that no view shows, and its place. */
export interface PlacedAside {
  readonly draft: Draft;
  /** The number of drafts of the spine that precede it. */
  readonly after: number;
}

/** An edge to the conversation from which another comes. */
export interface ParentEdge {
  readonly key: string;
  /** Of a subagent: the call that started it. */
  readonly call?: string;
  /** Of a subagent that knows what its parent knew: its spine begins with that of its parent, as a branch does. */
  readonly inherits?: true;
}

/** What a home has already of a conversation that an export wrote, and another program continued. */
export interface Base {
  /** The session that was exported, by its id. */
  readonly session: string;
  /** Its last entry of which the transcript has a record. */
  readonly cut: Seq;
  /** The entries of the drafts that the plan no longer has, by their keys. */
  readonly places: ReadonlyMap<string, Seq>;
  /** Whether these have other keys there, since the transcript is that of a session that was resumed under new ids. */
  readonly isResumed?: true;
  /** The key there of a draft that a session of the source inherits, by its own key: also of those behind the base. */
  readonly inherited?: (key: string) => string | undefined;
}

/** What a conversation says, by the key of it. */
export type SaidIn = Pick<ConversationPlan, 'key' | 'spine'>;

/** One conversation of a source, which becomes one session. */
export interface ConversationPlan {
  /** Stays the same however far the source has grown. */
  readonly key: string;
  readonly kind: ConversationKind;
  /** What stands for the file that has it: the key of the first conversation there. */
  readonly file: string;
  /** The conversation from which it comes. */
  readonly parent?: ParentEdge;
  /** How a subagent ended whose result came back; absent while it has not. */
  readonly ended?: 'completed' | 'failed';
  /** The draft of its parent with which that got the result, by its key; absent where no record says which. */
  readonly received?: string;
  /** The name that its session would have, not checked. */
  readonly name: string;
  readonly title?: string;
  /**
   * All that its readers see, from the first message of its root: a branch repeats what it has in common with its parent,
   * so that the point at which it forks need not be named. Each draft has a key that derives from its record, and `import` as
   * `meta.source`: what has not was written here. Each call has exactly one result, right behind its message.
   */
  readonly spine: readonly Draft[];
  /** The number of drafts of the spine that a longer version of the source repeats, unless it goes on elsewhere. */
  readonly settled: number;
  /** How many drafts of the spine are, at least, the first of its parent: the same objects. */
  readonly shared?: number;
  /** The first draft that each boundary keeps in view, by the keys of both. */
  readonly keeps: ReadonlyMap<string, string>;
  /** Records that are no part of any conversation, as entries, in order of the source. */
  readonly asides: readonly PlacedAside[];
  /**
   * The drafts whose records an export of this project wrote, by their keys: each with the hash of the entry that it was made
   * of, empty for a record that says nothing of its own.
   */
  readonly exported?: ReadonlyMap<string, string>;
  /** What the home has already of such a conversation: the spine then begins behind it. */
  readonly base?: Base;
  /** Answers that the spine has as a copy has them, which says nothing of their tokens. */
  readonly uncounted?: readonly Draft[];
}

/** What a run of a tool that began with another session wrote in one. */
export interface Visit {
  /** The session with which the run began. */
  readonly session: string;
  /** When the run first wrote there. */
  readonly at: string;
}

/** A source as a tree of conversations, parents first. Pure data: the same records give the same plan. */
export interface ImportPlan {
  readonly format: string;
  /** The id that the tool gave to the session. */
  readonly session: string;
  /** The session of which its beginning is a copy: the main conversation is a fork of that. */
  readonly copyOf?: string;
  /** The session with which the run of the tool began that began this one anew: no record says more of what it follows. */
  readonly clearedFrom?: string;
  /** The runs of the tool that began with other sessions, and came to this one later. */
  readonly visitedBy?: readonly Visit[];
  /** When it began anew, where no record names the session before it or the run. */
  readonly clearedAt?: string;
  /** When its program left it, each time, to begin a session anew. */
  readonly leftAt?: readonly string[];
  /** The session, by its id, that an export wrote the beginning of this one from. */
  readonly exportOf?: string;
  /** The sessions, by their ids, from which that was forked, the nearest first. */
  readonly exportFrom?: readonly string[];
  /** The entries of that, by their hashes, of which the export wrote nothing, since nothing was left of them. */
  readonly passedOver?: ReadonlySet<string>;
  readonly conversations: readonly ConversationPlan[];
  readonly derived: readonly DerivedEdge[];
  /** What was found in each file, by the `file` of its conversations. */
  readonly counts: ReadonlyMap<string, TranscriptCounts>;
  /** The first faults that show beside other records alone, by the `file` of the conversations; the counts have all. */
  readonly faults?: ReadonlyMap<string, readonly FaultyLine[]>;
  /**
   * Whether the id is a name that several sessions of the tool may have: one that begins in another way is then another
   * session, and not another version of the same.
   */
  readonly isNamed?: true;
  /** Where a longer version of its main file can be read from. */
  readonly end?: OpenEnd;
}

/** Whether a draft or an entry is no part of a conversation: a record as it is, or the instructions that it had. */
export function isAside({
  kind,
  name,
}: {
  readonly kind: string;
  readonly name?: string | undefined;
}): boolean {
  return kind.startsWith('x-') || name === 'instructions/text';
}
