import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { authorOf, isObject, mergedText } from '@tapedeck/tape/internal';
import { isBlobRef, isTextRef } from '@tapedeck/tape/store';
import { code, fenced, jsonBlock, quoted } from './markdown.ts';

/** How an entry is shown. */
export interface Look {
  /** With its reasoning, and in whole where `context.md` has words. */
  readonly verbose: boolean;
  /** The text of its `instructions/text`, which is stored beside the entries. */
  readonly instructions?: string | undefined;
}

/** An entry: what it is, on one line, and its content as blocks of Markdown. */
export interface Shown {
  readonly what: string;
  readonly blocks: readonly string[];
}

/** Whether `context.md` has an entry: what was said, called and returned, and what changes what is read of it. */
export function isInContext({ kind, name = '' }: Pick<Entry, 'kind' | 'name'>): boolean {
  if (kind === 'event')
    return name === 'instructions/text' || /\/(?:error|failed|halted|aborted)$/.test(name);
  if (kind === 'anchor') return name !== 'session/start';
  return kind !== 'status' && kind !== 'ui' && !kind.startsWith('x-');
}

/** Renders an entry. Pure. */
export function shownEntry(entry: Entry, look: Look): Shown {
  const { kind, name = '', payload, mark } = entry;
  if (payload === null) return { what: `${kind}${named(name)}, redacted`, blocks: [] };
  switch (kind) {
    case 'message':
      return shownMessage(entry, look);
    case 'tool-result':
      return shownResult(payload);
    case 'anchor':
      return shownAnchor(name, payload, mark === 'boundary');
    case 'compaction':
      return { what: `summary${rangeOf(stateOf(payload))}`, blocks: stateBlocks(stateOf(payload)) };
    case 'rewind':
      return { what: `rewind to @${String(entry.ref)}`, blocks: [] };
    case 'redaction':
      return {
        what: `redaction of @${String(entry.ref)}`,
        blocks: isObject(payload) && typeof payload.reason === 'string' ? [quoted(payload.reason)] : [],
      };
    case 'result':
      return { what: 'result', blocks: [valueBlock(isObject(payload) ? payload.value : payload)] };
    default:
      return shownEvent(entry, look);
  }
}

function shownMessage({ payload, meta, name = '' }: Entry, { verbose }: Look): Shown {
  if (!isObject(payload)) return { what: `message${named(name)}`, blocks: [jsonBlock(payload)] };
  const parts = Array.isArray(payload.content) ? payload.content : [];
  if (meta.source === 'merge') {
    const text = parts.map((part) => (isObject(part) ? textOf(part.text) : '')).join('\n');
    return { what: `merge${childOf(meta)}`, blocks: [quoted(mergedText(text) ?? text)] };
  }
  const blocks = parts.flatMap((part) => partBlocks(part, verbose));
  const partial = meta.partial === true ? ', partial' : '';
  return { what: `${roleOf(payload)}${from(payload, meta)}${partial}`, blocks };
}

function roleOf({ role }: JsonObject): string {
  return role === 'user' || role === 'assistant' ? role : `message ${code(String(role))}`;
}

/** Who wrote a message of the user, and where it came from. */
function from({ role }: JsonObject, meta: Entry['meta']): string {
  if (role !== 'user') return '';
  const author = authorOf(meta);
  const who = author === undefined || author.id === '' ? meta.from : author.label;
  // A message of the program's user says so already.
  const where = meta.channel ?? (meta.source === 'user' ? undefined : meta.source);
  return `${typeof who === 'string' ? ` ${code(who)}` : ''}${typeof where === 'string' ? ` by ${code(where)}` : ''}`;
}

function childOf({ session }: Entry['meta']): string {
  return typeof session === 'string' ? ` of ${code(session)}` : '';
}

function partBlocks(part: Json, verbose: boolean): readonly string[] {
  if (!isObject(part)) return [jsonBlock(part)];
  switch (part.type) {
    case 'text':
      return [quoted(textOf(part.text))];
    case 'reasoning':
      return verbose ? ['Reasoning:', quoted(textOf(part.text))] : [];
    case 'tool-call':
      return [
        `Call ${code(String(part.toolName))}, ${code(String(part.toolCallId))}:`,
        valueBlock(part.input),
      ];
    case 'tool-result':
      return [
        `Result of ${code(String(part.toolName))}${outcome(part.output)}:`,
        ...outputBlocks(part.output),
      ];
    default:
      return [otherPart(part)];
  }
}

/** A part that is no text, such as an image: what it is, and how large. */
function otherPart(part: JsonObject): string {
  const { type, mediaType, filename, data, image, url } = part;
  const [bytes] = [data, image, isObject(data) ? data.data : undefined].flatMap((one) =>
    isBlobRef(one) ? [one.size] : [],
  );
  const facts = [type, mediaType, filename, url].filter((fact) => typeof fact === 'string').map(code);
  return `Part ${facts.join(', ')}${bytes === undefined ? '' : `, ${bytes} bytes`}`;
}

function shownResult(payload: Json): Shown {
  if (!isObject(payload)) return { what: 'result of a call', blocks: [jsonBlock(payload)] };
  const { toolName, toolCallId, output } = payload;
  return {
    what: `result of ${code(String(toolName))}${outcome(output)}, ${code(String(toolCallId))}`,
    blocks: outputBlocks(output),
  };
}

/** How a call ended that did not succeed. */
function outcome(output: Json | undefined): string {
  const type = isObject(output) ? output.type : undefined;
  if (type === 'execution-denied') return ', denied';
  return type === 'error-text' || type === 'error-json' ? ', failed' : '';
}

function outputBlocks(output: Json | undefined): readonly string[] {
  if (!isObject(output)) return [valueBlock(output)];
  const { type, value, reason } = output;
  if (type === 'execution-denied') return typeof reason === 'string' ? [quoted(reason)] : [];
  if (type !== 'content' || !Array.isArray(value)) return [valueBlock(value)];
  return value.map((item) =>
    isObject(item) && item.type === 'text'
      ? valueBlock(item.text)
      : isObject(item)
        ? otherPart(item)
        : jsonBlock(item),
  );
}

function shownAnchor(name: string, payload: Json, isBoundary: boolean): Shown {
  const state = stateOf(payload);
  if (name === 'intention') {
    const { next_steps, context_summary, ...rest } = state;
    const { created_at: _, ...more } = rest;
    const texts = [next_steps, context_summary].filter((text) => typeof text === 'string');
    return { what: 'task', blocks: [...texts.map(quoted), ...restBlocks(more)] };
  }
  if (name === 'fork/start' && isObject(payload)) {
    const { parent_name, range } = payload;
    const what = Array.isArray(range) ? `inherits @${range.join('-@')}` : 'inherits nothing';
    return { what: `fork of ${code(String(parent_name))}, ${what}`, blocks: stateBlocks(state) };
  }
  if (name.startsWith('merge/')) {
    const { status, strategy } = state;
    const how = [strategy, status]
      .filter((word) => typeof word === 'string')
      .map((word) => `, ${code(word)}`);
    return {
      what: `merge${rangeOf(state)} of ${code(name.slice('merge/'.length))}${how.join('')}`,
      blocks: [],
    };
  }
  return { what: `${isBoundary ? 'handoff' : 'anchor'}${named(name)}`, blocks: stateBlocks(state) };
}

function shownEvent({ kind, name = '', payload }: Entry, { verbose, instructions }: Look): Shown {
  if (name === 'instructions/text' && instructions !== undefined)
    return { what: 'instructions', blocks: [quoted(instructions)] };
  const { message, reason } = isObject(payload) ? payload : {};
  const said = [message, reason].find((text) => typeof text === 'string');
  const words = said === undefined ? [] : [quoted(said)];
  const isSaid = words.length > 0 && !verbose;
  return {
    what: `${kind}${named(name)}`,
    blocks: isSaid || isEmpty(payload) ? words : [...words, jsonBlock(payload)],
  };
}

function isEmpty(payload: Json): boolean {
  return isObject(payload) && Object.keys(payload).length === 0;
}

function stateOf(payload: Json): JsonObject {
  return isObject(payload) && isObject(payload.state) ? payload.state : {};
}

/** The summary of a state as a text, and all else of it as JSON. */
function stateBlocks({ summary, ...rest }: JsonObject): readonly string[] {
  return [...(typeof summary === 'string' ? [quoted(summary)] : []), ...restBlocks(rest)];
}

function restBlocks(rest: JsonObject): readonly string[] {
  return isEmpty(rest) ? [] : [jsonBlock(rest)];
}

function rangeOf({ range }: JsonObject): string {
  return Array.isArray(range) && range.every(Number.isInteger) ? ` of @${range.join('-@')}` : '';
}

function named(name: string): string {
  return name === '' ? '' : ` ${code(name)}`;
}

/** A value: a text as it is, anything else as JSON. */
function valueBlock(value: Json | undefined): string {
  if (isTextRef(value)) return fenced(textOf(value));
  return typeof value === 'string' ? fenced(value) : jsonBlock(value ?? null);
}

/** A text, or the beginning of one that is stored beside the entries. */
function textOf(text: Json | undefined): string {
  if (isTextRef(text)) return `${text.preview}… (${text.size} bytes in total)`;
  return typeof text === 'string' ? text : JSON.stringify(text ?? null);
}
