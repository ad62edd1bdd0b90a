import type { ExportOptions } from '@tapedeck/runtime';
import type { HomeStore } from '@tapedeck/tape';
import { saveText } from '@tapedeck/tape/internal';
import type { Context } from '../context.ts';
import { counted } from '../output/counted.ts';
import { counting, withProgress } from '../output/progress.ts';

/** What is exported, and to which file; without one, to stdout. */
export interface Exporting {
  readonly store: HomeStore;
  readonly id: string;
  readonly file: string | undefined;
}

/** Characters that are printed at once. */
const chunkChars = 64 * 1024;

/** Writes a session in the form of another program, and prints what was written. */
export async function exportForm(
  { store, id, file }: Exporting,
  how: ExportOptions,
  context: Context,
): Promise<number> {
  const { io, answer, status } = context;
  const { exportSession } = await import('@tapedeck/runtime');
  const { session, format, items, withheld } = await withProgress(context, async (progress) => {
    const pieces = exportSession(store, id, how);
    // A terminal shows the text itself.
    if (file === undefined && io.isTerminal) return await printed(pieces, io.out);
    const shown = counting(pieces, progress('Exporting parts'));
    return file === undefined ? await printed(shown, io.out) : await saveText(file, shown);
  });
  if (file !== undefined)
    await answer({
      json: { file, session, format, items, withheld },
      quiet: file,
      human: `Exported ${session} to ${file}: ${counted(items, itemOf[format])}`,
    });
  if (withheld > 0) status(withheldText(withheld));
  return 0;
}

/** What is said of secrets that were replaced. */
export function withheldText(withheld: number): string {
  return `secrets in ${counted(withheld, 'entry', 'entries')} were replaced; to export them, add --raw`;
}

/** What a form counts. */
const itemOf = {
  'ui-message': 'message',
  'openai-chat': 'context',
  markdown: 'section',
  'session-jsonl': 'message',
  nexus3: 'message',
  'claude-code': 'message',
  pi: 'message',
} as const satisfies Readonly<Record<ExportOptions['format'], string>>;

/** Prints a text that is made in pieces. */
export async function printed<T>(
  pieces: AsyncGenerator<string, T>,
  out: (text: string) => Promise<void>,
): Promise<T> {
  let kept = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) kept += value;
    if (done === true || kept.length >= chunkChars) {
      if (kept !== '') await out(kept);
      kept = '';
    }
    if (done === true) return value;
  }
}
