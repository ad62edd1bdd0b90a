import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import { UsageError } from '../errors/kinds.ts';
import { systemFault } from '../errors/system-fault.ts';

/** The format of a picture by the ending of its file. */
const formats = { '.svg': 'svg', '.dot': 'dot', '.gv': 'dot', '.mmd': 'mermaid', '.json': 'json' } as const;

/**
 * The format that the ending of a file names.
 * @throws UsageError for another ending, and for a directory
 */
export function formatOf(file: string): (typeof formats)[keyof typeof formats] {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new UsageError(`cannot write the picture '${file}': it is a directory`);
  const ending = extname(file).toLowerCase();
  const format = formats[ending as keyof typeof formats];
  if (format === undefined)
    throw new UsageError(
      `cannot write the picture '${file}': it does not end with ${Object.keys(formats).join(', ')}`,
    );
  return format;
}

/**
 * Writes a file whole or not at all: under another name, which it then gives up.
 * @param print receives what writes the texts of the picture
 */
export async function writePicture(
  file: string,
  print: (out: (text: string | Uint8Array) => Promise<void>) => Promise<void>,
): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
  try {
    const fd = openSync(draft, 'wx');
    try {
      await print(async (text) => writeFileSync(fd, text));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, file);
  } catch (cause) {
    rmSync(draft, { force: true });
    throw new Error(`cannot write the picture '${file}': ${systemFault(cause)}`, { cause });
  }
}
