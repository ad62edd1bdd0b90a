import { TapeError } from '../errors.ts';
import { type Blob, extractBlobs } from './blob.ts';
import { type Call, callOf } from './call.ts';
import type { Draft, Entry, EntryKind } from './entry.ts';
import { encodeJson, type Json } from './json.ts';
import { normalise } from './normalise.ts';
import { isRunOpenAfter } from './run-state.ts';
import { sourceTime } from './source-time.ts';
import { type Speaker, speakerOf } from './speaker.ts';
import { spillOutput } from './spill.ts';
import { type Touch, touchesOf } from './touch.ts';

/** A draft in its stored form: everything that does not depend on a tape. */
export interface Encoded {
  readonly kind: EntryKind;
  readonly mark: NonNullable<Entry['mark']> | null;
  readonly name: string | null;
  readonly ref: number | null;
  readonly key: string | null;
  /** The payload as a value, with references in place of bytes. */
  readonly value: unknown;
  readonly payload: string;
  readonly meta: string | null;
  /** The bytes that the references point to. */
  readonly blobs: readonly Blob[];
  readonly touches: readonly Touch[];
  /** Whether a run is open after it; undefined when it changes nothing. */
  readonly opensRun: boolean | undefined;
  /** Whose message it is, if it is one of the conversation. */
  readonly speaker: Speaker | undefined;
  /** The model call that it records. */
  readonly call: Call | undefined;
  /** When it happened at its source, in milliseconds since the epoch; undefined when it happens now. */
  readonly sourceAt: number | undefined;
}

/**
 * Encodes a normalised draft.
 * @throws TAPE_BAD_ENTRY when it has no JSON form, is too large or too deeply nested, or has a bad key or
 * name
 */
export function encodeDraft({ kind, mark, name, ref, key, meta, payload }: Draft): Encoded {
  const taken = extractBlobs(payload);
  const { payload: value, blobs } =
    kind === 'tool-result' ? spillOutput(taken.payload) : { payload: taken.payload, blobs: [] };
  return {
    kind,
    mark: mark ?? null,
    name: parseText(name, 'name'),
    ref: ref ?? null,
    key: parseText(key, 'key'),
    value,
    payload: encodeJson(value, `a ${kind} entry`),
    meta: meta === undefined || isEmpty(meta) ? null : encodeJson(meta, 'meta'),
    blobs: blobs.length === 0 ? taken.blobs : [...taken.blobs, ...blobs],
    touches: touchesOf({ kind, name, payload: value, meta }),
    opensRun: isRunOpenAfter({ kind, name, payload: value, meta }),
    speaker: speakerOf({ kind, payload: value, meta }),
    call: callOf({ kind, payload: value, meta }),
    sourceAt: sourceTime(meta),
  };
}

/**
 * Checks a draft without a store: kind and payload, sizes, nesting, key and name.
 * @throws TAPE_BAD_ENTRY
 */
export function assertDraft(draft: Draft): void {
  for (const normal of normalise(draft)) encodeDraft(normal);
}

/**
 * The payloads as which a draft would be stored, with references in place of bytes: one, or one for each tool result.
 * Comparing a message with an entry needs no bytes of the entry.
 * @throws TAPE_BAD_ENTRY
 */
export function storedPayloads(draft: Draft): readonly Json[] {
  return normalise(draft).map((normal) => JSON.parse(encodeDraft(normal).payload) as Json);
}

/** A draft of one entry as the texts of JSON as which it would be stored; undefined for one of several entries. */
export function storedTexts(draft: Draft): Pick<Encoded, 'payload' | 'meta'> | undefined {
  const [normal, ...more] = normalise(draft);
  return normal === undefined || more.length > 0 ? undefined : encodeDraft(normal);
}

const textMax = 512;

/** Names and keys are hashed as JSON and stored as text, where a lone surrogate would be lost. */
function parseText(text: string | undefined, what: string): string | null {
  if (text === undefined) return null;
  if (typeof text !== 'string')
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must be a text`);
  if (text.length === 0 || text.length > textMax)
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must have 1 to ${textMax} characters`);
  if (!text.isWellFormed() || text.includes('\0'))
    throw new TapeError('TAPE_BAD_ENTRY', `cannot append: a ${what} must be well-formed text without NUL`);
  return text;
}

function isEmpty(object: { readonly [key: string]: Json }): boolean {
  for (const _ in object) return false;
  return true;
}
