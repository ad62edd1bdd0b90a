import type { FoundFile } from '../discovery/index.ts';
import { type OpenFile, openFile } from '../lines/index.ts';
import type { SourcePlan, TranscriptTool } from '../plan/format.ts';
import { recognise, type Seen, type SourceTable } from '../sources/index.ts';
import { FileReading } from './read-file.ts';

/** A file that is open for this import. */
export interface Opened {
  readonly file: FoundFile;
  readonly seen: Seen;
  readonly handle: OpenFile;
  readonly reading: FileReading;
}

/** Opens a file, and says what it is to what was read before. */
export async function open(
  file: FoundFile,
  {
    table,
    ...how
  }: { readonly table: SourceTable | undefined } & ConstructorParameters<typeof FileReading>[2],
): Promise<Opened> {
  const { path, tool, session } = file;
  const elsewhere = table?.of({ tool: tool.name, session, path }) ?? [];
  const seen = await recognise(path, { here: table?.at(path), elsewhere });
  const handle = openFile(path);
  return { file, seen, handle, reading: new FileReading(file, handle, how) };
}

/** The plan of files, without those that strictness leaves out. */
export async function planOf(
  read: NonNullable<TranscriptTool['plan']>,
  opened: readonly Opened[],
): Promise<SourcePlan> {
  const readings = opened.map(({ reading }) => reading);
  const plan = await read(readings);
  const left = readings.filter(({ error }) => error === undefined);
  for (const reading of left)
    reading.assertRegular(plan.faults?.get(plan.files.get(reading.path) ?? '') ?? []);
  return left.every(({ error }) => error === undefined) ? plan : await read(readings);
}

/** Whether a file lacks a part of what was read of its session: what it has in place of that goes beside it. */
export function isOther(seen: Seen): boolean {
  const isOfShorter = 'source' in seen && seen.source.isBehind === true;
  return seen.as === 'rewritten' || seen.as === 'version' || isOfShorter;
}
