import { nearNames, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';

/** A home on a server: where it is, without the words that open it. */
export interface Address {
  /** The address as it was given, with its schema. */
  readonly given: string;
  /** Whether it has a password. */
  readonly hasPassword: boolean;
  /** What `pg` connects to. */
  readonly url: string;
  /** The schema that the home has there for itself. */
  readonly schema: string;
  /** What the address itself sets for each connection, as words of the server's command line. */
  readonly options: string;
  /** The statement that each connection begins with: poolers do not pass on what is set while it is made. */
  readonly begin: string;
  /** The address as it may be shown: without user and password. */
  readonly shown: string;
}

/** What connections to an address are for. */
export interface AddressOptions {
  /**
   * `full` (default): a commit is on the disk of the server as far as the server is set to do so; `fast`: it waits for no
   * disk, so that a crash of the server can lose the latest, and nothing else.
   */
  readonly durability?: 'full' | 'fast' | undefined;
}

/**
 * After how many milliseconds without a word the server ends an act that is not over: its process was stopped, or its machine
 * is gone, and others wait for what it has locked. An address can set another limit in `options`.
 */
const stoppedMs = 15_000;
const limit = 'idle_in_transaction_session_timeout';

/** A role can have the server end what idles: a home that is open may idle for days. Older servers have no such setting. */
const mayIdle = `CASE WHEN current_setting('server_version_num')::int >= 140000
  THEN set_config('idle_session_timeout', '0', false) END`;

/**
 * What the acts count on, whatever the server, the database or the role sets: bytes and numbers are read as they are written
 * so, and an act that has waited for its lock sees what the one before it committed. Compiling a statement takes seconds that
 * running it does not: the acts ask for a few rows.
 */
const fixed = [
  ['bytea_output', 'hex'],
  ['extra_float_digits', '1'],
  ['standard_conforming_strings', 'on'],
  ['default_transaction_isolation', 'read committed'],
  ['jit', 'off'],
] as const;

const schemaDefault = 'tapedeck';

/**
 * Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME`.
 * @throws TAPE_CANNOT_OPEN; the message has no user and no password
 */
export function parseAddress(text: string, { durability = 'full' }: AddressOptions = {}): Address {
  const url = URL.parse(text);
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol))
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      'cannot open the home: its address is not of the form postgres://HOST/DATABASE',
    );
  // A `/` or `#` in a password ends the host: what follows it would be shown.
  if (`${url.pathname}${url.hash}`.includes('@'))
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      'cannot open the home: a user or password in its address has a character that must be written as %XX',
    );
  for (const name of url.searchParams.keys())
    if (name !== 'schema' && nearNames(name.toLowerCase(), ['schema'], { within: 1 }).length > 0)
      throw new TapeError(
        'TAPE_CANNOT_OPEN',
        `cannot open the home: its address has the parameter ${quote(name)}; write schema`,
      );
  const schema = url.searchParams.get('schema') ?? schemaDefault;
  const options = url.searchParams.get('options') ?? '';
  for (const name of ['schema', 'options']) url.searchParams.delete(name);
  const mode = url.searchParams.get('sslmode') ?? 'disable';
  if (!/^(?:disable|no-verify|prefer|require|verify-ca|verify-full)$/.test(mode))
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      `cannot open the home: ${quote(mode)} is no sslmode; use require, no-verify or disable`,
    );
  // `pg` verifies the server with each of these, and warns that it will not.
  if (/^(?:prefer|require|verify-ca)$/.test(mode)) url.searchParams.set('sslmode', 'verify-full');
  if (!/^[a-z_][a-z0-9_]{0,47}$/.test(schema))
    throw new TapeError(
      'TAPE_CANNOT_OPEN',
      `cannot open the home: ${quote(schema)} is no name of a schema; use small letters, digits and _`,
    );
  const hasPassword =
    url.password !== '' || [...url.searchParams.keys()].some((key) => /password/i.test(key));
  const settings = [
    ['search_path', schema],
    ...fixed,
    ...(options.includes(limit) ? [] : [[limit, String(stoppedMs)]]),
    ...(durability === 'fast' ? [['synchronous_commit', 'off']] : []),
  ];
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  shown.hash = '';
  shown.search = '';
  // `pg` connects to these before what precedes the database.
  for (const name of ['host', 'port']) {
    const value = url.searchParams.get(name);
    if (value !== null) shown.searchParams.set(name, value);
  }
  if (schema !== schemaDefault) shown.searchParams.set('schema', schema);
  return {
    given: text,
    hasPassword,
    url: url.href,
    schema,
    options,
    begin: `SELECT ${[...settings.map(([name, value]) => `set_config('${name}', '${value}', false)`), mayIdle].join(', ')}`,
    shown: shown.href,
  };
}
