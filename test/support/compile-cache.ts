import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

/** As `NODE_COMPILE_CACHE`: else each of a thousand processes compiles the same code anew. Each user has one. */
export const compileCache: string = join(tmpdir(), `tapedeck-compile-cache-${userInfo().uid}`);
