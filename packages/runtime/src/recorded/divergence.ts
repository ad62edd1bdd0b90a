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
  readonly index?: number;
  /** The beginning of what that message says. */
  readonly sent?: string;
}

/** A divergence in words. Pure. */
export function divergenceText({ kind, seq, recorded, sent }: Omit<Divergence, 'session'>): string {
  if (kind === 'window') return `the history begins at @${seq}: ${recorded}`;
  const lacking = `@${seq}: ${recorded}`;
  return kind === 'shortened'
    ? `the history ends before ${lacking}`
    : `the history has "${sent}" in place of ${lacking}`;
}
