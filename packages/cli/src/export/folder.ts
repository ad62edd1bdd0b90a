import { join } from 'node:path';
import type { Exported, ExportOptions } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { exit } from '../exit.ts';
import { counted } from '../output/counted.ts';
import { counting, withProgress } from '../output/progress.ts';
import type { ShowProgress } from '../progress-line.ts';
import { onChanges } from './changes.ts';
import { withheldText } from './form.ts';

/** Which session is written to a directory of sessions, and whether it is kept up to date. */
export interface ExportingFolder {
  readonly store: HomeStore;
  readonly id: string;
  readonly root: string;
  readonly follow: boolean;
}

/**
 * Writes `session.jsonl` and `metadata.json` to the directory of a session. Records are appended; those that are there are
 * compared, and not written again. A mirror is written anew where a rewind or a redaction changed what it has.
 */
export async function exportFolder(
  { store, id, root, follow }: ExportingFolder,
  how: ExportOptions,
  context: Context,
): Promise<number> {
  const { io, answer, status } = context;
  const { exportSession } = await import('@tapedeck/runtime');
  const { makeSessionFolder, mirrored, replaceFile } = await import('../output/session-folder.ts');
  const folder = makeSessionFolder(root, id);
  const write = async (replaces: boolean, show: ShowProgress): Promise<Exported> => {
    const pieces = () => counting(exportSession(store, id, how), show);
    const made = await mirrored(join(folder, 'session.jsonl'), { pieces, replaces });
    await replaceFile(join(folder, 'metadata.json'), `${JSON.stringify(made.metadata, undefined, 2)}\n`);
    return made;
  };
  // Reading the signal keeps Ctrl-C from ending the process within a file.
  const signal = follow ? io.signal : undefined;
  const { session, format, items, withheld } = await withProgress(
    context,
    async (progress) => await write(false, progress('Exporting parts')),
  );
  await answer({
    json: { file: folder, session, format, items, withheld },
    quiet: folder,
    human: `Exported ${session} to ${folder}: ${counted(items, 'message')}`,
  });
  if (withheld > 0) status(withheldText(withheld));
  if (signal === undefined) return exit.done;
  await onChanges(store, signal, async () => await write(true, () => {}));
  return exit.interrupted;
}
