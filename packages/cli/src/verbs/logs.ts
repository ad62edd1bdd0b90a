import { resolve } from 'node:path';
import type { LogFile, LogPiece } from '@tapedeck/runtime';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { jsonText } from '../escape.ts';
import { exit } from '../exit.ts';
import { onChanges } from '../export/changes.ts';
import { printArray, printLines } from '../output/array.ts';
import { counted } from '../output/counted.ts';
import type { WrittenLog } from '../output/log-folder.ts';
import { withProgress } from '../output/progress.ts';
import type { ShowProgress } from '../progress-line.ts';
import { needSession } from '../session/place.ts';
import { defineVerb, type Verb } from './verb.ts';

interface Options {
  readonly verbose?: boolean | undefined;
  readonly tree?: boolean | undefined;
  readonly follow?: boolean | undefined;
}

export const logs: Verb = defineVerb({
  command: 'logs <name>',
  group: 'Look',
  paged: true,
  summary: 'Render the logs of a session as Markdown',
  detail:
    'context.md is the conversation: prompts, answers, calls, results, anchors, merges. verbose.md has every entry, with times, usage, ' +
    'retries, manifests, permissions and all else that is recorded. Both are made of the tape alone: made again, they have the same ' +
    'bytes. Prints context.md, or with --verbose verbose.md; with -o, writes them as files, each whole or not at all. With --tree, each ' +
    'descendant has its own entries in a folder within that of its parent. Replaces only logs of the same session.',
  examples: [
    ['tape logs main', 'Print the conversation'],
    ['tape logs main --verbose', 'Print every entry with all that is recorded about it'],
    ['tape logs main --verbose --tree -o logs', 'Write both files, and those of all descendants'],
  ],
  arguments: { name: 'Session' },
  options: {
    verbose: { type: 'boolean', describe: 'Render every entry, with all that is recorded about it' },
    tree: { type: 'boolean', describe: 'Render the descendants, too' },
    follow: { type: 'boolean', alias: 'f', describe: 'Continue as any process writes, until Ctrl-C' },
    output: { type: 'string', takes: 'DIR', alias: 'o', describe: 'Write files to this directory' },
  },
  conflicts: { follow: ['json'] },
  run: async ({ name, output, ...options }, context) => {
    if (output === undefined && options.follow === true && options.tree === true)
      throw new UsageError('cannot follow the logs of a tree on stdout', {
        hint: 'write them to a directory: -o DIR',
      });
    if (output === '') throw new UsageError('cannot write logs: the directory has no name');
    return await context.reading(async (store) => {
      const info = needSession(store, name);
      if (output !== undefined)
        return await writeAll({ store, info, dir: resolve(context.io.cwd, output) }, options, context);
      return await print({ store, info }, options, context);
    });
  },
});

interface Of {
  readonly store: HomeStore;
  readonly info: SessionInfo;
}

async function filesOf({ store, info }: Of, options: Options): Promise<AsyncGenerator<LogFile>> {
  const { renderLogs } = await import('@tapedeck/runtime');
  const { verbose = false, tree = false } = options;
  return renderLogs(store, info.id, { verbose, tree });
}

/** Prints one file of each session: the verbose one, where it is requested. */
async function print(of: Of, options: Options, context: Context): Promise<number> {
  const { io } = context;
  const asJson = context.options.json === true || context.options.jsonl === true;
  const name = options.verbose === true ? 'verbose.md' : 'context.md';
  let next = 1;
  const pieces = async function* (from?: number): AsyncGenerator<[LogFile, LogPiece]> {
    for await (const file of await filesOf(of, options)) {
      if (file.name !== name) continue;
      next = file.session.head + 1;
      if (from === undefined || from < next)
        for await (const piece of file.pieces({ ...(from !== undefined && { from }) })) yield [file, piece];
    }
  };
  const show = async (from?: number) => {
    if (context.options.json === true) await printArray(io, mapped(pieces(from), pieceJson));
    else if (asJson)
      await printLines(
        io,
        mapped(pieces(from), (one) => jsonText(pieceJson(one))),
      );
    else
      await printTexts(
        mapped(pieces(from), ([, { text }]) => text),
        context,
      );
  };
  await show();
  if (options.follow !== true) return 0;
  await onChanges(of.store, io.signal, async () => await show(next));
  return exit.interrupted;
}

async function* mapped<From, To>(items: AsyncIterable<From>, to: (item: From) => To): AsyncGenerator<To> {
  for await (const item of items) yield to(item);
}

/** Characters that are printed at once. */
const chunkChars = 64 * 1024;

async function printTexts(texts: AsyncIterable<string>, { io }: Context): Promise<void> {
  let kept = '';
  for await (const text of texts) {
    kept += text;
    if (kept.length < chunkChars) continue;
    await io.out(kept);
    kept = '';
  }
  if (kept !== '') await io.out(kept);
}

function pieceJson([{ session, path }, { seq, text }]: [LogFile, LogPiece]): object {
  return { session: session.session, id: session.id, file: path.join('/'), seq: seq ?? null, text };
}

/** What was written of a file, and the heads that its session and the ancestors of its inherited entries had then. */
interface Written extends WrittenLog {
  readonly heads: ReadonlyMap<string, number>;
}

async function writeAll(
  { dir, ...of }: Of & { readonly dir: string },
  options: Options,
  context: Context,
): Promise<number> {
  const { addToLog, writeLog } = await import('../output/log-folder.ts');
  const { io } = context;
  const written = new Map<string, Written>();
  const texts = (log: LogFile, from?: number, show?: ShowProgress) =>
    mapped(log.pieces({ ...(from !== undefined && { from }) }), ({ text, seq }) => {
      if (seq !== undefined) show?.({ done: seq, total: log.session.head });
      return io.masked(text);
    });

  /** Writes a file, or what is new of it; undefined where there is nothing new. */
  const update = async (log: LogFile, show?: ShowProgress): Promise<WrittenLog | undefined> => {
    const before = written.get(log.path.join('/'));
    if (before === undefined) return await writeLog(dir, log, texts(log, undefined, show));
    const from = (before.heads.get(log.session.id) ?? 0) + 1;
    const isChanged = changesEarlier(of.store, before.heads);
    if (!isChanged && log.session.head < from) return undefined;
    const added = isChanged ? undefined : await addToLog(before, log, texts(log, from));
    return added ?? (await writeLog(dir, log, texts(log)));
  };
  const updateAll = async (
    tell: (log: LogFile, at: WrittenLog) => Promise<void>,
    progress?: (part: string) => ShowProgress,
  ) => {
    for await (const log of await filesOf(of, options)) {
      if (io.interrupted) return;
      const heads = headsOf(of.store, log.session, { inherited: log.session.id === of.info.id });
      const at = await update(log, progress?.(`Writing entries of ${log.session.session}`));
      if (at === undefined) continue;
      written.set(log.path.join('/'), { ...at, heads });
      await tell(log, at);
    }
  };
  const { json, jsonl, quiet } = context.options;
  const tell = async (log: LogFile, at: WrittenLog) => {
    if (jsonl === true) await io.out(`${jsonText(writtenJson(log, at))}\n`);
    else if (json !== true && quiet === true) await io.out(`${at.file}\n`);
    else if (options.follow === true) context.status(`Wrote ${at.file}`);
  };
  const all: object[] = [];
  if (options.follow === true) {
    // Reading the signal keeps Ctrl-C from ending the process within a file.
    const { signal } = io;
    await updateAll(tell);
    await onChanges(of.store, signal, async () => await updateAll(tell));
    return exit.interrupted;
  }
  const each = async (log: LogFile, at: WrittenLog) => {
    if (json === true) all.push(writtenJson(log, at));
    await tell(log, at);
  };
  // Lines on stdout say how far it is.
  if (jsonl === true) await updateAll(each);
  else await withProgress(context, async (progress) => await updateAll(each, progress));
  const { session, id } = of.info;
  if (json === true) await context.print({ session, id, dir, files: all });
  else if (jsonl !== true && quiet !== true)
    await context.answer({ json: {}, human: `Wrote ${counted(written.size, 'file')} to ${dir}` });
  return 0;
}

function writtenJson({ session, path }: LogFile, { bytes }: WrittenLog): object {
  return { session: session.session, id: session.id, file: path.join('/'), head: session.head, bytes };
}

/** The heads of a session, and of the tapes on which its inherited entries are. */
function headsOf(
  store: HomeStore,
  session: SessionInfo,
  { inherited }: { readonly inherited: boolean },
): ReadonlyMap<string, number> {
  const heads = new Map([[session.id, session.head]]);
  for (let at = session; inherited && at.parentId !== undefined && at.base > session.floor; ) {
    const above = store.sessions.find(at.parentId);
    if (above === undefined || heads.has(above.id)) break;
    heads.set(above.id, above.head);
    at = above;
  }
  return heads;
}

/** Whether entries that were written since change what is before them: a rewind hides some, a redaction erases one. */
function changesEarlier(store: HomeStore, heads: ReadonlyMap<string, number>): boolean {
  return [...heads].some(([id, head]) =>
    (['rewind', 'redaction'] as const).some(
      (kind) =>
        store.entries
          .read(id, { from: head + 1, kind, own: true, limit: 1 })
          [Symbol.iterator]()
          .next().done !== true,
    ),
  );
}
