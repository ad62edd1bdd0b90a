/**
 * Copies of homes: each family of sessions travels as a bundle, so that whatever store can write and adopt bundles can be
 * copied from and to. Imports `store` and what lies below.
 */
import { TapeError, type TapeErrorCode } from './errors.ts';
import type { ProgressOptions } from './progress.ts';
import type { SqliteTapeStore } from './store/sqlite.ts';
import type { SessionInfo } from './tape/info.ts';

/** What a copy did, and what it left. */
export interface Copied {
  /** Sessions of the first store, also archived ones. */
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
  const roots = from.sessions.list({ roots: true, all: true, after: null });
  const total = from.countSessions();
  // Content that is missing shows in no head.
  const isWhole = to.countAbsent() === 0;
  const refused: { session: string; error: TapeError }[] = [];
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
      } catch (error) {
        if (!(error instanceof TapeError) || !refusals.has(error.code)) throw error;
        refused.push({ session: root.session, error: ofFamily(root, error) });
      }
    }
    onProgress?.({ done: sessions, total });
  }
  return { sessions, changed, entries, refused, ...leftIn(from, to) };
}

/** The error of a family. What this store wrote and that one does not take is damaged here. */
function ofFamily({ session }: SessionInfo, cause: TapeError): TapeError {
  if (cause.code !== 'TAPE_BAD_BUNDLE') return cause;
  const message = `cannot copy '${session}': it does not verify: ${cause.message}`;
  return new TapeError('TAPE_CORRUPT', message, { data: { session }, cause });
}

function familyOf({ sessions }: SqliteTapeStore, root: SessionInfo): readonly SessionInfo[] {
  return [root, ...sessions.list({ under: root.id, all: true })];
}

/** Whether a session is the same in both stores, as far as its row says. */
function isSame(one: SessionInfo, there: SessionInfo | undefined): boolean {
  return there !== undefined && faceOf(one) === faceOf(there);
}

function faceOf({ headHash, lifecycle, task, delivery, title, aliases }: SessionInfo): string {
  return JSON.stringify([headHash, lifecycle, task, delivery, title, aliases]);
}

/** What differs between the stores after a copy, and what is never copied. */
function leftIn(from: SqliteTapeStore, to: SqliteTapeStore): Pick<Copied, 'behind' | 'waiting'> {
  const behind: string[] = [];
  for (const root of from.sessions.list({ roots: true, all: true, after: null }))
    for (const one of familyOf(from, root))
      if (!isSame(one, to.sessions.find(one.id))) behind.push(one.session);
  const waiting = from.sessions.list({ pending: true, all: true }).flatMap(({ id, session }) => {
    const items = from.inbox.list(id).length;
    return items === 0 ? [] : { session, items };
  });
  return { behind, waiting };
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
