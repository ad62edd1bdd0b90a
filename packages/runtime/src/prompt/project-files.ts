import { lstat, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { isInside, type Omission, readPromptFile } from './file.ts';
import type { ProjectFile } from './system-prompt.ts';

/** What such files are called, in the order in which those of one directory are told. */
const names = ['AGENTS.md', 'CLAUDE.md', 'CONTEXT.md'] as const;

/** The most that the files of a project take together, in bytes; the nearest come first. */
const totalMax = 256 * 1024;

/**
 * Reads the instructions of a project, from a directory upward to the top of its repository, else to the user's own
 * directory; of a directory that lies in neither, only its own. A text that is there twice, by a link say, is told once.
 * What cannot be read is left out, and told of.
 */
export async function readProjectFiles(
  directory: string,
  home: string,
): Promise<{ readonly files: readonly ProjectFile[]; readonly omitted: readonly Omission[] }> {
  const places = await placesFrom(directory, home);
  const top = places.at(-1) ?? directory;
  const files: ProjectFile[] = [];
  const omitted: Omission[] = (await isDirectory(directory))
    ? []
    : [{ path: directory, why: 'there is no such directory' }];
  const known = new Set<string>();
  let left = totalMax;
  for (const place of places)
    for (const name of names) {
      const path = join(place, name);
      const read = await readPromptFile(path, top);
      if (read === undefined) continue;
      if ('why' in read) {
        omitted.push({ path, why: read.why });
        continue;
      }
      if (read.text.trim() === '' || known.has(`${place}\n${read.text}`) || known.has(read.real)) continue;
      const bytes = Buffer.byteLength(read.text);
      if (bytes > left) {
        omitted.push({
          path,
          why: `with it the project's files would be larger than ${totalMax / 1024} KiB`,
        });
        continue;
      }
      left -= bytes;
      known.add(`${place}\n${read.text}`).add(read.real);
      files.push({ path, label: relative(top, path).split(sep).join('/'), text: read.text });
    }
  return { files, omitted };
}

/** The directories to look at, the nearest first. */
async function placesFrom(directory: string, home: string): Promise<readonly string[]> {
  const start = await realpath(directory).catch(() => directory);
  const user = await realpath(home).catch(() => home);
  const places: string[] = [];
  for (let at = start; ; at = dirname(at)) {
    places.push(at);
    if (at === user || (await isRepository(at))) return places;
    // What lies in other directories may be anybody's.
    if (at === dirname(at)) return isInside(start, user) ? places : [start];
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** Git has a directory there; of a worktree or a submodule, a file. */
async function isRepository(directory: string): Promise<boolean> {
  return await lstat(join(directory, '.git')).then(
    () => true,
    () => false,
  );
}
