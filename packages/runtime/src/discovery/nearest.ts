/** The one of some files whose path has most in common with that of another file, the first of several. Pure. */
export function nearest<T extends { readonly path: string }>(
  path: string,
  files: readonly T[],
): T | undefined {
  const common = files.map((one) => {
    const differs = [...one.path].findIndex((letter, i) => letter !== path[i]);
    return differs === -1 ? one.path.length : differs;
  });
  return files[common.indexOf(Math.max(...common))];
}
