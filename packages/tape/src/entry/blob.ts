import { hash } from 'node:crypto';
import { TapeError } from '../errors.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { hex } from './hash.ts';

/** Stands in a payload where bytes stood: they are kept once, by their SHA-256. */
export interface BlobRef {
  readonly type: 'blob';
  readonly hash: string;
  readonly size: number;
  /** The form the bytes had: they come back in the same. */
  readonly as: 'bytes' | 'base64';
}

/** Stands where a large text or value stood: its bytes are kept once, and it shows how they begin. */
export interface TextRef {
  readonly type: 'blob';
  readonly hash: string;
  readonly size: number;
  /** `text`: the bytes are the text; `value`: they are the JSON of the value. */
  readonly as: 'text' | 'value';
  readonly preview: string;
}

export interface Blob {
  readonly hash: Buffer;
  readonly bytes: Uint8Array;
}

/** Keeps a caller's own value that looks like one of our references from being taken for one (law 10). */
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

/** Whether a value stands for bytes kept elsewhere. */
export function isBlobRef(value: unknown): value is BlobRef | TextRef {
  if (typeof value !== 'object' || value === null) return false;
  const { type, hash, as } = value as Partial<BlobRef | TextRef>;
  return type === 'blob' && typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) && forms.has(as ?? '');
}

const forms: ReadonlySet<string> = new Set(['bytes', 'base64', 'text', 'value']);

/** Whether a value stands for a large text or value. */
export function isTextRef(value: unknown): value is TextRef {
  return isBlobRef(value) && (value.as === 'text' || value.as === 'value');
}

/** The most bytes that are kept as one (R15). */
export const blobBytesMax: number = 64 * 1024 * 1024;

/** @throws TAPE_BAD_ENTRY when there are too many bytes. */
export function blobOf(bytes: Uint8Array): Blob {
  if (bytes.byteLength > blobBytesMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store ${bytes.byteLength} bytes: over ${blobBytesMax}`);
  return { hash: hash('sha256', bytes, 'buffer'), bytes };
}

/**
 * Takes the bytes of files, images and reasoning files out of a payload. Bytes anywhere are taken; a base64
 * text only where a part says that it is data of a media type.
 * @throws TAPE_BAD_ENTRY when there are too many bytes, or the value cannot be read
 */
export function extractBlobs(payload: unknown): { payload: unknown; blobs: readonly Blob[] } {
  const blobs: Blob[] = [];
  const keep = (bytes: Uint8Array, as: BlobRef['as']): BlobRef => {
    const blob = blobOf(bytes);
    blobs.push(blob);
    return { type: 'blob', hash: hex(blob.hash), size: bytes.byteLength, as };
  };
  try {
    return { payload: mapBytes(payload, keep, 0), blobs };
  } catch (cause) {
    if (cause instanceof TapeError) throw cause;
    // A field of a caller's own value may throw when it is read.
    throw new TapeError('TAPE_BAD_ENTRY', `cannot store a value: ${reasonOf(cause)}`, { cause });
  }
}

function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : 'it cannot be read';
}

type Keep = (bytes: Uint8Array, as: BlobRef['as']) => BlobRef;

function mapBytes(value: unknown, keep: Keep, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > 100) return value;
  if (value instanceof Uint8Array) return keep(value, 'bytes');
  if (value instanceof ArrayBuffer) return keep(new Uint8Array(value), 'bytes');
  if (Array.isArray(value)) return mapArray(value, (item) => mapBytes(item, keep, depth + 1));
  // What JSON.stringify would ask, a value is asked here, so that nothing it gives is taken for a reference of ours.
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

/** Short texts stay in place; a text that is not the one base64 form of its bytes could not come back as it was. */
function base64Bytes(value: unknown, keep: Keep): BlobRef | undefined {
  if (typeof value !== 'string' || value.length < 256 || value.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(value, 'base64');
  return bytes.toString('base64') === value ? keep(bytes, 'base64') : undefined;
}

/**
 * Puts the bytes back, in the form they had.
 * @throws TAPE_NO_BLOB through `load` when they are gone.
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

/** The hashes of the bytes that a payload refers to. */
export function blobHashes(payload: unknown): string[] {
  if (typeof payload !== 'object' || payload === null) return [];
  if (isLiteral(payload)) return [];
  if (isBlobRef(payload)) return [payload.hash];
  return Object.values(payload).flatMap(blobHashes);
}

function mapArray(items: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  const mapped = items.map(change);
  return mapped.every((item, i) => item === items[i]) ? items : mapped;
}

/** Keeps the object itself when nothing in it changed; defines fields, so that `__proto__` stays a plain key. */
function mapFields(object: object, change: (field: unknown, name: string) => unknown): object {
  const mapped = Object.entries(object).map(([name, field]) => [name, change(field, name), field] as const);
  if (mapped.every(([, now, was]) => now === was)) return object;
  return Object.fromEntries(mapped);
}

/** Stores bytes once. */
export function storeBlobs(db: Db, blobs: readonly Blob[]): void {
  for (const { hash, bytes } of blobs)
    db.run('INSERT INTO blob (hash, bytes) VALUES (@hash, @bytes) ON CONFLICT DO NOTHING', { hash, bytes });
}

/** Removes bytes that no entry and no inbox item needs. */
export function dropUnneeded(db: Db, hashes: readonly Uint8Array[]): void {
  for (const hash of hashes)
    db.run(
      `DELETE FROM blob WHERE hash = @hash AND NOT EXISTS (SELECT 1 FROM blob_ref WHERE hash = @hash)
         AND NOT EXISTS (SELECT 1 FROM inbox WHERE instr(body, @text) > 0)`,
      { hash, text: hex(hash) },
    );
}

/** Stores bytes once, and notes which entry needs them. */
export function keepBlobs(db: Db, entryId: number, blobs: readonly Blob[]): void {
  storeBlobs(db, blobs);
  for (const { hash } of blobs) {
    db.run('INSERT INTO blob_ref (hash, entry_id) VALUES (@hash, @entryId) ON CONFLICT DO NOTHING', {
      hash,
      entryId,
    });
  }
}

/**
 * Some bytes of a hash: `from` up to, not including, `to`. Not checked against the hash, which is that of all of them.
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
  if (row === undefined) throw new TapeError('TAPE_NO_BLOB', `cannot find the bytes ${hexHash}`);
  return row.bytes;
}

/**
 * The bytes of a hash.
 * @throws TAPE_NO_BLOB, or TAPE_CORRUPT when what is stored has another hash.
 */
export function loadBlob(db: Db, hexHash: string): Uint8Array {
  const key = Buffer.from(hexHash, 'hex');
  const row = db.get<{ bytes: Uint8Array }>('SELECT bytes FROM blob WHERE hash = @key', { key });
  if (row === undefined) throw new TapeError('TAPE_NO_BLOB', `cannot find the bytes ${hexHash}`);
  if (hash('sha256', row.bytes) !== hexHash)
    throw new TapeError('TAPE_CORRUPT', `cannot read the bytes ${hexHash}: they have another hash now`);
  return row.bytes;
}
