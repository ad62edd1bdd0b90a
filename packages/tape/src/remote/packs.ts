import { TapeError, type TapeErrorCode } from '../errors.ts';

/** A bundle file at a remote. */
export interface Pack {
  /** Packs are read in the order of their numbers. Two may have one number, where a synced directory kept both. */
  readonly number: number;
  /** Unique at the remote. */
  readonly name: string;
  /** The size of its file. */
  readonly bytes: number;
}

/**
 * A place that holds packs: numbered bundle files (`docs/bundle.md`) that are written once and never changed. All that is
 * known of such a remote follows from them.
 */
export interface Packs {
  /** What errors call the remote. Has no password. */
  readonly url: string;
  /**
   * All packs, by number, then by name.
   * @throws TAPE_REMOTE_FAILED when the remote cannot be reached; with `data.missing`, when there is nothing yet and `add`
   *   would make it. TAPE_BAD_REMOTE for what has the name of a pack, and is no file
   */
  list(): Promise<readonly Pack[]>;
  /**
   * Copies a pack into a new file of this machine.
   * @throws TAPE_REMOTE_FAILED; TAPE_BAD_REMOTE when the pack is gone, or has another size
   */
  read(pack: Pack, into: string): Promise<void>;
  /**
   * Adds a file as the pack of a number, under the name that `packName` gives it, all of it or nothing; false when another
   * one has the number.
   * @throws TAPE_REMOTE_FAILED
   */
  add(number: number, file: string): Promise<boolean>;
}

/** What a transport is given beside the URL. */
export interface RemoteOptions {
  /** A directory of the home for what is kept of this remote: rebuilt when it is missing, and made when it is needed. */
  readonly state: string;
  /**
   * The environment of git and ssh. `TAPE_SSH_COMMAND` is the command in the place of ssh, with its options, and
   * `TAPE_REMOTE_TAPE` the one in the place of tape at the other side. Default: `process.env`.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long a program at the other side may be silent, in milliseconds. Default: two minutes. */
  readonly idleMs?: number;
  /** The most bytes that one fetch of git brings, and that one pack has. Default: what a bundle may have, 16 GiB. */
  readonly bytesMax?: number;
}

/** The name of the pack of a number. */
export function packName(number: number): string {
  return `${String(number).padStart(8, '0')}.bundle.zst`;
}

/**
 * The number that the name of a pack says; undefined for another file. Programs that sync directories put words of
 * their own into the names of copies in conflict.
 */
export function packNumber(name: string): number | undefined {
  const digits = /^(\d{8})(?:\D.*)?\.bundle\b.*\.zst$/s.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Makes the error of a remote. */
export function remoteError(
  code: Extract<TapeErrorCode, 'TAPE_REMOTE_FAILED' | 'TAPE_BAD_REMOTE'>,
  { act, url, why }: { readonly act: string; readonly url: string; readonly why: string },
  {
    cause,
    ...data
  }: {
    readonly cause?: unknown;
    readonly pack?: string;
    readonly missing?: true;
    readonly home?: string;
  } = {},
): TapeError {
  return new TapeError(code, `cannot ${act} '${url}': ${why}`, { data: { url, ...data }, cause });
}
