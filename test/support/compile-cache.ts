import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

/**
 * As `NODE_COMPILE_CACHE`: else each of a thousand processes compiles the same code anew. Each user has one, which
 * stays where it is when a run moves the directory of temporary files.
 */
export const compileCache: string =
  process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), `tapedeck-compile-cache-${userInfo().uid}`);
