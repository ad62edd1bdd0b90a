import { isAbsolute, resolve } from 'node:path';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';

/** A git repository, as a URL of a remote names it. */
export interface GitAddress {
  /** What git is given: an absolute path, or a URL. */
  readonly address: string;
  /** The URL of the remote, with an absolute path. May have a password. */
  readonly url: string;
  /** The same without passwords and tokens, for people. */
  readonly shown: string;
  /** Whether the repository is on this machine, where a push runs git in it. */
  readonly isLocal: boolean;
  /** Texts of the URL that nothing prints. */
  readonly secrets: readonly string[];
}

/** The schemes of what git connects to. `ext` and `fd` run programs; `git` has neither secrecy nor proof of who answers. */
const schemes: ReadonlySet<string> = new Set(['file', 'http', 'https', 'ssh']);

/**
 * Reads `git:PATH`, `git:URL`, `git:HOST:PATH`, and `git+https://…` as well as `git+ssh://…`; undefined for another URL.
 * @throws TAPE_BAD_OPTION for what git would take for an option, and for what it would run or read otherwise
 */
export function gitAddress(url: string, cwd: string): GitAddress | undefined {
  const [, address] = /^git(?::(?!\/\/)|\+(?=[a-z]+:\/\/)|(?=:\/\/))(.*)$/s.exec(url) ?? [];
  if (address === undefined) return undefined;
  if (address.startsWith('://')) throw notOf('git');
  // A text that may have secrets, and cannot be read, is not repeated.
  if (/\p{C}/u.test(address)) throw refused('git:…', 'it has a line end, or another control character');
  if (address === '') throw refused('git:', 'it has no path');
  if (/^[a-z][a-z0-9+.-]*::/i.test(address))
    throw refused(address.replace(/::.*$/, '::…'), 'it names a program that git would run');
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address) ?? [];
  if (scheme !== undefined) return withScheme(address, scheme.toLowerCase());
  const [, host] = isAbsolute(address) ? [] : (/^([^/:]+):/.exec(address) ?? []);
  if (host === undefined) return onDisk(resolve(cwd, address));
  assertHost(host, address);
  return { address, url: `git:${address}`, shown: `git:${address}`, isLocal: false, secrets: [] };
}

function onDisk(path: string): GitAddress {
  return { address: path, url: `git:${path}`, shown: `git:${path}`, isLocal: true, secrets: [] };
}

function withScheme(address: string, scheme: string): GitAddress {
  if (!schemes.has(scheme)) throw notOf(scheme);
  let parsed: URL;
  try {
    parsed = new URL(address);
  } catch (cause) {
    throw refused(`${scheme}://…`, 'it is no valid URL', cause);
  }
  const { username, password } = parsed;
  if (scheme === 'ssh' && password !== '') throw refused('ssh://…', 'ssh takes no password from a URL');
  // Git adds its own words behind the path; they may contain a token.
  if (scheme.startsWith('http') && /[?#]/.test(address))
    throw refused(`${scheme}://…`, "it has a '?' or '#': write them as %3F and %23");
  const isLocal = scheme === 'file';
  // The name of an account of ssh is no secret; that of a web address may be a token.
  const isToken = username !== '' && scheme !== 'ssh';
  const secrets = [...(isToken ? [username] : []), ...(password === '' ? [] : [password])].flatMap(forms);
  if (secrets.length > 0) [parsed.username, parsed.password] = ['***', ''];
  const shown = parsed.href;
  if (!isLocal) assertHost(decoded(`${username}@${parsed.hostname}`), shown);
  // A text of a few characters is part of other words.
  const told = secrets.filter((text) => text.length > 3);
  return { address, url: `git:${address}`, shown: `git:${shown}`, isLocal, secrets: told };
}

function notOf(scheme: string): TapeError {
  return refused(`${scheme}://…`, `a git remote is a path, or a URL of ${[...schemes].sort().join(', ')}`);
}

/** Refuses what ssh would take for an option: `-oProxyCommand=…` runs a program. */
function assertHost(host: string, shown: string): void {
  const names = host.split('@');
  if (names.at(-1) === '') throw refused(shown, 'it names no host');
  if (names.some((name) => name.startsWith('-')))
    throw refused(shown, 'a name of a host or a user begins with a minus sign');
  if (/[\s\p{C}'"`$;&|<>()\\]/u.test(host)) throw refused(shown, 'its host is no name of one');
}

/** A text of a URL as it is there, and as it was meant. */
function forms(text: string): readonly string[] {
  return [...new Set([text, decoded(text)])];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function refused(shown: string, why: string, cause?: unknown): TapeError {
  return new TapeError('TAPE_BAD_OPTION', `cannot use ${quote(shown)} as a remote: ${why}`, {
    data: { field: 'url', near: [] },
    cause,
  });
}
