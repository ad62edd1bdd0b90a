import type { Beginning, BeginningFacts } from '../imported/session-facts.ts';
import type { Group } from './group.ts';

/** A conversation of an import that is no subagent. */
export interface Kin {
  readonly isMain: boolean;
  /** The session of a tool from which it came. */
  readonly source: string;
  /** Its tool, and the id that this gave it. */
  readonly format: string;
  readonly session: string;
  /** How it begins. */
  beginning?: BeginningFacts;
  /** What a copy of it may begin with: the first message that it shows, its compactions, and what follows lost parents. */
  begins: readonly Said[];
  /** Of one that was resumed under new ids, the key of its first message here, where it was looked for. */
  inherits?: string | undefined;
  /** How often it was written. */
  writes: number;
  /** With which others it has something in common. */
  readonly groups: Set<Group>;
}

/** An entry with which a copy may begin. */
export interface Said extends Beginning {
  /** What it is known by in all copies of it, where that was looked for. */
  as?: string;
}
