/** The URL of a file of this package. This module lies one folder below it, in each of its forms. */
export function packageFile(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}
