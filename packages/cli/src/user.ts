import type { HomeStore } from '@tapedeck/tape';

/** What references such as `@{-1}` and `@{1 hour ago}` depend on, beside the store. */
export interface User {
  /** Ids of the sessions that the user named in this home before, the last one first. */
  readonly recent: readonly string[];
  /** The last line of the lineage when the user last looked at the home. */
  readonly seen: number | undefined;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
  /** Called with the id of each session that the command line names. */
  uses(id: string): void;
  /** Called with the last line of the lineage when the user looks at the home. */
  looks(line: number): void;
}

const users = new WeakMap<HomeStore, User>();

/** Tells who opened a store. */
export function setUser(store: HomeStore, user: User): void {
  users.set(store, user);
}

/** Returns who opened a store; undefined for one that no command line opened. */
export function userOf(store: HomeStore): User | undefined {
  return users.get(store);
}
