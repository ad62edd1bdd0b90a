import { lstat, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { isInside, type Omission, readPromptFile } from './file.ts';
import type { ProjectFile } from './system-prompt.ts';

/** File names, in the order in which files of one directory appear in the prompt. */
const names = ['AGENTS.md', 'CLAUDE.md', 'CONTEXT.md'] as const;

/** The most bytes of a project's files together; the nearest directory comes first. */
const totalMax = 256 * 1024;

/**
 * Reads a project's instructions, from a directory up to the top of its repository, or else up to the user's
 * home; outside both, from the directory alone. Includes a text only once, for example if one file links to
 * another. Lists the files that it cannot read in `omitted`.
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
    : [{ path: directory, why: 'the directory does not exist' }];
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
          why: `with it the project's files would exceed ${totalMax / 1024} KiB`,
        });
        continue;
      }
      left -= bytes;
      known.add(`${place}\n${read.text}`).add(read.real);
      files.push({ path, label: relative(top, path).split(sep).join('/'), text: read.text });
    }
  return { files, omitted };
}

/** The directories to search, nearest first. */
async function placesFrom(directory: string, home: string): Promise<readonly string[]> {
  const start = await realpath(directory).catch(() => directory);
  const user = await realpath(home).catch(() => home);
  const places: string[] = [];
  for (let at = start; ; at = dirname(at)) {
    places.push(at);
    if (at === user || (await isRepository(at))) return places;
    // Other users may own the files of the directories above.
    if (at === dirname(at)) return isInside(start, user) ? places : [start];
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** `.git` is a directory; in a worktree or a submodule it is a file. */
async function isRepository(directory: string): Promise<boolean> {
  return await lstat(join(directory, '.git')).then(
    () => true,
    () => false,
  );
}
