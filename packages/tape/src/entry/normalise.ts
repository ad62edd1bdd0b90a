import { TapeError } from '../errors.ts';
import { type Draft, type Part, typedOutput } from './entry.ts';
import { isObject } from './json.ts';
import { parseAnchorName } from './name.ts';

const appendable = new Set(['message', 'tool-result', 'event', 'ui']);

/**
 * Returns the drafts that `append` stores for one: string content becomes a text part, a `tool` message one
 * entry per result, and a `system` message an event, because the content of a tape never instructs a model.
 * @throws TAPE_BAD_ENTRY for a kind that only another method writes, or a payload that no view can render
 */
export function normalise(draft: Draft): Draft[] {
  const { kind, payload } = draft;
  if (kind === 'compaction') {
    if (
      draft.mark !== 'boundary' ||
      draft.name !== 'compaction' ||
      !isObject(payload) ||
      !isObject(payload.state)
    )
      throw bad('a compaction draft must come from compaction()');
    if (typeof payload.state.summary !== 'string') throw bad("a compaction's summary must be a string");
    return [draft];
  }
  if (kind === 'anchor') {
    if (draft.mark !== 'anchor' && draft.mark !== 'boundary')
      throw bad('an anchor draft must come from anchor() or handoff()');
    if (!isObject(payload) || !isObject(payload.state)) throw bad("an anchor's state must be a JSON object");
    if (typeof payload.state.summary !== 'undefined' && typeof payload.state.summary !== 'string')
      throw bad("an anchor's summary must be a string");
    parseAnchorName(draft.name ?? '');
    return [draft];
  }
  if (kind === 'rewind') {
    if (draft.mark !== 'rewind' || draft.ref === undefined || !isObject(payload) || payload.to !== draft.ref)
      throw bad('a rewind is an act of its own, or an entry of a log');
    return [draft];
  }
  if (draft.mark !== undefined || draft.ref !== undefined)
    throw bad(`an entry of kind ${kind} cannot have a mark or a ref`);
  if (kind === 'message') return normaliseMessage(draft);
  if (kind === 'tool-result') return [{ ...draft, payload: parseToolResult(payload) }];
  if (kind === 'result') {
    if (draft.name !== undefined || !isObject(payload) || payload.value === undefined)
      throw bad('a result draft must come from result()');
    return [draft];
  }
  if (appendable.has(kind) || /^x-[a-z0-9][a-z0-9-]*$/.test(kind)) return [draft];
  throw bad(`an entry of kind ${JSON.stringify(kind)} cannot be appended`);
}

function normaliseMessage(draft: Draft): Draft[] {
  const { payload } = draft;
  if (!isObject(payload)) throw bad('a message must be an object with role and content');
  const { role } = payload;
  const content =
    typeof payload.content === 'string' ? [{ type: 'text', text: payload.content }] : payload.content;
  if (!Array.isArray(content)) throw bad("a message's content must be a string or an array of parts");
  const parts = content.map(parsePart);
  switch (role) {
    case 'user':
    case 'assistant':
      return [{ ...draft, payload: { ...payload, content: parts } }];
    case 'system':
      return [{ ...draft, kind: 'event', name: 'system', payload: { content: parts } }];
    case 'tool':
      if (parts.length === 0) throw bad('a tool message must have a result');
      return parts.map((part, i) => ({
        kind: 'tool-result',
        payload: parseToolResult(part),
        meta: draft.meta,
        ...(draft.key !== undefined && { key: i === 0 ? draft.key : `${draft.key}#${i + 1}` }),
      }));
    default:
      throw bad(`a message's role must be user, assistant, tool or system, not ${JSON.stringify(role)}`);
  }
}

function parsePart(part: unknown): Part {
  if (!isObject(part) || typeof part.type !== 'string') throw bad('a part must be an object with a type');
  if ((part.type === 'text' || part.type === 'reasoning') && typeof part.text !== 'string')
    throw bad(`a ${part.type} part must have text`);
  if (part.type === 'tool-call') assertCallIds(part);
  if (part.type === 'tool-call' && part.input === undefined) return { ...part, type: 'tool-call', input: {} };
  return part as unknown as Part;
}

function parseToolResult(payload: unknown): Part {
  if (!isObject(payload)) throw bad('a tool result must be an object');
  assertCallIds(payload);
  if (payload.output === undefined) throw bad('a tool result must have an output');
  return { ...payload, type: 'tool-result', output: typedOutput(payload.output) };
}

function assertCallIds(part: Record<string, unknown>): void {
  for (const field of ['toolCallId', 'toolName'])
    if (typeof part[field] !== 'string' || part[field] === '')
      throw bad(`a ${String(part.type ?? 'tool-result')} must have a ${field}`);
}

function bad(why: string): TapeError {
  return new TapeError('TAPE_BAD_ENTRY', `cannot append: ${why}`);
}
