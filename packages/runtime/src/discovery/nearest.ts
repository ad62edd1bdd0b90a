import { sep } from 'node:path';

/**
 * Says beside which of some files another one lies: the one whose path has most in common with it, the first of several. The
 * folder of a session has the name of its file, so that it is no nearer to a copy of that under a longer name. Pure.
 */
export function nearestOf<T extends { readonly path: string }>(
  files: readonly T[],
): (path: string) => T | undefined {
  const places = files.map((file) => ({ file, folder: file.path.replace(ending, sep) }));
  return (path) => {
    let [found, most] = [files[0], 0];
    for (const { file, folder } of places) {
      // What has more in common has this character in common, too: so of many files each is mostly compared in one.
      const length = folder[most] === path[most] ? commonLength(folder, path) : 0;
      if (length > most) [found, most] = [file, length];
    }
    return found;
  };
}

/** What a transcript has behind the name of its folder. */
const ending = /\.jsonl?(?:\.\w+)?$/;

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
