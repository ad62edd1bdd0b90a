import type { Draft } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { normalise } from '../entry/normalise.ts';
import { TapeError } from '../errors.ts';
import type { Redactor } from '../secrets/redactor.ts';

/** Objects that have what a tool returned, by their type: parts of messages, chunks and inbox items. */
const results: ReadonlySet<unknown> = new Set([
  'tool-result',
  'tool-error',
  'tool-output-available',
  'tool-output-error',
  'answer',
  'error',
]);
/** Fields that have what went wrong. */
const errors: ReadonlySet<string> = new Set(['error', 'errorText']);
/** Fields by which a result belongs to its call. */
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
    return redactedIn(args, redactor, 0) as readonly unknown[];
  } catch (error) {
    // The cause can have the text that could not be read.
    const why = error instanceof Error ? error.name : 'an error';
    throw new TapeError(
      'TAPE_CANNOT_REDACT',
      `cannot write with ${method}: looking for secrets in what it was given failed with ${why}`,
      { data: { method } },
    );
  }
}

/** A draft without the secrets that have the form of one; counts them in its meta. */
export function redactedDraft(draft: Draft, redactor: Redactor): Draft {
  return draftOf(draft, redactor) as Draft;
}

function redactedIn(value: unknown, redactor: Redactor, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > depthMax) {
    return typeof value === 'string' && redactor.in === 'all' ? redactor.text(value) : value;
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    return redactor.in === 'all' ? redactor.whole(value).value : value;
  if (Array.isArray(value)) {
    const list = value.flatMap((one: unknown) =>
      isDraft(one)
        ? split(one).map((draft) => draftOf(draft, redactor))
        : [redactedIn(one, redactor, depth + 1)],
    );
    return isSameList(list, value) ? value : list;
  }
  if (isDraft(value)) return draftOf(value, redactor);
  if (results.has(Reflect.get(value, 'type')) || Reflect.get(value, 'role') === 'tool')
    return redactor.whole(value).value;
  // It says itself what it is, as a date or an address does.
  if ('toJSON' in value && typeof value.toJSON === 'function')
    return redactor.in === 'all' ? redactor.whole(value).value : value;
  return fieldsOf(value, (field, name) =>
    errors.has(name) ? redactor.whole(field).value : redactedIn(field, redactor, depth + 1),
  );
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

function draftOf(draft: Draft, redactor: Redactor): Draft {
  const { meta, ...content } = draft;
  let redacted: Draft;
  let count = 0;
  if (redactor.in === 'all' || draft.kind === 'tool-result') {
    const whole = redactor.whole(content);
    redacted = whole.value as Draft;
    count = whole.count;
  } else {
    const counting: Redactor = {
      ...redactor,
      whole: (value) => {
        const whole = redactor.whole(value);
        count += whole.count;
        return whole;
      },
    };
    redacted = fieldsOf(content, (field) => redactedIn(field, counting, 1)) as Draft;
  }
  const own = meta === undefined ? undefined : redactedIn(meta, redactor, 1);
  if (count === 0)
    return redacted === content && own === meta
      ? draft
      : ({ ...redacted, ...(own !== undefined && { meta: own }) } as Draft);
  const before = isObject(meta) && typeof meta.redacted === 'number' ? meta.redacted : 0;
  return { ...redacted, meta: { ...(own as Draft['meta']), redacted: before + count } } as Draft;
}

function fieldsOf(object: object, change: (field: unknown, name: string) => unknown): object {
  let isSame = true;
  const fields = Object.entries(object).map(([name, field]) => {
    const now = change(field, name);
    isSame &&= now === field;
    return [name, now] as const;
  });
  return isSame ? object : Object.fromEntries(fields);
}

function isSameList(list: readonly unknown[], other: readonly unknown[]): boolean {
  return list.length === other.length && list.every((one, i) => one === other[i]);
}
