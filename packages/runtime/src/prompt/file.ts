import { constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { relative, sep } from 'node:path';

/** A file or directory that was to be told of, and is not. */
export interface Omission {
  readonly path: string;
  /** `it is larger than 64 KiB`, say. */
  readonly why: string;
}

/** What reading a file came to. */
export type FileRead =
  | { readonly text: string /** With no link in it. */; readonly real: string }
  | { readonly why: string };

/** The most of one file that instructions hold, in bytes. */
const bytesMax = 64 * 1024;

/**
 * Reads a file that is to be told to a model: a text, of a size that can be told, that lies in `within` wherever links
 * lead. It throws nothing and waits for nobody. `undefined`: there is nothing of that name.
 */
export async function readPromptFile(path: string, within: string): Promise<FileRead | undefined> {
  try {
    if (!(await isThere(path))) return undefined;
    const real = await realpath(path);
    if (!isInside(real, await realpath(within))) return { why: `it is a link that leads out of '${within}'` };
    // A pipe that nobody writes would be waited for.
    const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = await file.stat();
      if (stat.isDirectory()) return { why: 'it is a directory' };
      if (!stat.isFile()) return { why: 'it is no regular file' };
      // Its size is only what it was: it may be growing.
      const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(bytesMax + 1), position: 0 });
      if (bytesRead > bytesMax) return { why: `it is larger than ${bytesMax / 1024} KiB` };
      const read = textOf(buffer.subarray(0, bytesRead));
      return 'why' in read ? read : { ...read, real };
    } finally {
      await file.close();
    }
  } catch (error) {
    return { why: reasonOf(error) };
  }
}

/** Whether a path is a directory or lies below it. Both without links. Pure. */
export function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== '..' && !way.startsWith(`..${sep}`);
}

/** Why the system refused, in words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (code === undefined ? undefined : reasons[code]) ?? message;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it is a link to nothing',
  ELOOP: 'its links lead in a circle',
  ENOTDIR: 'it is no directory',
  EACCES: 'it may not be read',
  EPERM: 'it may not be read',
};

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}

/** Bytes as a text that can be sent and shown: UTF-8 without control characters. */
function textOf(bytes: Uint8Array): { readonly text: string } | { readonly why: string } {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { why: 'it is not UTF-8' };
  }
  const control = /[^\P{Cc}\t\n\r]/u.exec(text)?.[0];
  if (control === undefined) return { text };
  const code = control.codePointAt(0) ?? 0;
  return { why: `it has the control character U+${code.toString(16).toUpperCase().padStart(4, '0')}` };
}
