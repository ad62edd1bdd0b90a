import { isObject, type Part, type StoredMessage } from '@tapedeck/tape';

/** How much of one part is given to be summarised, in characters, so that a single large one does not stand for all. */
const partMax = 4_000;

/** A conversation as flat text, for a reader who is to tell of it and not to go on with it (J31). */
export function transcriptOf(
  messages: readonly StoredMessage[],
  { outputs = true }: { outputs?: boolean } = {},
): string {
  return messages.flatMap((message) => linesOf(message, outputs)).join('\n\n');
}

/** A text of at most so many characters: its middle left out. */
export function withoutMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  const half = Math.max(1, Math.floor(max / 2));
  return `${text.slice(0, half).toWellFormed()}\n[… left out …]\n${text.slice(-half).toWellFormed()}`;
}

function linesOf({ role, content }: StoredMessage, outputs: boolean): string[] {
  const who = role === 'user' ? '[User]' : '[Assistant]';
  const said = content.map(saidIn).filter((text) => text !== '');
  const calls = content.filter(({ type }) => type === 'tool-call').map(callText);
  const results = content.filter(({ type }) => type === 'tool-result');
  return [
    ...(said.length > 0 ? [`${who}: ${said.join('\n')}`] : []),
    ...(calls.length > 0 ? [`[Assistant tool calls]: ${calls.join('; ')}`] : []),
    ...results.map((part) => `[Tool result]: ${resultText(part, outputs)}`),
  ];
}

/** Reasoning is not told: what it came to was said or done. */
function saidIn({ type, text, filename }: Part): string {
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
