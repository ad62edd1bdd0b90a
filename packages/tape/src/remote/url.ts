import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';

/** What is at the other end of a URL. */
export type RemoteKind = 'directory';

const scheme = /^([a-z][a-z0-9+.-]*):/i;

/**
 * The kind of remote that a URL names.
 * @throws TAPE_BAD_OPTION for one that names none
 */
export function kindOf(url: string): RemoteKind {
  if (url.startsWith('/')) return 'directory';
  throw badUrl(url, 'it is no directory, which would have an absolute path');
}

/**
 * The URL of a remote as a home keeps it: of a directory, its absolute path.
 * @throws TAPE_BAD_OPTION for a URL of no known kind
 */
export function remoteUrl(given: string, cwd: string): string {
  if (given === '' || given.includes('\0')) throw badUrl(given, 'it is no place');
  const named = scheme.exec(given)?.[1]?.toLowerCase();
  if (named === 'file') return directoryOf(given);
  if (/^[\w.-]+@[\w.-]+:/.test(given)) throw badUrl(given, 'a host is named as in ssh://user@host/path');
  if (named !== undefined && !given.startsWith('./')) throw badUrl(given, `there are no remotes '${named}:'`);
  return resolve(cwd, given);
}

function directoryOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw badUrl(url, (cause as Error).message);
  }
}

function badUrl(url: string, why: string): TapeError {
  return new TapeError('TAPE_BAD_OPTION', `cannot use ${quote(url)} as a remote: ${why}`, {
    data: { field: 'url', near: [] },
  });
}
