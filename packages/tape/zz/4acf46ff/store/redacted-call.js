                                               
import { isObject } from '../entry/json.js';
import { normalise } from '../entry/normalise.js';
import { TapeError } from '../errors.js';
                                                       

/** Objects that have what a tool returned, by their type: parts of messages, chunks and inbox items. */
const results                       = new Set([
  'tool-result',
  'tool-error',
  'tool-output-available',
  'tool-output-error',
  'tool-completed',
  'answer',
  'error',
]);
/** Fields that have what went wrong. */
const errors                      = new Set(['error', 'errorText']);
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
    return redactedIn(args, { redactor, known: new Map() }, 0)                      ;
  } catch (error) {
    throw new TapeError(
      'TAPE_CANNOT_REDACT',
      `cannot write with ${method}: a value cannot be searched for secrets: ${causeOf(error, redactor)}`,
      { data: { method } },
    );
  }
}

/** The text of an error, which can have a secret too. */
function causeOf(error         , redactor          )         {
  if (!(error instanceof Error)) return 'it throws what is no error';
  try {
    return redactor.text(error.message);
  } catch {
    return error.name;
  }
}

/** A draft without the secrets that have the form of one; counts them in its meta. */
export function redactedDraft(draft       , redactor          )        {
  return draftOf(draft, { redactor, known: new Map() });
}

                   
                              
                                                                    
                                       
 

function redactedIn(value         , reading         , depth        )          {
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

function objectIn(value        , reading         , depth        )          {
  const { redactor } = reading;
  if (Array.isArray(value)) {
    const list = value.flatMap((one         ) =>
      isDraft(one)
        ? split(one).map((draft) => draftOf(draft, reading))
        : [redactedIn(one, reading, depth + 1)],
    );
    return isSameList(list, value) ? value : list;
  }
  if (isDraft(value)) return draftOf(value, reading);
  const isResult = results.has(Reflect.get(value, 'type')) || Reflect.get(value, 'role') === 'tool';
  // Bytes, and what says itself what it is, as a date or an address does, have no fields.
  const isWhole = ArrayBuffer.isView(value) || value instanceof ArrayBuffer || 'toJSON' in value;
  if (isResult || (isWhole && redactor.in === 'all')) return redactor.whole(value).value;
  if (isWhole) return value;
  return fieldsOf(value, (field, name) =>
    errors.has(name) ? redactor.whole(field).value : redactedIn(field, reading, depth + 1),
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

function draftOf(draft       , { redactor, known }         )        {
  const { meta, ...content } = draft;
  let count = 0;
  const counting           = {
    ...redactor,
    whole: (value) => {
      const whole = redactor.whole(value);
      count += whole.count;
      return whole;
    },
  };
  const isWhole = redactor.in === 'all' || draft.kind === 'tool-result';
  const redacted = isWhole
    ? counting.whole(content)
    : { value: fieldsOf(content, (field) => redactedIn(field, { redactor: counting, known }, 1)) };
  const own =
    redactor.in === 'all' ? counting.whole(meta) : { value: redactedIn(meta, { redactor, known }, 1) };
  if (redacted.value === content && own.value === meta) return draft;
  const before = isObject(meta) && typeof meta.redacted === 'number' ? meta.redacted : 0;
  const counted = count === 0 ? own.value : { ...(own.value                 ), redacted: before + count };
  return { ...redacted.value, ...(counted !== undefined && { meta: counted }) }         ;
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
