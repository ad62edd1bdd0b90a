import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { callText, isObject, isoTime, mergedText } from '@tapedeck/tape/internal';
import { isBlobRef, isTextRef } from '@tapedeck/tape/store';
import { eventText } from './event.ts';

/** An entry as `--json` and `--jsonl` print it; part of the documented contract. */
export function entryJson(entry: Entry): Readonly<Record<string, unknown>> {
  const { session, tape, seq, kind, mark, name, ref, payload, meta, at, sourceAt, key, hash } = entry;
  const { adopted, absent } = entry;
  return {
    session,
    tape,
    seq,
    kind,
    ...(mark !== undefined && { mark }),
    ...(name !== undefined && { name }),
    ...(ref !== undefined && { ref }),
    payload,
    meta,
    at: isoTime(at),
    ...(sourceAt !== undefined && { source_at: isoTime(sourceAt) }),
    ...(key !== undefined && { key }),
    hash,
    ...(adopted && { adopted }),
    ...(absent && { absent }),
  };
}

/** The kind of an entry as people read it: of a message its role. */
export function labelOf({ kind, mark, payload, meta }: Entry): string {
  if (kind === 'message' && meta.source === 'merge') return 'merge';
  if (kind === 'message' && isObject(payload)) return String(payload.role);
  if (mark === 'boundary' && kind === 'anchor') return 'handoff';
  return kind;
}

/** The colour of the label of an entry. */
export function colorOf(entry: Entry): 'cyan' | 'green' | 'magenta' | 'gray' {
  if (entry.mark !== undefined) return 'cyan';
  if (entry.kind !== 'message') return 'gray';
  return labelOf(entry) === 'user' ? 'green' : 'magenta';
}

/** The content of an entry as one text; of a merge what the child reports, without the words around it. */
export function briefText(entry: Entry): string {
  const text = entryText(entry);
  return entry.kind === 'message' && entry.meta.source === 'merge' ? (mergedText(text) ?? text) : text;
}

/** What stands for content that is gone, or that a bundle did not bring. */
export function absentText({ absent }: Pick<Entry, 'absent'>): string {
  return absent === true ? '(not here)' : '(redacted)';
}

/** The content of an entry as one text. */
export function entryText(entry: Entry): string {
  const { kind, name, payload } = entry;
  if (payload === null) return absentText(entry);
  switch (kind) {
    case 'message':
      return isObject(payload) && Array.isArray(payload.content)
        ? payload.content.map(partText).join(' ')
        : '';
    case 'tool-result':
      return isObject(payload) ? `${String(payload.toolName)} → ${outputText(payload.output)}` : '';
    case 'anchor':
    case 'compaction':
      return anchorText(name ?? '', payload);
    case 'rewind':
      return `to @${entry.ref}`;
    default:
      return eventText(name ?? '', payload);
  }
}

function anchorText(name: string, payload: Json): string {
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  if (name.startsWith('merge/') && Array.isArray(state.range))
    return `⚓ ${name} ${state.range.join('-')} ${String(state.strategy)}, ${String(state.status)}`;
  if (name === 'fork/start' && isObject(payload)) return `⚓ ${name} ${startText(payload)}`;
  if (name === 'intention') return `⚓ ${name} ${intentionText(state)}`;
  return Object.keys(state).length === 0 ? `⚓ ${name}` : `⚓ ${name} ${JSON.stringify(state)}`;
}

/** What a child was asked to do. */
export function intentionText({ next_steps, context_summary }: JsonObject): string {
  return [next_steps, context_summary].filter((text) => typeof text === 'string').join('\n');
}

/** Where a child begins. */
export function startText({ parent_name, range, from_anchor }: JsonObject): string {
  const what = Array.isArray(range) ? `inherits ${range.join('-')}` : 'inherits nothing';
  const since = typeof from_anchor === 'string' ? `, from ${from_anchor}` : '';
  return `from ${String(parent_name)}, ${what}${since}`;
}

export function partText(part: unknown): string {
  if (!isObject(part)) return '';
  switch (part.type) {
    case 'text':
      return String(part.text ?? '');
    case 'reasoning':
      return `(reasoning: ${String(part.text ?? '')})`;
    case 'tool-call':
      return callText(part);
    case 'tool-result':
      return `${String(part.toolName)} → ${outputText(part.output)}`;
    default:
      return isBlobRef(part.data)
        ? `[${String(part.type)}, ${part.data.size} bytes]`
        : `[${String(part.type)}]`;
  }
}

function outputText(output: unknown): string {
  if (!isObject(output)) return JSON.stringify(output ?? null);
  const value = output.value ?? output.reason ?? null;
  if (isTextRef(value)) return `${value.preview}… (${value.size} bytes in total)`;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
