import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { ToolSessions } from '../copies/tool-sessions.ts';
import { lastSaidIn } from '../imported/last-said.ts';

/** A session in which a run wrote, and why the next one is below it where it wrote there last. */
export interface Written {
  readonly info: SessionInfo;
  /** The branches of it that were left. */
  readonly branches: readonly SessionInfo[];
  /** When the run came to it, and when something was said in it last, by any run: in milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
  readonly evidence: string;
}

/**
 * A session in which a run wrote.
 * @param tools the conversations of the home: each call of `copiesIn` compares them with it
 * @param since NaN where it wrote there from the start
 */
export function writtenIn(
  store: HomeStore,
  tools: ToolSessions,
  {
    info,
    source,
    since,
    evidence,
  }: Pick<Written, 'info' | 'since' | 'evidence'> & { readonly source: string },
): Written {
  const branches = tools.branchesOf(source).flatMap(([id]) => store.sessions.find(id) ?? []);
  const ends = [info, ...branches].map((one) => one.lastMessageAt ?? Number.POSITIVE_INFINITY);
  const isKnown = !Number.isNaN(since);
  return {
    ...{ info, branches, evidence, until: Math.max(...ends) },
    since: isKnown ? since : Number.NEGATIVE_INFINITY,
  };
}

/**
 * The one of some sessions in which a run wrote last before a time: a person can leave a session, and come back to it. No tape is
 * read where it came to one behind all that was said in the others. Undefined without sessions, or without a time.
 */
export function wroteLastIn(
  store: HomeStore,
  written: readonly Written[],
  time: number,
): Written | undefined {
  if (Number.isNaN(time)) return undefined;
  let newest = Number.NEGATIVE_INFINITY;
  for (const { since } of written) if (since > newest) newest = since;
  const possible = written.filter(({ since, until }) => until >= newest || since === newest);
  if (possible.length <= 1) return possible[0];
  const times = possible.map((one) => ({ one, at: wroteAt(store, one, time) }));
  return times.reduce((last, next) => (next.at >= last.at ? next : last)).one;
}

/** When something was said last in a session before a time, in a branch that was left, too. */
function wroteAt(store: HomeStore, { info, branches, since }: Written, time: number): number {
  const said = lastSaidIn(store);
  return Math.max(since, ...[info, ...branches].map((one) => said.before(one, time)));
}
