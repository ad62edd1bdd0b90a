import { hash } from 'node:crypto';

/**
 * The hash chain of a tape (M7, `docs/format.md`). It covers the bytes as they are stored, is bound to the
 * session's ULID and to no number that is local to one database, so heads are equal wherever a tape goes.
 */
export interface ChainLink {
  readonly seq: number;
  readonly kind: string;
  readonly mark: string | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly at: number;
  readonly key: string | null;
}

/** Hash of an entry's body. The salt keeps a redacted body from being guessed from its hash. */
export function bodyHash(salt: Uint8Array, payload: string, meta: string | null): Buffer {
  return hash('sha256', bodyText(hex(salt), payload, meta), 'buffer');
}

/** Hash of an entry: everything but the body itself, and the hash of the entry before it. */
export function entryHash(ulid: string, e: ChainLink, body: Uint8Array, previous: Uint8Array): Buffer {
  return hash('sha256', entryText(ulid, e, hex(body), hex(previous)), 'buffer');
}

/** The text whose hash is a body's; the salt in hex. */
export function bodyText(salt: string, payload: string, meta: string | null): string {
  return `${salt}${payload}\n${meta ?? ''}`;
}

/** The text whose hash is an entry's; the hashes in hex. */
export function entryText(ulid: string, e: ChainLink, body: string, previous: string): string {
  return JSON.stringify([
    'tape.entry.v1',
    ulid,
    e.seq,
    e.kind,
    e.mark,
    e.name,
    e.ref,
    e.at,
    e.key,
    body,
    previous,
  ]);
}

/** What the first entry of a root tape chains to. */
export function genesisHash(ulid: string): Buffer {
  return hash('sha256', JSON.stringify(['tape.genesis.v1', ulid]), 'buffer');
}

/** Hash of a text, in lower-case hex. */
export function sha256(text: string | Uint8Array): string {
  return hash('sha256', text);
}

/** Bytes in lower-case hex. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}
