import { isTextRef, restoreBlobs } from './blob.ts';
import { isObject, type Json } from './json.ts';

/** Fields without text, wherever they are. Those of providers hold ids, signatures and encrypted reasoning. */
const noText: ReadonlySet<string> = new Set([
  'type',
  'role',
  'toolCallId',
  'providerOptions',
  'providerMetadata',
]);
/** Fields with the id of a part of a message. */
const idsOfParts: ReadonlySet<string> = new Set(['id', 'approvalId']);

/**
 * Returns the searchable text of an entry: its name and every string in its payload, without keys, files and
 * images, and without the ids and signatures of providers.
 */
export function searchText(name: string | null, payload: Json, load: (hash: string) => Uint8Array): string {
  return [...(name === null ? [] : [name]), ...textsOf(payload, { load, depth: 0 })].join('\n');
}

interface Within {
  readonly load: (hash: string) => Uint8Array;
  readonly depth: number;
  /** True for an item of a list in the payload, such as the parts of a message. */
  readonly isPart?: boolean;
}

function textsOf(value: Json, { load, depth, isPart = false }: Within): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > 64) return [];
  const inside = { load, depth: depth + 1 };
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, { ...inside, isPart: depth === 1 }));
  // Indexes all of a large output, not only its preview.
  if (isTextRef(value)) return textsOf(restoreBlobs(value, load) as Json, inside);
  if (isObject(value) && value.type === 'blob') return [];
  return Object.entries(value).flatMap(([key, field]) =>
    noText.has(key) || (isPart && idsOfParts.has(key)) ? [] : textsOf(field as Json, inside),
  );
}

/** The most bytes of different words that are kept of one entry, and of one word. */
const wordsMax = 500_000;
const wordMax = 200;

/**
 * Returns the different words of a text, as an index keeps them: runs of letters and digits, small, without accents. Of a very
 * long text those of its beginning.
 */
export function wordsOf(text: string): readonly string[] {
  const words = new Set<string>();
  let length = 0;
  const plain = text
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase();
  for (const [word] of plain.matchAll(/[\p{L}\p{N}\p{Co}]+/gu)) {
    const kept = word.slice(0, wordMax).toWellFormed();
    if (words.has(kept)) continue;
    length += Buffer.byteLength(kept);
    if (length > wordsMax) break;
    words.add(kept);
  }
  return [...words];
}
