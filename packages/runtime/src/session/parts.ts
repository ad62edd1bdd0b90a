import type { SessionInfo } from '@tapedeck/tape';
import type { ChildOptions, DelegationParts } from '../delegation/parts.ts';
import type { Child } from './child.ts';
import type { Session } from './session.ts';

/** What the sessions of one deck share. */
export interface DeckParts extends DelegationParts {
  /** A handle of a session. */
  readonly session: (info: SessionInfo) => Session;
  readonly child: (info: SessionInfo, options: ChildOptions) => Child;
}
