import type { EventLog } from '../stream/event-log.ts';
import type { ChildrenElsewhere } from './elsewhere.ts';
import { onceBack } from './once-back.ts';
import type { Delegated } from './options.ts';
import type { ChildEvent } from './outcome.ts';
import type { DelegationParts, Delegator } from './parts.ts';
import type { DelegationProgress } from './progress.ts';

/** A running delegation, as the work on one of its children uses it. */
export interface DelegationScope {
  readonly parts: DelegationParts;
  readonly parent: Delegator;
  readonly delegated: Delegated;
  /** Aborted with the delegation. */
  readonly signal: AbortSignal;
  readonly events: EventLog<ChildEvent>;
  /** What those who watch the parent see of the children. */
  readonly progress: DelegationProgress;
  /** Waits for the children, where the deck's engine runs them elsewhere. */
  readonly elsewhere: ChildrenElsewhere | undefined;
}

/** Does an act on the tapes. Who waits for children that others run waits for the server, too. */
export async function onTapes<T>(
  { parts, signal, elsewhere }: Pick<DelegationScope, 'parts' | 'signal' | 'elsewhere'>,
  act: () => Promise<T>,
): Promise<T> {
  if (elsewhere === undefined) return await act();
  return await onceBack(act, () => signal.aborted || parts.closing.aborted);
}
