import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** A local file that a configuration imports, directly or through another one. */
export interface ImportedFile {
  /** Its real path. */
  readonly path: string;
  readonly sha256: string;
}

/**
 * A relative path as the source of an `import`, an `export from`, `import()` or `require()`. Comments and texts can
 * match too, which adds a file and leaves none out.
 */
const relativeImport =
  /(?:\bfrom|\bimport|\brequire)\s*\(?\s*(?:\/\*.*?\*\/\s*)?(["'`])(\.{1,2}\/[^"'`$\\]*)\1/g;

/**
 * The local files that a configuration imports by relative paths, in the order of their paths. Packages, and paths that
 * are computed, are not followed.
 */
export function importedFiles(config: string): readonly ImportedFile[] {
  const found = new Map<string, string>();
  const paths = [config];
  for (const path of paths)
    for (const imported of importsOf(path)) {
      if (found.has(imported) || imported === realpathSync(config)) continue;
      found.set(imported, createHash('sha256').update(readFileSync(imported)).digest('hex'));
      paths.push(imported);
    }
  return [...found].map(([path, sha256]) => ({ path, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

function importsOf(path: string): readonly string[] {
  const text = readFileSync(path, 'utf8');
  return [...text.matchAll(relativeImport)].flatMap(([, , specifier = '']) => {
    const file = resolve(dirname(path), specifier.replace(/[?#].*$/, ''));
    const found = [file, ...extensions.map((extension) => file + extension)].find(isFile);
    return found === undefined ? [] : [realpathSync(found)];
  });
}

/** What `require` adds to a path without an extension. */
const extensions = ['.js', '.json', '.cjs', '/index.js'];

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
