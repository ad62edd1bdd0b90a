import type { Part, StoredMessage } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The most characters of one part, so that a single large part does not crowd out the rest. */
const partMax = 4_000;

/** A conversation as flat text, to be summarised rather than continued. */
export function transcriptOf(
  messages: readonly StoredMessage[],
  { outputs = true }: { outputs?: boolean } = {},
): string {
  return messages.flatMap((message) => linesOf(message, outputs)).join('\n\n');
}

/** A text of at most about `max` characters: cuts out the middle. */
export function withoutMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  const half = Math.max(1, Math.floor(max / 2));
  return `${text.slice(0, half).toWellFormed()}\n[… left out …]\n${text.slice(-half).toWellFormed()}`;
}

function linesOf({ role, content }: StoredMessage, outputs: boolean): string[] {
  const who = role === 'user' ? '[User]' : '[Assistant]';
  const texts = content.map(partText).filter((text) => text !== '');
  const calls = content.filter(({ type }) => type === 'tool-call').map(callText);
  const results = content.filter(({ type }) => type === 'tool-result');
  return [
    ...(texts.length > 0 ? [`${who}: ${texts.join('\n')}`] : []),
    ...(calls.length > 0 ? [`[Assistant tool calls]: ${calls.join('; ')}`] : []),
    ...results.map((part) => `[Tool result]: ${resultText(part, outputs)}`),
  ];
}

/** The text of a part. Reasoning is left out: its results are in the text and the calls. */
function partText({ type, text, filename }: Part): string {
  if (type === 'text') return short(String(text));
  if (type === 'tool-call' || type === 'tool-result' || type === 'reasoning') return '';
  return typeof filename === 'string' ? `[${type} ${filename}]` : `[${type}]`;
}

function callText({ toolName, input }: Part): string {
  const named = isObject(input)
    ? Object.entries(input).map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    : [JSON.stringify(input ?? null)];
  return `${String(toolName)}(${short(named.join(', '))})`;
}

function resultText({ output }: Part, outputs: boolean): string {
  const value = isObject(output) ? (output.value ?? output.reason ?? null) : (output ?? null);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return outputs ? short(text) : `<output pruned, ${Math.ceil(text.length / 4)} tokens>`;
}

function short(text: string): string {
  return text.length <= partMax ? text : `${text.slice(0, partMax).toWellFormed()} […]`;
}
