import { blobBytesMax } from '../entry/blob.ts';
import { columnTextMax } from '../entry/column-text.ts';
import { isTime } from '../entry/iso-time.ts';
import { entryBytesMax, isObject, isTooDeep, jsonDepthMax } from '../entry/json.ts';
import { derivedNameMax, isUlid, nameFault } from '../entry/name.ts';
import {
  type BundleBytes,
  type BundleEnd,
  type BundleEntry,
  type BundleHeader,
  type BundleStart,
  type BundleTape,
  bundleFormat,
  bundleScopes,
  partVersion,
  pieceBytes,
  wholeVersion,
} from './bundle.ts';

/** Says why a value is not what a field needs; undefined for one that is. */
type Check = (value: unknown) => string | undefined;

const check =
  (what: string, is: (value: unknown) => boolean): Check =>
  (value) =>
    is(value) ? undefined : `is not ${what}`;
const orNull =
  (inner: Check): Check =>
  (value) =>
    value === null ? undefined : inner(value);

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
const count = check('a whole number from 0 on', (v) => Number.isSafeInteger(v) && (v as number) >= 0);
const hash = check('a SHA-256 in hex', (v) => typeof v === 'string' && /^[0-9a-f]{64}$/.test(v));
const ulid = check('the id of a session', (v) => typeof v === 'string' && isUlid(v));
const time = check('a time', (v) => Number.isSafeInteger(v) && isTime(v as number));
const text = (max: number, min = 1) =>
  check(`a text of ${min} to ${max} characters`, (v) => isText(v) && v.length >= min && v.length <= max);
const oneOf = (values: readonly unknown[]) => check(`one of ${values.join(', ')}`, (v) => values.includes(v));
const name: Check = (value) => {
  const fault = typeof value === 'string' ? nameFault(value, derivedNameMax) : 'it is not a text';
  if (fault !== undefined) return `is not a name: ${fault}`;
  return isUlid(value as string) ? 'is not a name: it has the form of a session id' : undefined;
};

type Checks<T> = { readonly [Field in keyof T]-?: Check };

const headerChecks: Checks<Extract<BundleHeader, { v: typeof wholeVersion }>> = {
  bundle: oneOf([bundleFormat]),
  v: oneOf([wholeVersion]),
  session: ulid,
  name,
  scope: oneOf(bundleScopes),
};

const partHeaderChecks = { bundle: oneOf([bundleFormat]), v: oneOf([partVersion]) };

const tapeChecks: Checks<BundleTape> = {
  ulid,
  parent: orNull(ulid),
  name,
  incarnation: check('a whole number from 1 on', (v) => Number.isSafeInteger(v) && (v as number) >= 1),
  kind: text(512),
  spawn_key: orNull(text(512)),
  ordinal: orNull(count),
  request: orNull(hash),
  from_seq: orNull(count),
  from_anchor: orNull(text(512)),
  floor: count,
  base: count,
  base_hash: hash,
  head: count,
  head_hash: hash,
  deliver: orNull(oneOf(['merge', 'merge+turn', 'notify', 'tool-result'])),
  spawn_call: orNull(text(columnTextMax, 0)),
  title: orNull(text(columnTextMax, 0)),
  ephemeral: check('true or false', (v) => typeof v === 'boolean'),
  created_at: time,
};

const startChecks: Checks<BundleStart> = { after: count, after_hash: hash };

const endChecks: Checks<BundleEnd> = { lines: count, sessions: count, entries: count, sha256: hash };

/** Returns why an object has not exactly these fields, each of its form; undefined when it has. */
function fieldsFault(value: unknown, checks: Readonly<Record<string, Check>>): string | undefined {
  if (!isObject(value)) return 'is not an object';
  for (const field of Object.keys(value))
    if (!Object.hasOwn(checks, field)) return `has an unknown field '${field.slice(0, 40).toWellFormed()}'`;
  for (const [field, fault] of Object.entries(checks)) {
    if (!Object.hasOwn(value, field)) return `has no field '${field}'`;
    const why = fault(value[field]);
    if (why !== undefined) return `has a field '${field}' that ${why}`;
  }
  return undefined;
}

/** What a record is, or why it is not that. */
export type Checked<T> = { readonly value: T; readonly fault?: undefined } | { readonly fault: string };

export function checkHeader(value: unknown): Checked<BundleHeader> {
  const isOne = isObject(value) && value.bundle === bundleFormat;
  if (isOne && Number(value.v) > partVersion)
    return {
      fault: `its format has version ${String(value.v)}, and this build reads up to ${partVersion}`,
    };
  const fault = fieldsFault(value, isOne && value.v === partVersion ? partHeaderChecks : headerChecks);
  return fault === undefined ? { value: value as unknown as BundleHeader } : { fault: `the header ${fault}` };
}

/** A session of a whole bundle begins behind its base; one of a part says behind what it begins. */
export function checkTape(
  value: unknown,
  { v }: Pick<BundleHeader, 'v'>,
): Checked<{ readonly tape: BundleTape; readonly start: BundleStart }> {
  const isPart = v === partVersion;
  const fault = fieldsFault(value, isPart ? { ...tapeChecks, ...startChecks } : tapeChecks);
  if (fault !== undefined) return { fault: `the session ${fault}` };
  const tape = value as unknown as BundleTape;
  const start = isPart ? (value as unknown as BundleStart) : { after: tape.base, after_hash: tape.base_hash };
  const isRoot = tape.parent === null;
  if (tape.floor > tape.base || tape.base > tape.head)
    return { fault: 'the session has its positions out of order' };
  if (
    isRoot &&
    (tape.base !== 0 || tape.spawn_key !== null || tape.ordinal !== null || tape.request !== null)
  )
    return { fault: 'the session has no parent, and has what only a fork has' };
  if (!isRoot && (tape.spawn_key === null || tape.request === null || tape.from_seq !== tape.floor))
    return { fault: 'the session has a parent, and lacks what a fork has' };
  if (tape.parent === tape.ulid) return { fault: 'the session is its own parent' };
  if (tape.head === tape.base) return { fault: 'the session has no entry' };
  if (start.after < tape.base || start.after > tape.head)
    return { fault: 'the session begins behind a position that it does not have' };
  if (
    (start.after === tape.base && start.after_hash !== tape.base_hash) ||
    (start.after === tape.head && start.after_hash !== tape.head_hash)
  )
    return { fault: 'the session has two hashes at one position' };
  return { value: { tape, start } };
}

export function checkEnd(value: unknown): Checked<BundleEnd> {
  const fault = fieldsFault(value, endChecks);
  return fault === undefined ? { value: value as unknown as BundleEnd } : { fault: `the end ${fault}` };
}

const kinds: ReadonlySet<string> = new Set([
  'message',
  'tool-result',
  'anchor',
  'compaction',
  'rewind',
  'redaction',
  'result',
  'status',
  'event',
  'ui',
]);
const marks = ['anchor', 'boundary', 'rewind', 'redaction'];
const kind = check(
  'a kind of entry',
  (v) => typeof v === 'string' && (kinds.has(v) || /^x-[\w.-]{1,80}$/.test(v)),
);
/** In the order of the record. */
const linkChecks: readonly (readonly [string, Check])[] = [
  ['position', count],
  ['kind', kind],
  ['mark', orNull(oneOf(marks))],
  ['name', orNull(text(512))],
  ['reference', orNull(count)],
  ['time', time],
  ['key', orNull(text(512))],
  ['hash', hash],
];
const salt = check(
  '16 to 64 bytes in hex',
  (v) => typeof v === 'string' && /^(?:[0-9a-f]{2}){16,64}$/.test(v),
);

/** An entry is a list: the link, and then the hash of the body, or salt, payload and meta. */
export function checkEntry(
  value: unknown,
  bodyOf: (salt: string, payload: string, meta: string | null) => string,
): Checked<BundleEntry> {
  if (!Array.isArray(value) || (value.length !== 9 && value.length !== 11))
    return { fault: 'the entry is not a list of 9 or 11 fields' };
  const list = value as readonly unknown[];
  for (const [n, [what, fault]] of linkChecks.entries()) {
    const why = fault(list[n]);
    if (why !== undefined) return { fault: `the ${what} of the entry ${why}` };
  }
  const [seq, of, mark, named, ref, at, key, own, eighth, payload = null, meta = null] = list as [
    number,
    string,
    string | null,
    string | null,
    number | null,
    number,
    string | null,
    string,
    string,
    (string | null)?,
    (string | null)?,
  ];
  const link = { seq, kind: of, mark, name: named, ref, at, key, hash: own };
  const unfit = markFault(link);
  if (unfit !== undefined) return { fault: unfit };
  if (list.length === 9) {
    const why = hash(eighth);
    if (why !== undefined) return { fault: `the hash of the body ${why}` };
    return { value: { ...link, body: eighth, salt: null, payload: null, meta: null } };
  }
  const why = salt(eighth) ?? contentFault(payload, meta);
  if (why !== undefined) return { fault: `the content of the entry ${why}` };
  return { value: { ...link, body: bodyOf(eighth, payload as string, meta), salt: eighth, payload, meta } };
}

/** A mark belongs to some kinds, and what it refers to lies before it. */
function markFault({
  seq,
  kind: of,
  mark,
  ref,
}: Pick<BundleEntry, 'seq' | 'kind' | 'mark' | 'ref'>): string | undefined {
  const fits =
    mark === 'rewind' || mark === 'redaction'
      ? of === mark && ref !== null && ref < seq
      : of !== 'rewind' && of !== 'redaction' && (mark === null || of === 'anchor' || of === 'compaction');
  if (!fits) return 'the mark of the entry does not fit its kind, or what it refers to';
  return mark === 'boundary' && ref !== null && ref > seq ? 'the entry keeps what lies behind it' : undefined;
}

function contentFault(payload: unknown, meta: unknown): string | undefined {
  for (const part of meta === null ? [payload] : [payload, meta]) {
    if (!isText(part)) return 'is not a text that can be stored';
    if (part.length > entryBytesMax || Buffer.byteLength(part) > entryBytesMax)
      return `has over ${entryBytesMax} bytes`;
    if (isTooDeep(part)) return `is nested over ${jsonDepthMax} levels`;
  }
  return undefined;
}

/** A piece of bytes is a list, too. */
export function checkBytes(value: unknown): Checked<BundleBytes> {
  if (!Array.isArray(value) || value.length !== 4) return { fault: 'the bytes are not a list of 4 fields' };
  const [of, size, from, bytes] = value as readonly unknown[];
  const why = hash(of) ?? count(size) ?? count(from);
  if (why !== undefined) return { fault: `the bytes have a field that ${why}` };
  if ((size as number) > blobBytesMax) return { fault: `the bytes are over ${blobBytesMax}` };
  if (
    typeof bytes !== 'string' ||
    bytes.length > Math.ceil(pieceBytes / 3) * 4 ||
    !/^[A-Za-z0-9+/]*={0,2}$/.test(bytes)
  )
    return { fault: 'a piece of the bytes is not base64, or too long' };
  return { value: { hash: of as string, size: size as number, from: from as number, bytes } };
}
