import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { isTextRef } from '@tapedeck/tape/store';

/** A tool call of a message. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
}

/** What a tool returned, as text. */
export interface ToolOutput {
  readonly text: string;
  /** It is no answer: the tool failed, or was not allowed to run. */
  readonly fault?: 'error' | 'denied';
  /** Bytes of the whole output, where `text` is its beginning. */
  readonly bytes?: number;
}

/** The parts of a message; none for another entry. */
export function partsOf({ payload }: Pick<Entry, 'payload'>): readonly JsonObject[] {
  return isObject(payload) && Array.isArray(payload.content) ? payload.content.filter(isObject) : [];
}

export function callOf({ toolCallId, toolName, input }: JsonObject): ToolCall {
  return { id: String(toolCallId), name: String(toolName), input: input ?? null };
}

/** The tool calls of an entry, those that the provider ran too. */
export function callsOf(entry: Pick<Entry, 'kind' | 'payload'>): readonly ToolCall[] {
  if (entry.kind !== 'message') return [];
  return partsOf(entry).flatMap((part) => (part.type === 'tool-call' ? [callOf(part)] : []));
}

/** The output of a tool result: `{ type: 'text', value: … }` and the like. */
export function outputOf(output: unknown): ToolOutput {
  if (!isObject(output)) return { text: JSON.stringify(output ?? null) };
  const { type, value, reason } = output;
  if (type === 'execution-denied') return { text: typeof reason === 'string' ? reason : '', fault: 'denied' };
  const fault = type === 'error-text' || type === 'error-json' ? { fault: 'error' as const } : {};
  if (isTextRef(value)) return { text: value.preview, bytes: value.size, ...fault };
  if (type === 'content' && Array.isArray(value)) return { text: value.map(itemText).join('\n'), ...fault };
  return { text: typeof value === 'string' ? value : JSON.stringify(value ?? null), ...fault };
}

function itemText(item: Json): string {
  if (!isObject(item)) return JSON.stringify(item);
  const { text } = item;
  if (isTextRef(text)) return `${text.preview}… (${text.size} bytes in total)`;
  return typeof text === 'string' ? text : `[${String(item.mediaType ?? item.type)}]`;
}

function valueText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** How much of an argument is shown, and what is said where there is more. */
export interface ArgumentsCut {
  readonly chars: number;
  readonly lines: number;
  readonly more: (count: number) => string;
}

/** The arguments of a call, one a line; a text of several lines stands below its name. */
export function argumentLines(input: Json, cut?: ArgumentsCut): readonly string[] {
  if (!isObject(input)) return input === null ? [] : valueLines(valueText(input), cut);
  return Object.entries(input).flatMap(([name, value]) => {
    const lines = valueLines(valueText(value), cut);
    return lines.length === 1 ? [`${name}: ${lines[0]}`] : [`${name}:`, ...lines.map((line) => `  ${line}`)];
  });
}

function valueLines(text: string, cut: ArgumentsCut | undefined): readonly string[] {
  if (cut === undefined) return text.split('\n');
  const kept = text.slice(0, cut.chars).split('\n').slice(0, cut.lines);
  const left = text.length - kept.join('\n').length;
  // A few more characters need less room than the words about them.
  return left === 0 || (left < cut.chars / 10 && kept.length < cut.lines)
    ? text.split('\n')
    : [...kept, cut.more(left)];
}
