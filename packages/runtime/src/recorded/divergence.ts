import type { Seq } from '@tapedeck/tape';

/** A history that an application sent, and that is not what the tape has. */
export interface Divergence {
  readonly session: string;
  /**
   * `changed`: the history has something else where the tape has an entry; `shortened`: it ends before that entry;
   * `window`: it begins at a later entry, as that of an application that sends only the last messages.
   */
  readonly kind: 'changed' | 'shortened' | 'window';
  /** Position of the first entry that the history lacks. With `window`, that of the first one that it has. */
  readonly seq: Seq;
  /** The beginning of what the tape has there. */
  readonly recorded: string;
  /** Index of the message of the prompt that is there instead, system messages counted. */
  readonly message?: number;
  /** The beginning of what it says. */
  readonly sent?: string;
}
