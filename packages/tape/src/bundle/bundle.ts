/**
 * Bundles: sessions as JSON lines, which another home adopts with their ids and hashes (`docs/bundle.md`). This file
 * has the form of the records and the limits of a file. `scope.ts` chooses what travels, `withhold.ts` what stays
 * behind because of a secret, and `write.ts` makes the lines. `unpack.ts` takes a file into quarantine, `scan.ts` reads
 * it once as a whole, `records.ts` reads parts of it again, and `check.ts` has the strict forms. `plan.ts` compares the
 * sessions with those that are here, with `compare.ts`, `part.ts` and `merged-ways.ts`; `adopt.ts` brings in what is
 * new, in one transaction, with `fill.ts`, `project.ts`, `lines.ts`, `touches.ts` and `prove.ts`. Imports `check`,
 * `session`, `merge`, `lineage`, `tape` and what lies below them.
 */
import { entryBytesMax } from '../entry/json.ts';
import { TapeError } from '../errors.ts';

/** What the first line of a bundle names. */
export const bundleFormat = 'tape.bundle';
/** The version of a bundle that has all of its sessions. */
export const wholeVersion = 1;
/** The version of a bundle that leaves out what another side has: a part. The newest one that this build reads. */
export const partVersion = 2;

/** What of a family of sessions travels: `docs/bundle.md` defines each. */
export type BundleScope = 'session' | 'lineage' | 'tree';
export const bundleScopes: readonly BundleScope[] = ['session', 'lineage', 'tree'];

/** The first line: what the file is, and whose it is. A part has sessions that are all alike, and names none. */
export type BundleHeader = WholeHeader | PartHeader;

interface WholeHeader {
  readonly bundle: typeof bundleFormat;
  readonly v: typeof wholeVersion;
  /** The ULID of the session that was exported, and its name there. */
  readonly session: string;
  readonly name: string;
  readonly scope: BundleScope;
}

interface PartHeader {
  readonly bundle: typeof bundleFormat;
  readonly v: typeof partVersion;
  readonly session?: undefined;
  readonly name?: undefined;
}

/** What never changes of a session: hashes are lower-case hex, times milliseconds since the epoch. */
export interface BundleTape {
  readonly ulid: string;
  readonly parent: string | null;
  readonly name: string;
  readonly incarnation: number;
  readonly kind: string;
  readonly spawn_key: string | null;
  readonly ordinal: number | null;
  readonly request: string | null;
  readonly from_seq: number | null;
  readonly from_anchor: string | null;
  readonly floor: number;
  readonly base: number;
  readonly base_hash: string;
  readonly head: number;
  readonly head_hash: string;
  readonly deliver: string | null;
  readonly spawn_call: string | null;
  readonly title: string | null;
  readonly ephemeral: boolean;
  readonly created_at: number;
}

/** The last entry of a session that a part leaves out. Where nothing is left out, what the session begins behind. */
export interface BundleStart {
  readonly after: number;
  readonly after_hash: string;
}

/** An entry. Without its content, `salt`, `payload` and `meta` are null, and the hash of the body is there in their place. */
export interface BundleEntry {
  readonly seq: number;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly at: number;
  readonly key: string | null;
  readonly hash: string;
  readonly body: string;
  readonly salt: string | null;
  readonly payload: string | null;
  readonly meta: string | null;
}

/** A piece of the bytes that the entry behind it refers to. */
export interface BundleBytes {
  readonly hash: string;
  readonly size: number;
  readonly from: number;
  readonly bytes: string;
}

/** The last line: what was written before it. */
export interface BundleEnd {
  readonly lines: number;
  readonly sessions: number;
  readonly entries: number;
  readonly sha256: string;
}

/** Bytes of one piece, before base64. */
export const pieceBytes: number = 1024 * 1024;
/** The longest line: a payload and a meta of the greatest size, each character of which may be escaped. */
export const lineBytesMax: number = 4 * entryBytesMax + 64 * 1024;
/** The most that a bundle unpacks to. */
export const bundleBytesMax: number = 16 * 1024 ** 3;
/** The most that a compressed bundle may grow, once it has unpacked to more than a few megabytes. */
export const ratioMax = 250;
export const ratioFrom: number = 64 * 1024 * 1024;
/** The most sessions and lines of the lineage, which are kept in memory. */
export const sessionsMax = 100_000;
export const headBytesMax: number = 256 * 1024 * 1024;

/** Makes the error of a file that is no whole and right bundle. `line` counts from 1. */
export function badBundle(
  file: string,
  line: number | null,
  why: string,
  { cause, data = {} }: { readonly cause?: unknown; readonly data?: Readonly<Record<string, unknown>> } = {},
): TapeError {
  const place = line === null ? file : `${file}:${line}`;
  return new TapeError('TAPE_BAD_BUNDLE', `cannot import '${place}': ${why}`, {
    data: { file, line, ...data },
    cause,
  });
}
