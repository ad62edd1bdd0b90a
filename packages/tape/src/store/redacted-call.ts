import type { Draft } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { normalise } from '../entry/normalise.ts';
import { TapeError } from '../errors.ts';
import { nameOf } from '../secrets/field-name.ts';
import type { Redactor } from '../secrets/redactor.ts';

/** Objects that have what a tool returned, by their type: parts of messages, chunks and inbox items. */
const results: ReadonlySet<unknown> = new Set([
  'tool-result',
  'tool-error',
  'tool-output-available',
  'tool-output-error',
  'tool-completed',
  'answer',
  'error',
]);
/** Fields that have what went wrong. */
const errors: ReadonlySet<string> = new Set(['error', 'errorText']);
const depthMax = 200;

/**
 * What a method of a store was given, without the secrets that have the form of one: in outputs of tools and in errors,
 * or everywhere. An entry counts its own in `meta.redacted`.
 * @throws TAPE_CANNOT_REDACT when a value cannot be read: nothing of it is written
 */
export function redactedCall(
  args: readonly unknown[],
  redactor: Redactor,
  method: string,
): readonly unknown[] {
  try {
    if (redactor.in === 'results' && hasNoOutput(args, { redactor, left: seenMax }, 0)) return args;
    return redactedIn(args, { redactor, known: new Map() }, 0) as readonly unknown[];
  } catch (error) {
    throw new TapeError(
      'TAPE_CANNOT_REDACT',
      `cannot write with ${method}: a value cannot be searched for secrets: ${causeOf(error, redactor)}`,
      { data: { method } },
    );
  }
}

/** How many objects of a call are looked at before they are copied: one that contains itself has no end. */
const seenMax = 10_000;

/**
 * Whether a value certainly has no output of a tool and no error. Most calls have none, and to see that makes no
 * object. False where it is not certain.
 */
function hasNoOutput(
  value: unknown,
  seen: { readonly redactor: Redactor; left: number },
  depth: number,
): boolean {
  if (typeof value !== 'object' || value === null) return true;
  seen.left -= 1;
  if (depth > depthMax || seen.left < 0) return false;
  if (Array.isArray(value)) {
    for (const one of value) if (!hasNoOutput(one, seen, depth + 1)) return false;
    return true;
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return true;
  if (isSearched(value, seen.redactor)) return true;
  const { type, role, kind } = value as Readonly<Record<string, unknown>>;
  if (results.has(type) || role === 'tool' || kind === 'tool-result') return false;
  if ('toJSON' in value) return true;
  for (const name of Object.keys(value))
    if (errors.has(name) || !hasNoOutput(Reflect.get(value, name), seen, depth + 1)) return false;
  return true;
}

/** The text of an error, which can have a secret too. */
function causeOf(error: unknown, redactor: Redactor): string {
  if (!(error instanceof Error)) return 'it throws what is no error';
  try {
    return redactor.text(error.message);
  } catch {
    return error.name;
  }
}

/**
 * A draft without the secrets that have the form of one; counts them in its meta. A store that looks for no others does not
 * search it again: an import searches what it compares, and then writes it.
 */
export function redactedDraft(draft: Draft, redactor: Redactor): Draft {
  if (isSearched(draft, redactor)) return draft;
  const redacted = draftOf(draft, { redactor, known: new Map() });
  searched.set(redacted, redactor);
  return redacted;
}

/** The drafts that were searched, and by what. */
const searched = new WeakMap<object, Redactor>();

/** Whether a value is a draft in which a redactor finds nothing any more. */
function isSearched(value: object, redactor: Redactor): boolean {
  const by = searched.get(value);
  return (
    by !== undefined && (by.in === 'all' || redactor.in === 'results') && by.patterns === redactor.patterns
  );
}

interface Reading {
  readonly redactor: Redactor;
  /** What an object became: one that contains itself has an end. */
  readonly known: Map<object, unknown>;
}

function redactedIn(value: unknown, reading: Reading, depth: number): unknown {
  const { redactor, known } = reading;
  const isAll = redactor.in === 'all';
  if (typeof value === 'string') return isAll ? redactor.text(value) : value;
  if (typeof value !== 'object' || value === null || depth > depthMax) return value;
  if (known.has(value)) return known.get(value);
  known.set(value, value);
  const redacted = objectIn(value, reading, depth);
  known.set(value, redacted);
  return redacted;
}

function objectIn(value: object, reading: Reading, depth: number): unknown {
  const { redactor } = reading;
  if (isSearched(value, redactor)) return value;
  if (Array.isArray(value)) {
    const list = value.flatMap((one: unknown) =>
      isDraft(one) && !isSearched(one, redactor)
        ? split(one).map((draft) => draftOf(draft, reading))
        : [redactedIn(one, reading, depth + 1)],
    );
    return isSameList(list, value) ? value : list;
  }
  if (isDraft(value)) return draftOf(value, reading);
  const isResult = results.has(Reflect.get(value, 'type')) || Reflect.get(value, 'role') === 'tool';
  // Bytes, and what says itself what it is, as a date or an address does, have no fields.
  const isWhole = ArrayBuffer.isView(value) || value instanceof ArrayBuffer || 'toJSON' in value;
  if (isResult) return resultOf(value, redactor);
  if (isWhole && redactor.in === 'all') return redactor.whole(value).value;
  if (isWhole) return value;
  const change = (field: unknown, name: string) =>
    errors.has(name) ? redactor.whole(field).value : redactedIn(field, reading, depth + 1);
  return fieldsOf(value, change, redactor.in === 'all' ? redactor.text : undefined);
}

/**
 * What a tool returned. Where only that is searched, it names its call as the call is recorded: a model can make an id, or
 * the name of a tool, of a secret.
 */
function resultOf(value: unknown, redactor: Redactor): unknown {
  if (redactor.in === 'all' || !isObject(value) || typeof value.toolCallId !== 'string')
    return redactor.whole(value).value;
  const { toolCallId, toolName, ...content } = value;
  const redacted = redactor.whole(content).value;
  return redacted === content
    ? value
    : { toolCallId, ...(toolName !== undefined && { toolName }), ...redacted };
}

function isDraft(value: unknown): value is Draft {
  return isObject(value) && typeof value.kind === 'string' && 'payload' in value;
}

/** A message with several results is an entry for each of them, so that each counts its own. */
function split(draft: Draft): readonly Draft[] {
  if (draft.kind !== 'message' || !isObject(draft.payload) || draft.payload.role !== 'tool') return [draft];
  try {
    return normalise(draft);
  } catch {
    // It is refused where it is encoded.
    return [draft];
  }
}

function draftOf(draft: Draft, { redactor, known }: Reading): Draft {
  const { meta, ...content } = draft;
  let count = 0;
  const counting: Redactor = {
    ...redactor,
    whole: (value) => {
      const whole = redactor.whole(value);
      count += whole.count;
      return whole;
    },
  };
  const fieldOf = (field: unknown, name: string) => {
    if (draft.kind !== 'tool-result') return redactedIn(field, { redactor: counting, known }, 1);
    return name === 'payload' ? resultOf(field, counting) : counting.whole(field).value;
  };
  const redacted = redactor.in === 'all' ? counting.whole(content) : { value: fieldsOf(content, fieldOf) };
  const own =
    redactor.in === 'all' ? counting.whole(meta) : { value: redactedIn(meta, { redactor, known }, 1) };
  if (redacted.value === content && own.value === meta) return draft;
  const before = isObject(meta) && typeof meta.redacted === 'number' ? meta.redacted : 0;
  const counted = count === 0 ? own.value : { ...(own.value as Draft['meta']), redacted: before + count };
  return { ...redacted.value, ...(counted !== undefined && { meta: counted }) } as Draft;
}

function fieldsOf(
  object: object,
  change: (field: unknown, name: string) => unknown,
  rename?: (name: string) => string,
): object {
  let isSame = true;
  const names = new Set<string>();
  const fields = Object.entries(object).map(([name, field]) => {
    const now = change(field, name);
    const named = rename === undefined ? name : nameOf(rename(name), names);
    isSame &&= now === field && named === name;
    return [named, now] as const;
  });
  return isSame ? object : Object.fromEntries(fields);
}

function isSameList(list: readonly unknown[], other: readonly unknown[]): boolean {
  return list.length === other.length && list.every((one, i) => one === other[i]);
}
