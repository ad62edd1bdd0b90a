import type { SessionInfo } from '@tapedeck/tape';
import type { ChildInfo, ChildOptions, DelegationParts } from '../delegation/parts.ts';
import type { Child } from './child.ts';
import type { Session } from './session.ts';

/** Shared by all sessions of one deck. */
export interface DeckParts extends DelegationParts {
  /** Makes a handle of a session. */
  readonly session: (info: SessionInfo) => Session;
  readonly child: <T>(info: ChildInfo, options: ChildOptions<T>) => Child<T>;
}

/** The parts of the deck that each session of this process belongs to. */
export const partsOf: WeakMap<Session, DeckParts> = new WeakMap();
