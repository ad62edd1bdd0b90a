import { readFileSync } from 'node:fs';
import { NotFoundError } from '../errors/kinds.ts';
import { packageFile } from '../package-file.ts';

/** A file of the page, as a browser gets it. */
export interface Asset {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Reads the files of the page, by the paths of their addresses: no path of a file is ever made of an address. */
export function readAssets(): ReadonlyMap<string, Asset> {
  return new Map([
    ['/', { type: 'text/html; charset=utf-8', bytes: readAsset('index.html') }],
    ['/page.js', { type: 'text/javascript; charset=utf-8', bytes: readAsset('page.js') }],
    ['/page.css', { type: 'text/css; charset=utf-8', bytes: readAsset('page.css') }],
  ]);
}

/**
 * Reads a file of the page.
 * @throws NotFoundError where the package was not built
 */
export function readAsset(name: 'index.html' | 'page.js' | 'page.css'): Buffer {
  const file = packageFile(`ui-dist/${name}`);
  try {
    return readFileSync(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    throw new NotFoundError(`cannot make the page: the package has no '${name}'`, { file: file.pathname });
  }
}
