import { type HomeStore, type Redact, type Secret, TapeError, type TapeStore } from '@tapedeck/tape';
import { type Address, parseAddress, secretFault, secretsIn } from '@tapedeck/tape/internal';
import type { PostgresHomeOptions } from '@tapedeck/tape/postgres';
import { onBlocked } from './blocked.ts';
import { NoDriverError, NotFoundError } from './errors/kinds.ts';
import type { Io } from './io.ts';

export { type Address, parseAddress };

/** Whether a word that names a home is an address, and no directory. */
export function isAddress(named: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(named);
}

/** The address as it may be shown; where the text is not an address, its scheme alone. */
export function shownAddress(named: string): string {
  try {
    return parseAddress(named).shown;
  } catch {
    return 'postgres:';
  }
}

/** What of the words of a command line opens a server, for the mask of all output. */
export function secretsInWords(words: readonly string[]): readonly Secret[] {
  return words
    .filter((word) => /\bpostgres(?:ql)?:\/\//.test(word))
    .flatMap((address) => [...secretsIn({ address }), ...passwordsIn(address)]);
}

/** The passwords among the parameters of an address, as `sslpassword`. */
function passwordsIn(address: string): readonly Secret[] {
  const { searchParams } = URL.parse(address.slice(address.indexOf('postgres'))) ?? {};
  return [...(searchParams ?? [])]
    .filter(([name, value]) => /password/i.test(name) && secretFault(value) === undefined)
    .map(([, value]) => ({ name: 'address', value }));
}

/** Whether a command line may use a home on a server: it, or the environment, has an address. */
export function namesServer(words: readonly string[], { env }: Pick<Io, 'env'>): boolean {
  return [env.TAPE_HOME ?? '', ...words].some((word) => isAddress(word.replace(/^--home=/, '')));
}

/** By names of their own, so that no bundle contains what only a home on a server needs. */
const [storeEntry, queueEntry] = ['@tapedeck/tape/postgres', '@tapedeck/runtime/pg-boss'];

/** What a store of a home on a server is opened with. */
interface At {
  readonly server: Address;
  readonly base?: string;
}

/**
 * Opens a home on a server; of what a home is opened for, only `create` makes one that does not exist.
 * @throws NotFoundError when it does not exist; NoDriverError; TAPE_CANNOT_OPEN, TAPE_SCHEMA_NEWER, TAPE_SCHEMA_OLDER
 */
export async function openOnServer(
  at: At,
  io: Pick<Io, 'env' | 'interrupted'>,
  {
    access,
    durability,
    keepInboxes,
    redact,
  }: Pick<PostgresHomeOptions, 'durability' | 'keepInboxes' | 'redact'> &
    Required<Pick<PostgresHomeOptions, 'access'>>,
): Promise<HomeStore> {
  const { given, shown } = at.server;
  try {
    return await withDriver(shown, async () => {
      const { openPostgresHome }: typeof import('@tapedeck/tape/postgres') = await import(storeEntry);
      return await openPostgresHome(given, {
        access,
        durability,
        onBlocked: onBlocked(io),
        ...(keepInboxes !== undefined && { keepInboxes }),
        ...optionsOf(at, io, redact),
      });
    });
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_NOT_A_TAPE') throw error;
    throw new NotFoundError(`cannot read the tapes of '${shown}': it has no tapes yet`, {
      home: shown,
      missing: true,
    });
  }
}

/**
 * Opens a home on a server for a process that does much at once: no call blocks it. Makes the home if it does not exist.
 * @throws NoDriverError; TAPE_CANNOT_OPEN, TAPE_SCHEMA_NEWER, TAPE_SCHEMA_OLDER
 */
export async function openStoreOnServer(
  at: At,
  io: Pick<Io, 'env'>,
  { durability, redact }: Pick<PostgresHomeOptions, 'durability' | 'redact'>,
): Promise<TapeStore> {
  const { given, shown } = at.server;
  return await withDriver(shown, async () => {
    const { postgres }: typeof import('@tapedeck/tape/postgres') = await import(storeEntry);
    return await postgres(given, { durability, ...optionsOf(at, io, redact) });
  });
}

/** Says what a process gives up that does not wait for the disk of a server. */
export function sayDurability(
  { err }: Pick<Io, 'err'>,
  { durability }: Pick<PostgresHomeOptions, 'durability'>,
): void {
  if (durability === 'fast') err('Durability fast: a crash of the server may lose the latest entries\n');
}

function optionsOf({ server, base }: At, { env }: Pick<Io, 'env'>, redact: Redact | undefined) {
  return {
    secrets: [...secretsIn(env), ...secretsInWords([server.given])],
    ...(redact !== undefined && { redact }),
    ...(base !== undefined && { base }),
  };
}

/** What the workers of a home on a server are asked with. */
export async function queueDriver(shown: string): Promise<typeof import('@tapedeck/runtime/pg-boss')> {
  return await withDriver(shown, async () => await import(queueEntry));
}

/**
 * Acts with what talks to a server, which is installed by those alone who use one.
 * @throws NoDriverError for a package that is missing
 */
export async function withDriver<T>(shown: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    const missing = /Cannot find package '(pg|kysely|pg-boss)'/.exec((cause as Error).message)?.[1];
    if (missing === undefined) throw cause;
    throw new NoDriverError(`cannot open '${shown}': the package ${missing} is not installed`, {
      data: { home: shown, package: missing },
      cause,
    });
  }
}
