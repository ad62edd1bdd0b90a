import type { HomeStore } from '@tapedeck/tape';
import type { FoundFile } from '../discovery/index.ts';
import type { Reconciled } from '../import/reconciled.ts';
import { factsAt } from '../lines/index.ts';
import type { SourcePlan, TranscriptTool } from '../plan/format.ts';
import { newestIn, type Source, type SourceTable } from '../sources/index.ts';
import { saveEnd } from './continue-conversation.ts';
import { importOf } from './file-import.ts';
import { isRecorded, type lackingOf } from './lacking.ts';
import type { Opened } from './opened.ts';

/** Whether a file is as it was when it was read, and each of its sessions took what is new. */
export function isRead(file: FoundFile, table: SourceTable | undefined): boolean {
  const source = table?.at(file.path);
  return source !== undefined && source.lacks === undefined && isRecorded(file, source);
}

/** Records what was read of files, now that the tapes have it. */
export async function record(
  store: HomeStore,
  table: SourceTable,
  opened: readonly Opened[],
  {
    at,
    isBehind,
    lacks: lacksOf,
  }: { readonly at: number; readonly isBehind: IsFile; readonly lacks: ReturnType<typeof lackingOf> },
): Promise<void> {
  for (const { file, seen, reading } of opened) {
    const { path, tool, session, main, role, project, first } = file;
    const known = table.at(path);
    const lacks = lacksOf(file);
    const isKnown =
      known !== undefined && isRecorded(file, known) && JSON.stringify(known.lacks) === JSON.stringify(lacks);
    if (reading.error !== undefined || isKnown) continue;
    const about = {
      ...(project !== undefined && { project }),
      ...(first !== undefined && { first }),
      ...(isBehind(file) && { isBehind: true as const }),
      ...(lacks !== undefined && { lacks }),
    };
    const read = await reading.read();
    table.put([{ path, ...read, at, tool: tool.name, session, main, role, ...about } satisfies Source]);
    // A file that has moved, or was compressed, is known by its new path alone.
    const before = seen.as === 'moved' || seen.as === 'compressed' ? seen.source.path : path;
    if (before !== path && factsAt(before) === undefined) table.remove(before);
  }
  table.put([], newestIn(store));
}

/** Records where the main file can be read on when it has grown. */
export async function rememberEnd(
  store: HomeStore,
  plan: SourcePlan,
  {
    tool,
    done,
    opened,
    table,
  }: {
    readonly tool: TranscriptTool;
    readonly done: readonly Reconciled[];
    readonly opened: readonly Opened[];
    readonly table: SourceTable;
  },
): Promise<void> {
  const { end, session, copyOf, isNamed, conversations } = plan;
  const main = opened.find(({ file }) => file.role === 'main');
  const source = main && table.at(main.file.path);
  const wrote = done.find(({ conversation }) => conversation === end?.conversation);
  const grows = conversations.find(({ key }) => key === end?.conversation);
  if (main === undefined || source === undefined || wrote === undefined || grows === undefined) return;
  const open = copyOf === undefined && isNamed === undefined ? end : undefined;
  const { brought } = importOf(main, plan, { done, concluded: 0 });
  if (brought === undefined) return;
  const { sessions, derived: _, ...found } = brought;
  const { key, name } = grows;
  const directories = [...main.reading.directories];
  const others = sessions.filter((one) => one !== wrote);
  const { records } = await main.reading.lines();
  saveEnd(
    store,
    { tool, table, source, handle: main.handle, open, records },
    { session, key, name, directories, wrote, found, others },
  );
}

/** Says something of a file. */
type IsFile = (file: FoundFile) => boolean;
