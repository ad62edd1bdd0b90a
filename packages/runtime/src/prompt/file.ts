import { constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { relative, sep } from 'node:path';

/** A file or directory that the prompt leaves out. */
export interface Omission {
  readonly path: string;
  /** For example `it is larger than 64 KiB`. */
  readonly why: string;
}

/** The result of reading a file. `real`: the path without links. */
export type FileRead = { readonly text: string; readonly real: string } | { readonly why: string };

/** The most bytes of one file in a prompt. */
const bytesMax = 64 * 1024;

/**
 * Reads a file for a prompt: UTF-8 text within the size limit, whose path without links lies in `within`.
 * Never throws and never blocks.
 * @returns undefined if no file of that name exists
 */
export async function readPromptFile(path: string, within: string): Promise<FileRead | undefined> {
  try {
    if (!(await isThere(path))) return undefined;
    const real = await realpath(path);
    if (!isInside(real, await realpath(within))) return { why: `it is a link to a path outside '${within}'` };
    // Without O_NONBLOCK, opening a pipe without a writer would block.
    const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = await file.stat();
      if (stat.isDirectory()) return { why: 'it is a directory' };
      if (!stat.isFile()) return { why: 'it is not a regular file' };
      // The file may grow after the stat, so read one byte more than allowed.
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

/** Whether a path is a directory or lies below it. Both must be free of links. Pure. */
export function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== '..' && !way.startsWith(`..${sep}`);
}

/** The reason of a system error, in words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (code === undefined ? undefined : reasons[code]) ?? message;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it is a broken link',
  ELOOP: 'its links form a loop',
  ENOTDIR: 'it is not a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
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

/** Decodes UTF-8 without control characters. */
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
  return { why: `it contains the control character U+${code.toString(16).toUpperCase().padStart(4, '0')}` };
}
