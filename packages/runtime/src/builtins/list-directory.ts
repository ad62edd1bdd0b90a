import type { Dirent } from 'node:fs';
import { lstat, opendir, readlink } from 'node:fs/promises';
import type { DeckTool } from '../tools/traits.ts';
import { countArgument, defineBuiltin, pathArgument } from './define.ts';
import { asBuiltin, BuiltinError } from './errors.ts';
import { type HeldDirectory, holdDirectory } from './held-directory.ts';
import type { BuiltinLimits } from './limits.ts';

interface ListInput {
  readonly path?: string;
  readonly offset?: number;
}

/** The most names of one listing, and of a directory that is sorted. */
const [pageMax, namesMax] = [500, 100_000];

/** Lists a directory. */
export function listDirectoryTool({ outputBytes }: Pick<BuiltinLimits, 'outputBytes'>): DeckTool {
  return defineBuiltin<ListInput>({
    description: `List a directory: names, / behind directories, and the sizes of files. Shows up to ${pageMax} names at a time.`,
    properties: {
      path: { ...pathArgument('The directory'), description: 'The directory (default: the workspace)' },
      offset: countArgument('The first name to show (default 1)'),
    },
    required: [],
    paths: { read: ['path'], display: 'path' },
    safeToRepeat: true,
    execute: async ({ path = '.', offset = 1 }, { place, signal }) => {
      const act = `list '${path}'`;
      try {
        await using directory = await holdDirectory(place, { path, kind: 'read', act });
        const names = await namesIn(directory, act);
        const lines: string[] = [];
        let bytes = 0;
        for (const entry of names.slice(offset - 1, offset - 1 + pageMax)) {
          signal.throwIfAborted();
          const line = await lineOf(directory, entry);
          bytes += Buffer.byteLength(line) + 1;
          if (bytes > outputBytes) break;
          lines.push(line);
        }
        const next = offset + lines.length;
        if (names.length === 0) return '[the directory is empty]';
        if (lines.length === 0) return `[nothing there: the directory has ${names.length} names]`;
        if (next <= names.length)
          lines.push(
            `[cut: ${lines.length} of ${names.length} names are shown; read on with {"offset":${next}}]`,
          );
        return lines.join('\n');
      } catch (error) {
        throw asBuiltin(error, act);
      }
    },
  });
}

/** The names in a directory, sorted. @throws TOOL_TOO_LARGE */
async function namesIn(directory: HeldDirectory, act: string): Promise<readonly Dirent[]> {
  const found: Dirent[] = [];
  for await (const entry of await opendir(directory.path)) {
    found.push(entry);
    if (found.length > namesMax)
      throw new BuiltinError('TOOL_TOO_LARGE', `cannot ${act}: it has more than ${namesMax} names`);
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function lineOf(directory: HeldDirectory, entry: Dirent): Promise<string> {
  const name = shownName(entry.name);
  if (entry.isDirectory()) return `${name}/`;
  if (entry.isSymbolicLink()) {
    const target = await readlink(directory.at(entry.name)).catch(() => '?');
    return `${name} -> ${shownName(target)}`;
  }
  if (!entry.isFile()) return `${name} (${entry.isFIFO() ? 'pipe' : entry.isSocket() ? 'socket' : 'device'})`;
  const size = await lstat(directory.at(entry.name)).then(
    (found) => `${found.size} bytes`,
    () => 'gone',
  );
  return `${name} (${size})`;
}

/** A name on one line: one with other characters than a line has is written as JSON. */
export function shownName(name: string): string {
  return /[\p{C}\u2028\u2029]/u.test(name) ? JSON.stringify(name) : name;
}
