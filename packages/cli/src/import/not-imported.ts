import type { ImportError, ImportErrorCode, TranscriptTool } from '@tapedeck/runtime/import';

/** A file as the user named it, and its path. */
interface NamedFile {
  readonly named: string;
  readonly path: string;
}

/** The error of a file that is not imported. */
export async function notImported(
  { named, path }: NamedFile,
  code: ImportErrorCode,
  why: string,
  more: { readonly tool?: string } = {},
): Promise<ImportError> {
  const { ImportError } = await import('@tapedeck/runtime/import');
  return new ImportError(code, `cannot import '${named}': ${why}`, { data: { file: path, why, ...more } });
}

/** The error of a file of a tool whose transcripts are not read. */
export async function notYetRead(
  file: NamedFile,
  { title, file: what }: Pick<TranscriptTool, 'title' | 'file'>,
): Promise<ImportError> {
  const why = `it is ${what}, which is recognised and not yet read`;
  return await notImported(file, 'IMPORT_UNKNOWN_FORMAT', why, { tool: title });
}

/** The error of a file of which is known what it looks like, and no more. */
export async function notKnown(file: NamedFile, like: string): Promise<ImportError> {
  return await notImported(file, 'IMPORT_UNKNOWN_FORMAT', `it looks like ${like}, which is not known`);
}
