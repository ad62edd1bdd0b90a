import type { DeckParts } from '../session/parts.ts';
import type { Divergence } from './divergence.ts';

/** The session that records an application's model calls. */
export interface RecordedPlace {
  readonly parts: DeckParts;
  readonly session: { readonly name: string; readonly id: string };
  /** The name by which the application gave the model. */
  readonly spec: string | undefined;
  readonly onDivergence: ((divergence: Divergence) => void) | undefined;
}
