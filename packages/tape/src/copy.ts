/**
 * Copies of homes: each family of sessions travels as a bundle, so that whatever store can write and adopt bundles can be
 * copied from and to. Imports `store` and what lies below.
 */
import type { Adopted } from './bundle/adopt.ts';
import { TapeError, type TapeErrorCode } from './errors.ts';
import type { ProgressOptions } from './progress.ts';
import type { SqliteTapeStore } from './store/sqlite.ts';
import type { SessionInfo } from './tape/info.ts';
import type { SessionQuery } from './tape/listing.ts';

/** What a copy did, and what it left. */
export interface Copied {
  /** Sessions of the first store, also archived, deleted and purged ones. */
  readonly sessions: number;
  /** How many of them were added, or brought up to date. */
  readonly changed: number;
  /** Entries that were added. */
  readonly entries: number;
  /**
   * Families that were left out, by the name of their root: the second store has other sessions in their place, or the
   * family does not verify (TAPE_CORRUPT).
   */
  readonly refused: readonly { readonly session: string; readonly error: TapeError }[];
  /** Sessions that are not the same in both stores at the end: they were refused, or went on during the copy. */
  readonly behind: readonly string[];
  /**
   * What was erased in the first store, and has its content in the second: sessions that were purged, by their ULIDs, and
   * entries that were redacted since the last copy, as `session@seq`. A copy erases nothing.
   */
  readonly stillThere: readonly string[];
  /** Sessions with items in their inbox. These stay in the first store: only one home may act on them. */
  readonly waiting: readonly { readonly session: string; readonly items: number }[];
}

/** Errors about one family. Others end the copy. */
const refusals: ReadonlySet<TapeErrorCode> = new Set([
  'TAPE_DIVERGED',
  'TAPE_EXISTS',
  'TAPE_BUSY',
  'TAPE_CORRUPT',
  'TAPE_BAD_BUNDLE',
]);

/**
 * Copies all sessions of the realm of one store to another, with their ids, hashes, other names and lineage. Each family,
 * a root and all that descends from it, is verified and committed as a whole. A copy that was interrupted is continued by
 * copying again: families that are the same in both stores are skipped, and of others what is new is added. At the end the
 * heads of all sessions are compared. `onProgress` receives how many sessions were looked at.
 * @throws the errors of `bundles.write` and `bundles.adopt` that are not about one family, such as TAPE_IO
 *
 * @example
 * ```ts
 * import { copyTapes, openTapeStore } from '@tapedeck/tape';
 *
 * using from = openTapeStore(':memory:');
 * from.sessions.open('main');
 * using to = openTapeStore(':memory:');
 * console.log((await copyTapes(from, to)).changed, (await copyTapes(from, to)).changed); // 1 0
 * console.log(to.sessions.find('main')?.headHash === from.sessions.find('main')?.headHash); // true
 * ```
 */
export async function copyTapes(
  from: SqliteTapeStore,
  to: SqliteTapeStore,
  { onProgress }: ProgressOptions = {},
): Promise<Copied> {
  const roots = listed(from, { roots: true, after: null });
  const total = from.countSessions(undefined, { deleted: true });
  // Content that is missing shows in no head.
  const isWhole = to.countAbsent() === 0;
  const refused: { session: string; error: TapeError }[] = [];
  const redacted: string[] = [];
  let sessions = 0;
  let changed = 0;
  let entries = 0;
  for (const root of roots) {
    const family = familyOf(from, root);
    sessions += family.length;
    if (!isWhole || !family.every((one) => isSame(one, to.sessions.find(one.id)))) {
      try {
        const lines = from.bundles.write(root.id, { scope: 'tree', raw: true });
        const adopted = await to.bundles.adopt({ name: root.session, chunks: bytesOf(lines) });
        entries += adopted.entries;
        const isNews = adopted.sessions.filter(({ became, filled }) => became !== 'same' || filled > 0);
        changed += Math.max(isNews.length, adopted.lines > 0 ? 1 : 0);
        redacted.push(...redactedAlone(family, adopted));
      } catch (error) {
        if (!(error instanceof TapeError) || !refusals.has(error.code)) throw error;
        refused.push({ session: root.session, error: ofFamily(root, error) });
      }
    }
    onProgress?.({ done: sessions, total });
  }
  const { stillThere, ...left } = leftIn(from, to);
  return { sessions, changed, entries, refused, stillThere: [...stillThere, ...redacted], ...left };
}

/** Entries whose redaction came with a copy, other than those of sessions that were purged as a whole. */
function redactedAlone(family: readonly SessionInfo[], { redactedElsewhere }: Adopted): readonly string[] {
  const purged = new Set(family.filter(isPurged).map(({ session }) => session));
  return redactedElsewhere
    .filter(({ session }) => !purged.has(session))
    .map(({ session, seq }) => `${session}@${seq}`);
}

/** The error of a family. What this store wrote and that one does not take is damaged here. */
function ofFamily({ session }: SessionInfo, cause: TapeError): TapeError {
  if (cause.code !== 'TAPE_BAD_BUNDLE') return cause;
  const message = `cannot copy '${session}': it does not verify: ${cause.message}`;
  return new TapeError('TAPE_CORRUPT', message, { data: { session }, cause });
}

/** The sessions of a query, also those that are deleted or purged: others may descend from them. */
function listed({ sessions }: SqliteTapeStore, query: SessionQuery): readonly SessionInfo[] {
  return [
    ...sessions.list({ ...query, all: true, deleted: false }),
    ...sessions.list({ ...query, deleted: true }),
  ];
}

function familyOf(store: SqliteTapeStore, root: SessionInfo): readonly SessionInfo[] {
  return [root, ...listed(store, { under: root.id })];
}

function isPurged({ lifecycle }: SessionInfo): boolean {
  return lifecycle === 'purged';
}

/** Whether a session is the same in both stores, as far as its row says. */
function isSame(one: SessionInfo, there: SessionInfo | undefined): boolean {
  return there !== undefined && faceOf(one) === faceOf(there);
}

function faceOf({ headHash, lifecycle, task, delivery, title, aliases, link }: SessionInfo): string {
  return JSON.stringify([headHash, lifecycle, task, delivery, title, aliases, link]);
}

/** What differs between the stores after a copy, and what is never copied. */
function leftIn(
  from: SqliteTapeStore,
  to: SqliteTapeStore,
): Pick<Copied, 'behind' | 'stillThere' | 'waiting'> {
  const behind: string[] = [];
  const stillThere: string[] = [];
  for (const root of listed(from, { roots: true, after: null }))
    for (const one of familyOf(from, root)) {
      const there = to.sessions.find(one.id);
      if (isSame(one, there)) continue;
      if (isPurged(one) && there !== undefined) stillThere.push(one.id);
      else behind.push(one.session);
    }
  const waiting = from.sessions.list({ pending: true, all: true }).flatMap(({ id, session }) => {
    const items = from.inbox.list(id).length;
    return items === 0 ? [] : { session, items };
  });
  return { behind, stillThere, waiting };
}

/** Some lines at a time: a line for each would be a write for each. */
const chunkChars = 256 * 1024;

function* bytesOf(lines: Iterable<string>): Generator<Uint8Array> {
  let text = '';
  for (const line of lines) {
    text += line;
    if (text.length < chunkChars) continue;
    yield Buffer.from(text);
    text = '';
  }
  yield Buffer.from(text);
}
