                                              
import { sha256 } from '../entry/hash.js';
import { isObject,           } from '../entry/json.js';
                                            
import { fitResultFile } from './file-part.js';
import { optionsFor, withOptions } from './fit-part.js';

/** Every provider accepts a call id of this length. */
const idCharsMax = 40;

/** Returns whether a part of an assistant's message calls a client-side tool. */
export function isClientCall(part      )          {
  return part.type === 'tool-call' && part.providerExecuted !== true;
}

/**
 * Returns the id under which a call is shown: its own, if the target accepts it and no earlier call has it.
 * Some servers restart their numbering of calls in every answer.
 */
export function callId(id        , free         , { ids, last }         )         {
  const base = free ? id : legalCallId(id);
  const key = `${free} ${base}`;
  let shown = base;
  let n = last.get(key) ?? 1;
  if (n > 1) shown = numbered(base, n, free);
  while (ids.has(shown)) {
    n += 1;
    shown = numbered(base, n, free);
  }
  ids.add(shown);
  if (n > 1) last.set(key, n);
  return shown;
}

/** The id in the form that every provider accepts. */
export function legalCallId(id        )         {
  if (id.length <= idCharsMax && /^[a-zA-Z0-9_-]+$/.test(id)) return id;
  return `${sanitise(id).slice(0, idCharsMax - 9)}_${sha256(id).slice(0, 8)}`;
}

/**
 * Ids in use, and the last number that was appended to each repeated id: all lower numbers are in use too.
 */
                          
                            
                                     
 

function numbered(base        , n        , free         )         {
  const end = `_${n}`;
  return `${free ? base : base.slice(0, idCharsMax - end.length)}${end}`;
}

function sanitise(text        )         {
  return text.replace(/[^a-zA-Z0-9_-]/g, '_');
}

/** Returns the arguments of a call; providers accept only an object. */
export function callInput(input         )          {
  if (isObject(input)) return input;
  const parsed = typeof input === 'string' ? parsedObject(input) : undefined;
  return parsed ?? { rawInvalidInput: input ?? null };
}

function parsedObject(text        )          {
  try {
    const value          = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Fits the result of a call, with the id and name under which the call is shown. */
export function fitResult(part      , call                              , dialect         )       {
  const { output, ...rest } = withOptions(part, dialect);
  return {
    ...rest,
    type: 'tool-result',
    toolCallId: call.id,
    toolName: call.name,
    output: fitOutput(output, dialect),
  };
}

function fitOutput(output         , dialect         )          {
  if (!isObject(output)) return { type: 'json', value: output ?? null };
  const { type, value } = output;
  const options = optionsFor(output.providerOptions, dialect);
  const more = options === undefined ? {} : { providerOptions: options };
  switch (type) {
    case 'text':
    case 'error-text':
      return { type, value: typeof value === 'string' ? value : JSON.stringify(value ?? null), ...more };
    case 'json':
    case 'error-json':
      return { type, value: value ?? null, ...more };
    case 'execution-denied':
      // Drops the options: they can mean that the answer was sent another way, and then the SDK sends none.
      return { type, ...(typeof output.reason === 'string' && { reason: output.reason }) };
    case 'content':
      return contentOutput(Array.isArray(value) ? value.filter(isObject) : [], dialect);
    default:
      return { type: 'json', value: output };
  }
}

function contentOutput(value                                 , dialect         )          {
  const items = value.flatMap((item) => fitItem(item                   , dialect) ?? []);
  if (dialect.chat || items.length === 0)
    return { type: 'text', value: items.map(({ text }) => text).join('\n\n') };
  return { type: 'content', value: dialect.oneResultText ? withOneText(items) : items };
}

/** The items with their texts as one, before all files. */
function withOneText(items                 )                  {
  const texts = items.filter(({ type }) => type === 'text');
  const text = texts.length === 0 ? filesFollow : texts.map((item) => item.text).join('\n\n');
  return [{ type: 'text', text }, ...items.filter(({ type }) => type !== 'text')];
}

/** The text of a result of files alone, for targets that require one. */
const filesFollow = 'The result is what follows.';

function fitItem(item      , dialect         )                   {
  if (item.type === 'custom')
    return !dialect.customs || optionsFor(item.providerOptions, dialect) === undefined
      ? undefined
      : withOptions(item, dialect);
  if (item.type === 'text' && typeof item.text !== 'string') return undefined;
  const fitted = item.type === 'text' ? item : fitResultFile(item, dialect);
  const blank = fitted.type === 'text' && typeof fitted.text === 'string' && fitted.text.trim() === '';
  return blank ? undefined : withOptions(fitted, dialect);
}
