/** The one of some files whose path has most in common with that of another file, the first of several. Pure. */
export function nearest<T extends { readonly path: string }>(
  path: string,
  files: readonly T[],
): T | undefined {
  let [found, most] = [files[0], 0];
  for (const one of files) {
    // What has more in common has this character in common, too: so of many files each is mostly compared in one.
    const length = one.path[most] === path[most] ? commonLength(one.path, path) : 0;
    if (length > most) [found, most] = [one, length];
  }
  return found;
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
