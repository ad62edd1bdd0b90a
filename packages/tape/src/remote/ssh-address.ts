import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';

/** A home on another machine, as a URL names it. */
export interface SshAddress {
  /** The URL. Has no password. */
  readonly url: string;
  /** The words of ssh for the machine and the account. */
  readonly words: readonly string[];
  /** The directory of the home; relative to the one of the account where the URL has `/~/`. */
  readonly home: string;
}

/**
 * Reads `ssh://[user@]host[:port]/path/of/home`; undefined for another URL.
 * @throws TAPE_BAD_OPTION for what ssh would take for an option
 */
export function sshAddress(url: string): SshAddress | undefined {
  if (!/^ssh:\/\//i.test(url)) return undefined;
  if (/[\p{C}\s]/u.test(url))
    throw refused('ssh://…', 'it has a space, a line end or another control character');
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    throw refused('ssh://…', 'it is no valid URL', cause);
  }
  const { port, password, search, hash } = parsed;
  if (password !== '') throw refused('ssh://…', 'ssh takes no password from a URL');
  const [user, path] = [decoded(parsed.username, url), decoded(parsed.pathname, url)];
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1');
  if (!/^[\p{L}\p{N}_.:%][\p{L}\p{N}_.:%-]*$/u.test(host)) throw refused(url, 'its host is no name of one');
  if (user !== '' && !/^[\p{L}\p{N}_.+@][\p{L}\p{N}_.+@-]*$/u.test(user))
    throw refused(url, 'its user is no name of one');
  if (search !== '' || hash !== '') throw refused(url, "it has a '?' or '#': write them as %3F and %23");
  if (/\p{C}/u.test(path)) throw refused(url, 'its path has a control character');
  const home = path.replace(/^\/~(?:\/|$)/, './');
  if (home === '' || home === '/') throw refused(url, 'it has no path of a home');
  return {
    url,
    words: [...(port === '' ? [] : ['-p', port]), '--', user === '' ? host : `${user}@${host}`],
    home,
  };
}

/** A word for the shell of the other side. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function decoded(text: string, url: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw refused(url, 'it has a % that begins no character', cause);
  }
}

function refused(shown: string, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_BAD_OPTION', `cannot use ${quote(shown)} as a remote: ${why}`, {
    data: { field: 'url', near: [] },
    cause,
  });
}
