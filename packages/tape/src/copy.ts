/**
 * Copies of homes: each family of sessions travels as a bundle, so that whatever store can write and adopt bundles can be
 * copied from and to. Imports `store` and what lies below.
 */
import type { Adopted } from './bundle/adopt.ts';
import type { BundleScope } from './bundle/bundle.ts';
import { quote } from './entry/name.ts';
import { TapeError, type TapeErrorCode } from './errors.ts';
import type { ProgressOptions } from './progress.ts';
import type { HomeStore } from './store/home.ts';
import type { SessionInfo } from './tape/info.ts';
import type { SessionQuery } from './tape/listing.ts';
import type { Ref } from './tape/tape.ts';

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

/** What of a store is copied, and who hears how far it is. */
export interface CopyOptions extends ProgressOptions {
  /** Only these sessions, each with all that it inherits from. */
  readonly sessions?: readonly Ref[];
  /** With `sessions`: also all that descends from them. */
  readonly trees?: boolean;
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
 * heads of all sessions are compared. With `sessions`, their lineages alone are copied and compared, one by one.
 * `onProgress` receives how many sessions were looked at.
 * @throws TAPE_NO_SESSION; the errors of `bundles.write` and `bundles.adopt` that are not about one family, such as TAPE_IO
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
  from: HomeStore,
  to: HomeStore,
  { onProgress, ...selection }: CopyOptions = {},
): Promise<Copied> {
  const families = () => familiesOf(from, selection);
  const total =
    selection.sessions === undefined
      ? from.countSessions(undefined, { deleted: true })
      : [...families()].reduce((sum, { members }) => sum + members.length, 0);
  // Content that is missing shows in no head.
  const isWhole = to.countAbsent() === 0;
  const refused: { session: string; error: TapeError }[] = [];
  const redacted: string[] = [];
  let sessions = 0;
  let changed = 0;
  let entries = 0;
  for (const { root, scope, members: family } of families()) {
    sessions += family.length;
    if (!isWhole || !family.every((one) => isSame(one, to.sessions.find(one.id)))) {
      try {
        const lines = from.bundles.write(root.id, { scope, raw: true });
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
  const { stillThere, ...left } = leftIn(families(), from, to);
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
function listed({ sessions }: HomeStore, query: SessionQuery): readonly SessionInfo[] {
  return [
    ...sessions.list({ ...query, all: true, deleted: false }),
    ...sessions.list({ ...query, deleted: true }),
  ];
}

/** Sessions that travel together, and the one that their bundle is of. */
interface Family {
  readonly root: SessionInfo;
  readonly scope: BundleScope;
  readonly members: readonly SessionInfo[];
}

/** The families of a store, as they are when their turn comes; of named sessions their lineages, or the trees below them. */
function* familiesOf(
  store: HomeStore,
  { sessions, trees = false }: Pick<CopyOptions, 'sessions' | 'trees'>,
): Generator<Family, void> {
  if (sessions === undefined) {
    for (const root of listed(store, { roots: true, after: null }))
      yield { root, scope: 'tree', members: [root, ...listed(store, { under: root.id })] };
    return;
  }
  for (const ref of sessions) {
    const root = need(store, ref);
    const own = [root, ...(trees ? listed(store, { under: root.id }) : [])];
    yield { root, scope: trees ? 'tree' : 'lineage', members: withAncestors(store, own) };
  }
}

function need({ sessions }: HomeStore, ref: Ref): SessionInfo {
  const found = sessions.find(ref);
  if (found !== undefined) return found;
  throw new TapeError('TAPE_NO_SESSION', `cannot copy ${quote(ref)}: no such session`, {
    data: { session: ref },
  });
}

/** Sessions with all those that they inherit from. */
function withAncestors(store: HomeStore, own: readonly SessionInfo[]): readonly SessionInfo[] {
  const all = new Map(own.map((one) => [one.id, one]));
  for (const one of own)
    for (let at = one; at.parentId !== undefined && !all.has(at.parentId); ) {
      at = need(store, at.parentId);
      all.set(at.id, at);
    }
  return [...all.values()];
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
  families: Iterable<Family>,
  from: HomeStore,
  to: HomeStore,
): Pick<Copied, 'behind' | 'stillThere' | 'waiting'> {
  const behind = new Set<string>();
  const stillThere = new Set<string>();
  const copied = new Set<string>();
  for (const { members } of families)
    for (const one of members) {
      copied.add(one.id);
      const there = to.sessions.find(one.id);
      if (isSame(one, there)) continue;
      if (isPurged(one) && there !== undefined) stillThere.add(one.id);
      else behind.add(one.session);
    }
  const waiting = from.sessions
    .list({ pending: true, all: true })
    .filter(({ id }) => copied.has(id))
    .flatMap(({ id, session }) => {
      const items = from.inbox.list(id).length;
      return items === 0 ? [] : { session, items };
    });
  return { behind: [...behind], stillThere: [...stillThere], waiting };
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
