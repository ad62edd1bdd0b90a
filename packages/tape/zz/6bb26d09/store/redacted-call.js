                                               
import { isObject } from '../entry/json.js';
import { normalise } from '../entry/normalise.js';
import { TapeError } from '../errors.js';
                                                       

/** Objects that have what a tool returned, by their type: parts of messages, chunks and inbox items. */
const results                       = new Set([
  'tool-result',
  'tool-error',
  'tool-output-available',
  'tool-output-error',
  'answer',
  'error',
]);
/** Fields that have what went wrong. */
const errors                      = new Set(['error', 'errorText']);
/** Fields by which a result belongs to its call. */
const depthMax = 200;

/**
 * What a method of a store was given, without the secrets that have the form of one: in outputs of tools and in errors,
 * or everywhere. An entry counts its own in `meta.redacted`.
 * @throws TAPE_CANNOT_REDACT when a value cannot be read: nothing of it is written
 */
export function redactedCall(
  args                    ,
  redactor          ,
  method        ,
)                     {
  try {
    return redactedIn(args, redactor, 0)                      ;
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
export function redactedDraft(draft       , redactor          )        {
  return draftOf(draft, redactor)         ;
}

function redactedIn(value         , redactor          , depth        )          {
  if (typeof value !== 'object' || value === null || depth > depthMax) {
    return typeof value === 'string' && redactor.in === 'all' ? redactor.text(value) : value;
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    return redactor.in === 'all' ? redactor.whole(value).value : value;
  if (Array.isArray(value)) {
    const list = value.flatMap((one         ) =>
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

function isDraft(value         )                 {
  return isObject(value) && typeof value.kind === 'string' && 'payload' in value;
}

/** A message with several results is an entry for each of them, so that each counts its own. */
function split(draft       )                   {
  if (draft.kind !== 'message' || !isObject(draft.payload) || draft.payload.role !== 'tool') return [draft];
  try {
    return normalise(draft);
  } catch {
    // It is refused where it is encoded.
    return [draft];
  }
}

function draftOf(draft       , redactor          )        {
  const { meta, ...content } = draft;
  let redacted       ;
  let count = 0;
  if (redactor.in === 'all' || draft.kind === 'tool-result') {
    const whole = redactor.whole(content);
    redacted = whole.value         ;
    count = whole.count;
  } else {
    const counting           = {
      ...redactor,
      whole: (value) => {
        const whole = redactor.whole(value);
        count += whole.count;
        return whole;
      },
    };
    redacted = fieldsOf(content, (field) => redactedIn(field, counting, 1))         ;
  }
  const own = meta === undefined ? undefined : redactedIn(meta, redactor, 1);
  if (count === 0)
    return redacted === content && own === meta
      ? draft
      : ({ ...redacted, ...(own !== undefined && { meta: own }) }         );
  const before = isObject(meta) && typeof meta.redacted === 'number' ? meta.redacted : 0;
  return { ...redacted, meta: { ...(own                 ), redacted: before + count } }         ;
}

function fieldsOf(object        , change                                           )         {
  let isSame = true;
  const fields = Object.entries(object).map(([name, field]) => {
    const now = change(field, name);
    isSame &&= now === field;
    return [name, now]         ;
  });
  return isSame ? object : Object.fromEntries(fields);
}

function isSameList(list                    , other                    )          {
  return list.length === other.length && list.every((one, i) => one === other[i]);
}
