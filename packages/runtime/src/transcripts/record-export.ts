import { sep } from 'node:path';
import { openFile, stateOf } from '../lines/index.ts';
import type { Place, TranscriptTool } from '../plan/format.ts';
import type { SourceTable } from '../sources/index.ts';

/** No import has read the file. */
const neverRead = 0;

/**
 * Records a transcript that an export wrote where its tool keeps such files: the home has all of it, so that an import reads
 * it only after another program has added to it. A file elsewhere is no source.
 * @throws IMPORT_CANNOT_WRITE
 */
export async function recordExport(
  table: SourceTable,
  tool: TranscriptTool,
  { path, session, project }: { readonly path: string; readonly session: string; readonly project: string },
  place: Place,
): Promise<void> {
  if (tool.plan === undefined || !tool.roots(place).some((root) => path.startsWith(root + sep))) return;
  const file = openFile(path);
  try {
    const about = { tool: tool.name, session, main: session, role: 'main', project } as const;
    table.put([{ path, ...file.facts, ...about, read: await stateOf(file), at: neverRead }]);
  } finally {
    file.close();
  }
}
