import type { StoredMessage } from '@tapedeck/tape';

/** How much of a transcript is given to be summarised, in characters, whatever the session holds. */
const transcriptMax = 400_000;

/** How much of one part of it, so that a single large output does not stand for all. */
const partMax = 4_000;

/** A conversation as flat text, its middle left out where it is longer than `max` characters. */
export function transcriptOf(messages: readonly StoredMessage[], max: number): string {
  const text = messages
    .flatMap(({ role, content }) => content.map((part) => `${role}: ${partText(part)}`))
    .join('\n');
  const most = Math.min(max, transcriptMax);
  if (text.length <= most) return text;
  return `${text.slice(0, most / 2)}\n[… left out …]\n${text.slice(-most / 2)}`;
}

function partText(part: StoredMessage['content'][number]): string {
  const { type, text, toolName, input, output } = part;
  if (typeof text === 'string') return short(text);
  if (type === 'tool-call') return `called ${String(toolName)}(${short(JSON.stringify(input ?? {}))})`;
  if (type === 'tool-result') return `${String(toolName)} answered ${short(JSON.stringify(output ?? null))}`;
  return `[${type}]`;
}

function short(text: string): string {
  return text.length <= partMax ? text : `${text.slice(0, partMax)} […]`;
}
