import { existsSync, realpathSync } from 'node:fs';
import { relative, sep } from 'node:path';

/** Where a path leads; the path itself where it leads nowhere. */
export function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/**
 * A pattern that is a path, and the same with its beginning as it is behind all links: programs record working directories so.
 * Any other pattern alone.
 */
export function withRealBeginning(pattern: string): readonly string[] {
  const [, not = '', fixed = '', rest = ''] = /^(!?)((?:\/[^/*?[\]\\]+)+)(?=\/|$)(.*)$/.exec(pattern) ?? [];
  const real = fixed === '' ? fixed : realBeginning(fixed);
  return real === fixed ? [pattern] : [pattern, `${not}${real.replace(/[*?[\]\\]/g, '\\$&')}${rest}`];
}

/** Where a path leads, as far as there is something: a directory may be gone, and the one above it not. */
export function realBeginning(path: string): string {
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    const beginning = path.slice(0, end);
    // What is not there is an error of `realpath`, which takes as long as dozens of looks.
    if (existsSync(beginning)) return `${realOf(beginning)}${path.slice(end)}`;
  }
  return path;
}

/** Whether a path is a place, or what lies below it. Pure. */
export function isAtOrBelow(place: string, path: string): boolean {
  const below = relative(place, path);
  return below === '' || !(below === '..' || below.startsWith(`..${sep}`) || below.startsWith(sep));
}
