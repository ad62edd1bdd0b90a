import type { JsonObject, TapeError } from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import type { ErasedInPlan } from '../copies/erased-in-plan.ts';
import type { Begun } from '../copies/walk.ts';
import type { Shown } from '../imported/imported.ts';
import type { SharedCounts } from '../imported/ledger.ts';
import type { Origins } from '../imported/origins.ts';
import type { ImportError } from '../lines/errors.ts';
import type { ConversationPlan, ImportPlan } from '../plan/plan.ts';

/** The session from which a conversation is forked, and what that showed before this import. */
export interface From {
  readonly session: string;
  readonly refused?: TapeError | ImportError;
  readonly earlier: readonly Shown[];
  /** Whether it shows something else once this conversation is written. */
  readonly isLeft?: true;
}

/** What is written, and how. */
export interface Writing {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  readonly from: From | undefined;
  /** The tokens that the session counted that a transcript was exported of, by the keys of drafts. */
  readonly counted: ReadonlyMap<string, JsonObject>;
  /** What the conversations of the source have counted here. */
  readonly tree: SharedCounts | undefined;
  /** What it begins with, as a branch, where the session of its parent is as it was just written. */
  readonly begun: Begun | undefined;
  /** How many of its drafts its parent has, too; undefined where it is no branch. */
  readonly common: number | undefined;
  /** What was erased of it here: who names the session wants it again. */
  readonly erasedElsewhere: ErasedInPlan | undefined;
  readonly rewritten: boolean;
  readonly as: string | undefined;
  readonly origins: Origins;
  readonly onAdded: OnProgress | undefined;
  /** Called before a session is rewound, with the keys of what it then shows no more. Returns whether it wrote branches of that. */
  readonly onLeaving: (session: string, left: ReadonlySet<string>) => boolean;
}
