import type { FoundFile } from '../discovery/index.ts';
import { type OpenFile, openFile } from '../lines/index.ts';
import type { SourcePlan, TranscriptTool } from '../plan/format.ts';
import { formatError } from '../plan/format-error.ts';
import { recognise, type Seen, type SourceTable } from '../sources/index.ts';
import { planFault } from './plan-fault.ts';
import { FileReading } from './read-file.ts';
import { isOwn } from './tools.ts';

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

/** Closes files that were opened. Nothing of them is read after that. */
export function closeAll(opened: readonly Opened[]): void {
  for (const { handle, reading } of opened) {
    reading.close();
    handle.close();
  }
}

/** A tool whose transcripts are read. */
type ReadTool = TranscriptTool & Required<Pick<TranscriptTool, 'plan'>>;

export function isReadTool(tool: TranscriptTool): tool is ReadTool {
  return tool.plan !== undefined;
}

/**
 * The plan of files, without those that strictness leaves out.
 * @throws IMPORT_FORMAT_FAILED
 */
export async function planOf(tool: ReadTool, opened: readonly Opened[]): Promise<SourcePlan> {
  const readings = opened.map(({ reading }) => reading);
  const plan = await planBy(tool, readings);
  const left = readings.filter(({ error }) => error === undefined);
  for (const reading of left)
    reading.assertRegular(plan.faults?.get(plan.files.get(reading.path) ?? '') ?? []);
  return left.every(({ error }) => error === undefined) ? plan : await planBy(tool, readings);
}

async function planBy(tool: ReadTool, readings: readonly FileReading[]): Promise<SourcePlan> {
  const main = readings[0]?.path ?? '';
  try {
    const plan = await tool.plan(readings);
    const fault = isOwn(tool) ? undefined : planFault(plan);
    if (fault === undefined) return plan;
    const whose = readings.find(
      ({ path }) => fault.file !== undefined && plan.files.get(path) === fault.file,
    );
    throw formatError(new TypeError(fault.why), { tool, file: whose?.path ?? main });
  } catch (cause) {
    throw formatError(cause, { tool, file: main });
  }
}

/** Whether a file lacks a part of what was read of its session: what it has in place of that goes beside it. */
export function isOther(seen: Seen): boolean {
  const isOfShorter = 'source' in seen && seen.source.isBehind === true;
  return seen.as === 'rewritten' || seen.as === 'version' || isOfShorter;
}
