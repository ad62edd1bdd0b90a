/**
 * Logs of sessions for people, as Markdown files. They are renderings: each is folded from the entries of one tape, one
 * after the other, and from nothing else, so that the same tape gives the same bytes at any time and on any machine.
 * `pieces.ts` reads a tape, `entry.ts` renders an entry, `facts.ts` what is recorded about it, `markdown.ts` places texts of
 * others so that they stay where they belong, and `folders.ts` gives each session of a tree its folder. Reads only, and
 * loads no AI SDK. Imports `store-of` and `fields`.
 */
import type { Seq, SessionInfo } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import { assertFields, type Fields } from '../fields.ts';
import { type StoreSource, storeOf } from '../store-of.ts';
import { Folders } from './folders.ts';
import { firstLine, type LogName, type LogPiece, piecesOf } from './pieces.ts';

export type { LogName, LogPiece } from './pieces.ts';

/**
 * A file of the logs of sessions.
 *
 * @example
 * ```ts
 * import { renderLogs } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * for await (const { path, firstLine } of renderLogs(store, 'main', { verbose: true }))
 *   console.log(path.join('/'), firstLine.startsWith('# '));
 *   // context.md true
 *   // verbose.md true
 * ```
 */
export interface LogFile {
  /** The folders below the one of the logs, and the name of the file: `['context.md']`. */
  readonly path: readonly string[];
  readonly name: LogName;
  /** The session that it renders, as it was when the file was listed. */
  readonly session: SessionInfo;
  /** The first line, which names the session: no other file begins with it. */
  readonly firstLine: string;
  /**
   * Its text, in pieces of one entry each. With `from` only the entries from this position on, without the heading of the
   * file.
   */
  pieces(options?: { readonly from?: Seq }): AsyncGenerator<LogPiece>;
}

/** What to render. */
export interface LogOptions {
  /** Also `verbose.md`: all entries, with times, usage, manifests and all else that is recorded about them. */
  readonly verbose?: boolean;
  /** Also the files of all descendants, in nested folders. Each of these renders its own entries alone. */
  readonly tree?: boolean;
}

/**
 * The files of the logs of a session: `context.md`, the conversation, and what else the options request. A text is read
 * when its pieces are, entry by entry, so that a long tape needs no more memory than a short one.
 *
 * In `context.md` one line stands for what a rewind hides, and records of the program are missing; `verbose.md` has every
 * entry. Texts are quoted, and characters that steer terminals are escapes. A large text is cut to its beginning.
 * @throws TAPE_NO_SESSION; SESSION_BAD_INPUT
 *
 * @example
 * ```ts
 * import { renderLogs } from '@tapedeck/runtime';
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * for await (const file of renderLogs(store, 'main'))
 *   for await (const { seq, text } of file.pieces()) if (seq === 2) console.log(text.split('\n')[0]); // ## @2 user
 * ```
 */
export async function* renderLogs(
  source: StoreSource,
  session: string,
  options: LogOptions = {},
): AsyncGenerator<LogFile> {
  assertFields(options, known, 'render logs');
  const { verbose = false, tree = false } = options;
  const store = storeOf(source, 'render logs');
  const root = await store.sessions.find(session);
  // `resolve` throws the error with the nearest names.
  if (root === undefined) return void (await store.entries.resolve(session, 'head'));
  const folders = new Folders(root);
  const filesOf = function* (of: SessionInfo, own: boolean): Generator<LogFile> {
    const names: readonly LogName[] = verbose ? ['context.md', 'verbose.md'] : ['context.md'];
    const folder = folders.of(of);
    for (const name of names)
      yield {
        path: [...folder, name],
        name,
        session: of,
        firstLine: firstLine(of, name),
        pieces: ({ from } = {}) => piecesOf(store, of, { name, own, from }),
      };
  };
  yield* filesOf(root, false);
  if (!tree) return;
  for (let after: string | null = null; ; ) {
    const page: readonly SessionInfo[] = await store.sessions.list({
      under: root.id,
      all: true,
      after,
      limit: pageSize,
    });
    for (const below of page) if (!isSummarizer(below)) yield* filesOf(below, true);
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = last.id;
  }
}

/** Sessions that are listed at once. */
const pageSize = 500;

const known: Fields<LogOptions> = { verbose: 'flag', tree: 'flag' };
