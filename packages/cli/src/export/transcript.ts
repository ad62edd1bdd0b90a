/**
 * Writes sessions for other programs and for people: as transcripts of other agents (`transcript.ts`), as documents (`form.ts`),
 * as a directory with a file for each session (`folder.ts`) and as a file of lineage (`graph.ts`). The runtime makes the texts.
 * Imports `import`, `config` and what lies below.
 */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ExportOptions } from '@tapedeck/runtime';
import type { Transcript, TranscriptForm } from '@tapedeck/runtime/internal';
import { TapeError } from '@tapedeck/tape';
import { makeDirectories, saveText } from '@tapedeck/tape/internal';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { systemFault } from '../errors/system-fault.ts';
import { shellLine } from '../escape.ts';
import { knownSources } from '../import/known-sources.ts';
import { counted } from '../output/counted.ts';
import { counting, withProgress } from '../output/progress.ts';
import { type Exporting, printed, withheldText } from './form.ts';

/** What is exported. Without a file, it goes to where the program looks for its transcripts, or is printed. */
export interface ExportingTranscript extends Exporting {
  readonly isPrinted: boolean;
}

/** Writes a transcript for another program, and prints the command that continues from it. */
export async function exportTranscript(
  { store, id, file: given, isPrinted }: ExportingTranscript,
  how: ExportOptions & { readonly format: TranscriptForm },
  context: Context,
): Promise<number> {
  const { io, answer, status } = context;
  const { format, at = 'head', project: asked } = how;
  const [{ exportSession }, { resumeCommand, transcriptFor, transcriptPath }] = await Promise.all([
    import('@tapedeck/runtime'),
    import('@tapedeck/runtime/internal'),
  ]);
  const info = store.sessions.find(id);
  if (info === undefined) throw new TypeError(`session ${id} is gone`);
  const cut = { store, info: { ...info, head: store.entries.resolve(id, at) } };
  const transcript = await transcriptFor(cut, { form: format, project: asked, cwd: io.cwd });
  const file = isPrinted
    ? undefined
    : (given ?? transcriptPath(format, transcript, { env: io.env, home: userHome(io) }));
  const { project } = transcript;
  const resume =
    file === undefined
      ? undefined
      : given === undefined || format === 'pi'
        ? resumeCommand(format, transcript, file)
        : undefined;
  // The directory may be one of another machine, or one that is yet to be made.
  const make = existsSync(project) ? '' : `mkdir -p ${shellLine(project)} && `;
  const command =
    resume === undefined
      ? undefined
      : `${make}cd ${shellLine(project)} && ${resume.map(shellLine).join(' ')}`;
  if (file !== undefined && given === undefined) {
    if (existsSync(file))
      throw new TapeError('TAPE_EXISTS', `cannot export '${info.session}' to '${file}': the file exists`, {
        data: { file, resume: command },
      });
    makeFolder(file, info.session);
  }
  const { session, items, withheld } = await withProgress(context, async (progress) => {
    const pieces = exportSession(store, id, { ...how, project });
    if (file === undefined && io.isTerminal) return await printed(pieces, io.out);
    const shown = counting(pieces, progress('Exporting parts'));
    return file === undefined ? await printed(shown, io.out) : await saveText(file, shown);
  });
  if (file !== undefined)
    await answer({
      json: { file, session, format, items, withheld, transcript: { id: transcript.id, project, resume } },
      quiet: file,
      human: [
        `Exported ${session} to ${file}: ${counted(items, 'message')}`,
        ...(command === undefined ? [] : [`Continue with: ${command}`]),
      ].join('\n'),
    });
  if (withheld > 0) status(withheldText(withheld));
  if (file !== undefined && format === 'claude-code') await record(file, transcript, context);
  return 0;
}

/** Makes the folder of a transcript, for its user alone. */
function makeFolder(file: string, session: string): void {
  try {
    makeDirectories(dirname(file), 0o700);
  } catch (cause) {
    if (!(cause instanceof Error && 'syscall' in cause)) throw cause;
    throw new TapeError('TAPE_IO', `cannot export '${session}' to '${file}': ${systemFault(cause)}`, {
      data: { file },
      cause,
    });
  }
}

/** Has imports know the file; a home that takes none has it read by the next one. */
async function record(
  path: string,
  { id: session, project }: Transcript,
  { io, home }: Context,
): Promise<void> {
  const { claudeCode, ImportError, recordExport } = await import('@tapedeck/runtime/import');
  try {
    const table = await knownSources(home);
    const place = { env: io.env, home: userHome(io) };
    await recordExport(table, claudeCode, { path, session, project }, place);
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
  }
}
