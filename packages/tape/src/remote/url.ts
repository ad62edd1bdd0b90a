import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { gitAddress } from './git-address.ts';
import { sshAddress } from './ssh-address.ts';

/** What is at the other end of a URL. */
export type RemoteKind = 'directory' | 'git' | 'ssh';

const scheme = /^([a-z][a-z0-9+.-]*):/i;

/**
 * The kind of remote that a URL names.
 * @throws TAPE_BAD_OPTION for one that names none
 */
export function kindOf(url: string): RemoteKind {
  if (url.startsWith('/')) return 'directory';
  if (/^git[:+]/.test(url)) return 'git';
  if (/^ssh:/i.test(url)) return 'ssh';
  throw badUrl(url, 'it is no directory, which would have an absolute path');
}

/**
 * The URL of a remote as a home keeps it: with absolute paths, and `git:https://…` for `git+https://…`. May have a password.
 * @throws TAPE_BAD_OPTION for a URL of no known kind
 */
export function remoteUrl(given: string, cwd: string): string {
  if (given === '' || given.includes('\0')) throw badUrl(given, 'it is no place');
  const git = gitAddress(given, cwd);
  if (git !== undefined) return git.url;
  const ssh = sshAddress(given);
  if (ssh !== undefined) return ssh.url;
  const named = scheme.exec(given)?.[1]?.toLowerCase();
  if (named === 'file') return directoryOf(given);
  if (/^[\w.-]+@[\w.-]+:/.test(given))
    throw badUrl(
      given,
      'a home is named as in ssh://user@host/path, and a repository as in git:user@host:path',
    );
  if (named === 'https' || named === 'http')
    throw badUrl(given, `a repository is named as in git+${named}://host/path`);
  if (named !== undefined && !given.startsWith('./')) throw badUrl(given, `there are no remotes '${named}:'`);
  return resolve(cwd, given);
}

/** The URL of a remote without passwords and tokens, for people. */
export function shownUrl(url: string): string {
  return gitAddress(url, '/')?.shown ?? sshAddress(url)?.url ?? withoutUser(url);
}

/** The passwords and tokens of the URL of a remote; none of what is no such URL. */
export function urlSecrets(url: string): readonly string[] {
  try {
    return gitAddress(url, '/')?.secrets ?? [];
  } catch {
    return [];
  }
}

function withoutUser(url: string): string {
  return url.replace(/(:\/+)[^/]*@/, '$1***@');
}

function directoryOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw badUrl(url, (cause as Error).message);
  }
}

function badUrl(url: string, why: string): TapeError {
  return new TapeError('TAPE_BAD_OPTION', `cannot use ${quote(withoutUser(url))} as a remote: ${why}`, {
    data: { field: 'url', near: [] },
  });
}
