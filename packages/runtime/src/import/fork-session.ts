import type { Draft, ForkRequest, HomeStore } from '@tapedeck/tape';
import type { ForkPreview } from '@tapedeck/tape/store';
import { type Wrote, wroteOf } from './append-drafts.ts';
import { batchOf } from './batch.ts';
import { isCode, isOvertaken, triesMax } from './overtaken.ts';
import { type ComingFork, headOf, readFork } from './read-fork.ts';
import type { ReadTape } from './read-tape.ts';
import type { Writing } from './writing.ts';
import type { WrittenSession } from './written-session.ts';

/** What a new fork has of its own. */
export interface Forking {
  /** Makes what it begins with, of the number of drafts that it inherits and the keys of what was erased. */
  readonly begin: (same: number, erased: ReadonlySet<string>) => readonly Draft[];
  /** Reads what it inherits; undefined where all of that has to be read. */
  readonly read?: (fork: ComingFork) => ReadTape | undefined;
}

/**
 * Forks the session of a conversation from another one with all that it has of its own, so that no reader sees it without that.
 * Undefined where it was forked before, perhaps under another name: it is compared then like any other session.
 */
export function forkSession(
  store: HomeStore,
  writing: Writing,
  {
    session,
    parent,
    place,
    begin,
    read,
  }: Forking & {
    readonly session: WrittenSession;
    readonly parent: string;
    readonly place: ForkRequest;
  },
): Wrote | undefined {
  const request = keyed(store, writing, { n: session.n, parent, place });
  let tape: ReadTape | undefined;
  let first: readonly Draft[] = [];
  for (let tries = 1; ; tries += 1) {
    // The head first: what moves the place of the fork behind it is noticed.
    const { id = parent, headHash = '' } = store.sessions.find(parent) ?? {};
    const seen = previewed(store, session, parent, request);
    if (typeof seen === 'string') {
      session.isAt(seen);
      return undefined;
    }
    const fork = { ...seen, from: id };
    if (tape?.head !== headOf(fork)) {
      tape = read?.(fork) ?? readFork(store, writing, fork, session.others);
      first = batchOf(writing.conversation, tape, begin(tape.change.same, tape.imported.erased));
    }
    try {
      const whole = { ...request, name: session.name, expectHead: headHash, first };
      const { session: name, repeated } = store.lineage.fork(parent, whole);
      if (repeated) continue;
      session.isAt(name);
      return wroteOf(first);
    } catch (error) {
      const isAgain = isOvertaken(error) || session.isRenamed(error);
      if (!isAgain || tries >= triesMax) throw error;
    }
  }
}

/** The request to fork a session: under the title of its source, and a key by which it is made once. */
function keyed(
  store: HomeStore,
  { conversation: { title, key: own } }: Writing,
  { n, parent, place }: { readonly n: number; readonly parent: string; readonly place: ForkRequest },
): ForkRequest {
  const wanted = n === 1 ? own : `${own}#${n}`;
  let key = wanted;
  // The conversation had a session before, of which nothing was left when the user returned to where it began.
  for (let i = 2; store.sessions.list({ parent, key, deleted: true }).length > 0; i += 1)
    key = `${wanted}~${i}`;
  return { ...(title !== undefined && { title }), ...place, key };
}

/** A fork that is not made yet, or the name of the session that was forked under its key before. */
function previewed(
  store: HomeStore,
  session: WrittenSession,
  parent: string,
  request: ForkRequest,
): ForkPreview | string {
  for (;;)
    try {
      const seen = store.lineage.previewFork(parent, { ...request, name: session.name });
      return seen.repeated && seen.session !== undefined ? seen.session : seen;
    } catch (error) {
      if (session.isRenamed(error)) continue;
      if (!isCode(error, 'TAPE_KEY_CONFLICT') || typeof error.data.session !== 'string') throw error;
      return error.data.session;
    }
}
