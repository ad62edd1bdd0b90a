import type { Part } from '../entry/entry.ts';
import { sha256 } from '../entry/hash.ts';
import { isObject, type Json } from '../entry/json.ts';
import type { Dialect } from './dialect.ts';
import { fitResultFile } from './file-part.ts';
import { optionsFor, withOptions } from './fit-part.ts';

/** Every provider accepts a call id of this length. */
const idCharsMax = 40;

/** Returns whether a part of an assistant's message calls a client-side tool. */
export function isClientCall(part: Part): boolean {
  return part.type === 'tool-call' && part.providerExecuted !== true;
}

/**
 * Returns the id under which a call is shown: its own, if the target accepts it and no earlier call has it.
 * Some servers restart their numbering of calls in every answer.
 */
export function callId(id: string, free: boolean, { ids, last }: SeenIds): string {
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
export function legalCallId(id: string): string {
  if (id.length <= idCharsMax && /^[a-zA-Z0-9_-]+$/.test(id)) return id;
  return `${sanitise(id).slice(0, idCharsMax - 9)}_${sha256(id).slice(0, 8)}`;
}

/**
 * Ids in use, and the last number that was appended to each repeated id: all lower numbers are in use too.
 */
export interface SeenIds {
  readonly ids: Set<string>;
  readonly last: Map<string, number>;
}

function numbered(base: string, n: number, free: boolean): string {
  const end = `_${n}`;
  return `${free ? base : base.slice(0, idCharsMax - end.length)}${end}`;
}

function sanitise(text: string): string {
  return text.replace(/[^a-zA-Z0-9_-]/g, '_');
}

/** Returns the arguments of a call; providers accept only an object. */
export function callInput(input: unknown): unknown {
  if (isObject(input)) return input;
  const parsed = typeof input === 'string' ? parsedObject(input) : undefined;
  return parsed ?? { rawInvalidInput: input ?? null };
}

function parsedObject(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Fits the result of a call, with the id and name under which the call is shown. */
export function fitResult(part: Part, call: { id: string; name: string }, dialect: Dialect): Part {
  const { output, ...rest } = withOptions(part, dialect);
  return {
    ...rest,
    type: 'tool-result',
    toolCallId: call.id,
    toolName: call.name,
    output: fitOutput(output, dialect),
  };
}

function fitOutput(output: unknown, dialect: Dialect): unknown {
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

function contentOutput(value: readonly Record<string, Json>[], dialect: Dialect): unknown {
  const items = value.flatMap((item) => fitItem(item as unknown as Part, dialect) ?? []);
  if (dialect.chat || items.length === 0)
    return { type: 'text', value: items.map(({ text }) => text).join('\n\n') };
  return { type: 'content', value: dialect.oneResultText ? withOneText(items) : items };
}

/** The items with their texts as one, before all files. */
function withOneText(items: readonly Part[]): readonly Part[] {
  const texts = items.filter(({ type }) => type === 'text');
  const text = texts.length === 0 ? filesFollow : texts.map((item) => item.text).join('\n\n');
  return [{ type: 'text', text }, ...items.filter(({ type }) => type !== 'text')];
}

/** The text of a result of files alone, for targets that require one. */
const filesFollow = 'The result is what follows.';

function fitItem(item: Part, dialect: Dialect): Part | undefined {
  if (item.type === 'custom')
    return !dialect.customs || optionsFor(item.providerOptions, dialect) === undefined
      ? undefined
      : withOptions(item, dialect);
  if (item.type === 'text' && typeof item.text !== 'string') return undefined;
  const fitted = item.type === 'text' ? item : fitResultFile(item, dialect);
  const blank = fitted.type === 'text' && typeof fitted.text === 'string' && fitted.text.trim() === '';
  return blank ? undefined : withOptions(fitted, dialect);
}
