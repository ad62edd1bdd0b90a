import { isTextRef } from '../entry/blob.ts';
import type { Entry, Part } from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { previewText } from '../entry/spill.ts';
import { type Author, authorOf } from './author.ts';

/** A message of a view: an AI SDK `ModelMessage` in which bytes are still references (`BlobRef`). */
export interface StoredMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly content: readonly Part[];
  readonly providerOptions?: JsonObject;
}

/** What one entry contributes to a view: a message or a result, with the provider that made it. */
export type Rendered =
  | {
      readonly type: 'message';
      readonly message: StoredMessage;
      readonly provider: string | undefined;
      /** Who wrote it, of a message of the user; undefined for other messages. */
      readonly author?: Author | undefined;
    }
  | { readonly type: 'result'; readonly part: Part; readonly provider: string | undefined };

/**
 * Renders an entry; `undefined` for those that views skip. `pruned`: former size of its output, if pruned.
 */
export function renderEntry(
  entry: Pick<Entry, 'kind' | 'name' | 'payload' | 'meta'>,
  pruned?: number,
): Rendered | undefined {
  if (entry.meta.context === false || !isObject(entry.payload)) return undefined;
  const { kind, payload, meta } = entry;
  const provider = typeof meta.provider === 'string' ? meta.provider : undefined;
  if (kind === 'message') {
    const role = payload.role === 'assistant' ? 'assistant' : 'user';
    // No writer stores a part that is no object; a forged tape can have one.
    const parts = (Array.isArray(payload.content)
      ? payload.content.filter(isObject)
      : []) as unknown as Part[];
    if (meta.partial === true && role === 'assistant')
      return { type: 'message', message: { role, content: parts.map(unsigned) }, provider: undefined };
    const content = parts;
    const options = isObject(payload.providerOptions) ? payload.providerOptions : undefined;
    const message = { role, content, ...(options !== undefined && { providerOptions: options }) } as const;
    return { type: 'message', message, provider, author: role === 'user' ? authorOf(meta) : undefined };
  }
  if (kind === 'tool-result')
    return { type: 'result', part: shownResult(payload as unknown as Part, pruned), provider };
  if (kind === 'anchor' && entry.name === 'intention') {
    const text = renderIntention(isObject(payload.state) ? payload.state : {});
    return text === '' ? undefined : { type: 'message', message: userText(text), provider };
  }
  return undefined;
}

/** A part of a broken-off answer belongs to no provider: none finished, signed or stored it. */
function unsigned({ providerOptions: _, ...part }: Part): Part {
  return part as Part;
}

function shownResult(part: Part, pruned: number | undefined): Part {
  if (pruned === undefined) return previewed(part);
  const failed = isObject(part.output) && /^error|^execution-denied$/.test(String(part.output.type));
  const value = `<output pruned, ${pruned} tokens>`;
  return { ...part, output: { type: failed ? 'error-text' : 'text', value } };
}

/** Replaces a large output by its preview; a reader gets the rest by its hash. */
function previewed(part: Part): Part {
  if (!isObject(part.output)) return part;
  const { type, value } = part.output;
  if (isTextRef(value)) {
    const shown = String(type).startsWith('error') ? 'error-text' : 'text';
    return { ...part, output: { ...part.output, type: shown, value: previewText(value) } };
  }
  if (!Array.isArray(value) || !value.some((item) => isObject(item) && isTextRef(item.text))) return part;
  const items = value.map((item) =>
    isObject(item) && isTextRef(item.text) ? { ...item, text: previewText(item.text) } : item,
  );
  return { ...part, output: { ...part.output, value: items } };
}

/**
 * Renders the state that begins a view: its summary between `<summary>` tags, then its other keys as one
 * compact JSON line. The other keys of a compaction describe how its summary was made and are not shown.
 * Returns undefined for an empty state.
 */
export function renderState(start: Entry | undefined): StoredMessage | undefined {
  if (start === undefined || !isObject(start.payload) || !isObject(start.payload.state)) return undefined;
  const { summary, ...others } = start.payload.state;
  const lines: string[] = [];
  if (typeof summary === 'string' && summary !== '')
    lines.push(
      'The conversation history before this point was compacted into the following summary:',
      '<summary>',
      summary,
      '</summary>',
    );
  if (start.kind !== 'compaction' && Object.keys(others).length > 0) lines.push(JSON.stringify(others));
  return lines.length === 0 ? undefined : userText(lines.join('\n'));
}

/** Renders the preamble with the child's intention. */
function renderIntention(state: { readonly [key: string]: Json }): string {
  const lines: string[] = [];
  if (typeof state.context_summary === 'string') lines.push(`Context: ${state.context_summary}`);
  if (typeof state.next_steps === 'string') lines.push(`Your task: ${state.next_steps}`);
  return lines.join('\n');
}

function userText(text: string): StoredMessage {
  return { role: 'user', content: [{ type: 'text', text }] };
}
