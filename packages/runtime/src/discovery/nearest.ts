/** The one of some files whose path has most in common with that of another file, the first of several. Pure. */
export function nearest<T extends { readonly path: string }>(
  path: string,
  files: readonly T[],
): T | undefined {
  const common = files.map((one) => commonLength(one.path, path));
  return files[common.indexOf(Math.max(...common))];
}

function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
