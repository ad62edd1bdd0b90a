import { readFileSync } from 'node:fs';

/** The URL of a file of this package. This module lies one folder below it, in each of its forms. */
export function packageFile(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}

/** The version of this package. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}
