import { hash } from 'node:crypto';

/**
 * The fields of an entry that its hash covers, besides the body (`docs/format.md`). The hash chain covers the
 * stored bytes and the session's ULID, but no id of one database, so heads are equal on every store.
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

/** Returns the hash of an entry's body. The salt prevents guessing a redacted body from its hash. */
export function bodyHash(salt: Uint8Array, payload: string, meta: string | null): Buffer {
  return hash('sha256', bodyText(hex(salt), payload, meta), 'buffer');
}

/** Returns the hash of an entry: its fields, its body's hash and the hash of the entry before it. */
export function entryHash(ulid: string, e: ChainLink, body: Uint8Array, previous: Uint8Array): Buffer {
  return hash('sha256', entryText(ulid, e, hex(body), hex(previous)), 'buffer');
}

/** Returns the text that `bodyHash` hashes; `salt` is hex. */
export function bodyText(salt: string, payload: string, meta: string | null): string {
  return `${salt}${payload}\n${meta ?? ''}`;
}

/** Returns the text that `entryHash` hashes; the hashes are hex. */
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

/** Returns the hash that the first entry of a root tape follows. */
export function genesisHash(ulid: string): Buffer {
  return hash('sha256', JSON.stringify(['tape.genesis.v1', ulid]), 'buffer');
}

/** Hash of a text, in lower-case hex. */
export function sha256(text: string | Uint8Array): string {
  return hash('sha256', text);
}

/** Bytes in lower-case hex. */
export function hex(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return buffer.toString('hex');
}
