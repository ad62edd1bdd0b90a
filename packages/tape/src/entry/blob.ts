import { hash } from 'node:crypto';
import type { Db } from '../db/db.ts';
import { TapeError } from '../errors.ts';
import { hex } from './hash.ts';

/** Replaces bytes in a payload. The store keeps the bytes once, by their SHA-256. */
export interface BlobRef {
  readonly type: 'blob';
  readonly hash: string;
  readonly size: number;
  /** The form in which the bytes were given and are restored. */
  readonly as: 'bytes' | 'base64';
}

/** Replaces a large text or value in a payload, with a preview. The store keeps its bytes once. */
export interface TextRef {
  readonly type: 'blob';
  readonly hash: string;
  readonly size: number;
  /** `text`: the bytes are the text in UTF-8; `value`: they are the JSON of the value. */
  readonly as: 'text' | 'value';
  readonly preview: string;
}

export interface Blob {
  readonly hash: Buffer;
  readonly bytes: Uint8Array;
}

/** Wraps a caller's value that looks like a reference, so that it is never resolved as one. */
interface Literal {
  readonly type: 'blob';
  readonly as: 'json';
  readonly value: unknown;
}

function isLiteral(value: unknown): value is Literal {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as Partial<Literal>).type === 'blob' &&
    (value as Partial<Literal>).as === 'json'
  );
}

/** Returns whether a value is a reference to stored bytes. */
export function isBlobRef(value: unknown): value is BlobRef | TextRef {
  if (typeof value !== 'object' || value === null) return false;
  const { type, hash, as } = value as Partial<BlobRef | TextRef>;
  return type === 'blob' && typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) && forms.has(as ?? '');
}

const forms: ReadonlySet<string> = new Set(['bytes', 'base64', 'text', 'value']);

/** Returns whether a value is a reference to a large text or value. */
export function isTextRef(value: unknown): value is TextRef {
  return isBlobRef(value) && (value.as === 'text' || value.as === 'value');
}

/** The largest blob, in bytes. */
export const blobBytesMax: number = 64 * 1024 * 1024;

/** @throws TAPE_BAD_ENTRY when the bytes exceed `blobBytesMax` */
export function blobOf(bytes: Uint8Array): Blob {
  if (bytes.byteLength > blobBytesMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${bytes.byteLength} bytes: over ${blobBytesMax}`);
  return { hash: hash('sha256', bytes, 'buffer'), bytes };
}

/**
 * Replaces the bytes in a payload by references. Binary values are always replaced; a base64 string only in
 * the `data` or `image` field of a part with a media type.
 * @throws TAPE_BAD_ENTRY when the bytes exceed `blobBytesMax`, or a field throws when it is read
 */
export function extractBlobs(payload: unknown): { payload: unknown; blobs: readonly Blob[] } {
  const blobs: Blob[] = [];
  try {
    // Most payloads have none, and to see that makes no object.
    if (hasNoBytes(payload, { left: seenMax }, 0)) return { payload, blobs };
    const keep = (bytes: Uint8Array, as: BlobRef['as']): BlobRef => {
      const blob = blobOf(bytes);
      blobs.push(blob);
      return { type: 'blob', hash: hex(blob.hash), size: bytes.byteLength, as };
    };
    return { payload: mapBytes(payload, keep, 0), blobs };
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    // A getter of a caller's value can throw.
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store a value: ${reasonOf(cause)}`, { cause });
  }
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : 'it cannot be read';
}

/** How many objects of a payload are looked at before it is copied: one that contains itself has no end. */
const seenMax = 10_000;

/** Whether `mapBytes` certainly changes nothing in a value. False where it is not certain. */
function hasNoBytes(value: unknown, seen: { left: number }, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  seen.left -= 1;
  if (depth > 100 || seen.left < 0) return false;
  if (Array.isArray(value)) {
    for (const one of value) if (!hasNoBytes(one, seen, depth + 1)) return false;
    return true;
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return false;
  const { type, mediaType, toJSON } = value as Readonly<Record<string, unknown>>;
  if (type === 'blob' || typeof mediaType === 'string' || typeof toJSON === 'function') return false;
  for (const name of Object.keys(value))
    if (!hasNoBytes(Reflect.get(value, name), seen, depth + 1)) return false;
  return true;
}

type Keep = (bytes: Uint8Array, as: BlobRef['as']) => BlobRef;

function mapBytes(value: unknown, keep: Keep, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > 100) return value;
  if (value instanceof Uint8Array) return keep(value, 'bytes');
  if (value instanceof ArrayBuffer) return keep(new Uint8Array(value), 'bytes');
  if (Array.isArray(value)) return mapArray(value, (item) => mapBytes(item, keep, depth + 1));
  // Applies toJSON now, as JSON.stringify would later, so that its result cannot pass for a reference.
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function')
    return mapBytes((value as { toJSON(): unknown }).toJSON(), keep, depth + 1);
  if (isBlobRef(value) || isLiteral(value)) return { type: 'blob', as: 'json', value } satisfies Literal;
  const media = typeof (value as { mediaType?: unknown }).mediaType === 'string';
  return mapFields(value, (field, name) => {
    if (media && (name === 'data' || name === 'image')) {
      const inner = (field as { type?: unknown } | null)?.type === 'data' ? field : undefined;
      if (inner !== undefined)
        return mapFields(inner as object, (v) => base64Bytes(v, keep) ?? mapBytes(v, keep, depth + 1));
      return base64Bytes(field, keep) ?? mapBytes(field, keep, depth + 1);
    }
    return mapBytes(field, keep, depth + 1);
  });
}

/**
 * Short strings stay in place; so does a string that is not canonical base64, which could not be restored
 * exactly.
 */
function base64Bytes(value: unknown, keep: Keep): BlobRef | undefined {
  if (typeof value !== 'string' || value.length < 256 || value.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value ? keep(bytes, 'base64') : undefined;
}

/**
 * Restores the bytes in a payload, in the form in which they were given.
 * @throws TAPE_NO_BLOB from `load` when the bytes are missing
 */
export function restoreBlobs(payload: unknown, load: (hash: string) => Uint8Array): unknown {
  if (typeof payload !== 'object' || payload === null || payload instanceof Uint8Array) return payload;
  if (isLiteral(payload)) return payload.value;
  if (isBlobRef(payload)) {
    const bytes = load(payload.hash);
    return restored[payload.as](bytes);
  }
  if (Array.isArray(payload)) return mapArray(payload, (item) => restoreBlobs(item, load));
  return mapFields(payload, (field) => restoreBlobs(field, load));
}

const restored = {
  bytes: (bytes) => bytes,
  base64: (bytes) => Buffer.from(bytes).toString('base64'),
  text: (bytes) => Buffer.from(bytes).toString('utf8'),
  value: (bytes) => JSON.parse(Buffer.from(bytes).toString('utf8')),
} satisfies Record<(BlobRef | TextRef)['as'], (bytes: Uint8Array) => unknown>;

/** Returns the hashes of all blobs that a payload refers to. */
export function blobHashes(payload: unknown): string[] {
  if (typeof payload !== 'object' || payload === null) return [];
  if (isLiteral(payload)) return [];
  if (isBlobRef(payload)) return [payload.hash];
  return Object.values(payload).flatMap(blobHashes);
}

/** Returns the same array if no item changed. */
function mapArray(items: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  let isSame = true;
  const mapped = items.map((item) => {
    const now = change(item);
    isSame &&= now === item;
    return now;
  });
  return isSame ? items : mapped;
}

/** Returns the same object if no field changed. `fromEntries` keeps `__proto__` a plain key. */
function mapFields(object: object, change: (field: unknown, name: string) => unknown): object {
  let isSame = true;
  const mapped: [string, unknown][] = Object.entries(object);
  for (const pair of mapped) {
    const now = change(pair[1], pair[0]);
    isSame &&= now === pair[1];
    pair[1] = now;
  }
  return isSame ? object : Object.fromEntries(mapped);
}

/** Stores each blob once. */
export function storeBlobs(db: Db, blobs: readonly Blob[]): void {
  for (const { hash, bytes } of blobs)
    db.run('INSERT INTO blob (hash, bytes) VALUES (@hash, @bytes) ON CONFLICT DO NOTHING', { hash, bytes });
}

/** Removes blobs that no entry and no inbox item refers to. */
export function dropUnneeded(db: Db, hashes: readonly Uint8Array[]): void {
  for (const hash of hashes)
    db.run(
      `DELETE FROM blob WHERE hash = @hash AND NOT EXISTS (SELECT 1 FROM blob_ref WHERE hash = @hash)
         AND NOT EXISTS (SELECT 1 FROM inbox WHERE instr(body, @text) > 0)`,
      { hash, text: hex(hash) },
    );
}

/** Stores blobs and records that the entry at a position of a tape refers to them. */
export function keepBlobs(
  db: Db,
  entry: { readonly tapeId: number; readonly seq: number },
  blobs: readonly Blob[],
): void {
  storeBlobs(db, blobs);
  for (const { hash } of blobs)
    db.run(
      `INSERT INTO blob_ref (hash, entry_id) SELECT @hash, id FROM entry WHERE tape_id = @tapeId AND seq = @seq
         ON CONFLICT DO NOTHING`,
      { hash, ...entry },
    );
}

/**
 * Returns the bytes `[from, to)` of a blob. The hash is not verified, since it covers the whole blob.
 * @throws TAPE_NO_BLOB
 */
export function loadBlobRange(
  db: Db,
  hexHash: string,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: { readonly from?: number; readonly to?: number },
): Uint8Array {
  const row = db.get<{ bytes: Uint8Array }>(
    'SELECT substr(bytes, @from + 1, @length) AS bytes FROM blob WHERE hash = @key',
    {
      key: Buffer.from(hexHash, 'hex'),
      from: Math.max(0, from),
      length: Math.max(0, to - Math.max(0, from)),
    },
  );
  if (row === undefined) throw new TapeError('TAPE_NO_BLOB', `cannot find blob ${hexHash}`);
  return row.bytes;
}

/**
 * Returns the bytes of a blob.
 * @throws TAPE_NO_BLOB; TAPE_CORRUPT when the stored bytes have another hash
 */
export function loadBlob(db: Db, hexHash: string): Uint8Array {
  const key = Buffer.from(hexHash, 'hex');
  const row = db.get<{ bytes: Uint8Array }>('SELECT bytes FROM blob WHERE hash = @key', { key });
  if (row === undefined) throw new TapeError('TAPE_NO_BLOB', `cannot find blob ${hexHash}`);
  if (hash('sha256', row.bytes) !== hexHash)
    throw new TapeError('TAPE_CORRUPT', `cannot read blob ${hexHash}: its bytes have another hash`);
  return row.bytes;
}
