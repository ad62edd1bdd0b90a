import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ConfigError } from '../errors/kinds.ts';
import { specifiersIn } from './specifiers.ts';

/** A local file that a configuration imports, directly or through another one. */
export interface ImportedFile {
  /** Its real path. */
  readonly path: string;
  readonly sha256: string;
}

/**
 * The local files that a configuration imports, in the order of their paths: by relative and absolute paths, by `file:`
 * addresses, and by the `imports` of the nearest `package.json`. Packages, and paths that are computed, are not followed.
 * @throws ConfigError for a file that cannot be read
 */
export function importedFiles(config: string): readonly ImportedFile[] {
  const found = new Map<string, string>();
  const own = realpathSync(config);
  const paths = [config];
  for (const path of paths)
    for (const imported of importsOf(path, config)) {
      if (found.has(imported) || imported === own) continue;
      const bytes = contentOf(imported, config);
      found.set(imported, createHash('sha256').update(bytes).digest('hex'));
      paths.push(imported);
    }
  return [...found].map(([path, sha256]) => ({ path, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

function importsOf(path: string, config: string): readonly string[] {
  return specifiersIn(contentOf(path, config).toString('utf8')).flatMap((specifier) => {
    const files = specifier.startsWith('#')
      ? mappedFiles(specifier, path, config)
      : candidates(specifier, path);
    return files.filter(isFile).map((file) => realpathSync(file));
  });
}

/** The files that a specifier can mean to `import`, which decodes it, and to `require`, which adds an ending. */
function candidates(specifier: string, from: string): readonly string[] {
  if (!/^(?:\.{0,2}\/|file:)/.test(specifier)) return [];
  const plain = resolve(dirname(from), specifier.replace(/[?#].*$/s, ''));
  const required = [plain, ...endings.map((ending) => plain + ending)].find(isFile);
  return [addressed(specifier, from), required].filter((file) => file !== undefined);
}

function addressed(specifier: string, from: string): string | undefined {
  try {
    return fileURLToPath(new URL(specifier, pathToFileURL(from)));
  } catch {
    return undefined;
  }
}

/** The nearest `package.json`, and the files that its `imports` can give a specifier such as `#tools`. */
function mappedFiles(specifier: string, from: string, config: string): readonly string[] {
  const file = nearestPackage(dirname(from));
  if (file === undefined) return [];
  const named = (value: unknown): readonly string[] =>
    typeof value === 'string'
      ? [value]
      : typeof value === 'object' && value !== null
        ? Object.values(value).flatMap(named)
        : [];
  try {
    const { imports } = JSON.parse(contentOf(file, config).toString('utf8')) as { readonly imports?: object };
    const targets = Object.entries(imports ?? {}).flatMap(([key, value]) => {
      const [before = '', after] = key.split('*');
      const fits =
        after === undefined ? key === specifier : specifier.startsWith(before) && specifier.endsWith(after);
      const star = specifier.slice(before.length, specifier.length - (after ?? '').length);
      return fits ? named(value).map((target) => target.replaceAll('*', star)) : [];
    });
    return [file, ...targets.flatMap((target) => candidates(target, file))];
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    return [file];
  }
}

function nearestPackage(dir: string): string | undefined {
  const file = resolve(dir, 'package.json');
  if (isFile(file)) return file;
  return dirname(dir) === dir ? undefined : nearestPackage(dirname(dir));
}

/** What `require` adds to a path without an extension. */
const endings = ['.js', '.json', '.cjs', '/index.js'];

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** @throws ConfigError */
function contentOf(path: string, config: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new ConfigError(
      'CLI_BAD_CONFIG',
      `cannot use '${config}': '${path}', which it imports, cannot be read: ${(cause as Error).message}`,
      { data: { config }, cause },
    );
  }
}
