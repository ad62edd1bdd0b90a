import {
  type ConversationPlan,
  type ImportPlan,
  parseJsonLines,
  planClaudeCode,
  type TranscriptCounts,
} from '@tapedeck/runtime/import';
import type { Draft, JsonObject } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { normalise } from '@tapedeck/tape/store';
import { expect } from 'vitest';

type Block = JsonObject;
interface Link {
  readonly uuid: string;
  readonly parent?: string | null;
}
type More = { readonly [field: string]: unknown };

/** Records of a Claude Code transcript, as small as the importer needs them. */
export const person = ({ uuid, parent = null }: Link, content: string | Block[], more: More = {}): More => ({
  type: 'user',
  uuid,
  parentUuid: parent,
  sessionId: 's-1',
  timestamp: '2026-03-12T09:00:00.000Z',
  message: { role: 'user', content },
  ...more,
});

/** One record of the model's message `id`. */
export const model = (
  { uuid, parent = null, id = `msg_${uuid}` }: Link & { id?: string },
  content: Block[],
  { usage, ...more }: More = {},
): More => ({
  type: 'assistant',
  uuid,
  parentUuid: parent,
  sessionId: 's-1',
  requestId: `req_${id}`,
  timestamp: '2026-03-12T09:00:01.000Z',
  message: { id, role: 'assistant', model: 'claude-x', content, ...(usage !== undefined && { usage }) },
  ...more,
});

export const says = (text: string): Block => ({ type: 'text', text });
export const calls = (id: string, name = 'Read', input: JsonObject = {}): Block => ({
  type: 'tool_use',
  id,
  name,
  input,
});
export const returns = (id: string, content: unknown = 'ok', more: More = {}): Block =>
  ({ type: 'tool_result', tool_use_id: id, content, ...more }) as Block;

/** The text of a transcript file. */
export const jsonl = (records: readonly unknown[]): string =>
  records.map((r) => `${JSON.stringify(r)}\n`).join('');

/** The main conversation of a transcript. */
export interface Imported {
  readonly session: string;
  readonly title?: string;
  /** What the tape gets, in order; without the whole records of which an entry of the conversation has a part. */
  readonly drafts: readonly Draft[];
  readonly counts: TranscriptCounts;
  readonly plan: ImportPlan;
}

/** Plans the import of a file's text, as bytes in one chunk. */
export function imported(text: string | Uint8Array): Imported {
  const { records } = parseJsonLines([typeof text === 'string' ? Buffer.from(text) : text]);
  const plan = planClaudeCode({ name: 's-1', lines: records });
  const [main] = plan.conversations;
  const counts = main && plan.counts.get(main.file);
  if (main === undefined || counts === undefined) throw new TypeError('nothing was planned');
  const { title } = main;
  return { session: plan.session, ...(title !== undefined && { title }), drafts: tapeOf(main), counts, plan };
}

/** The drafts of a conversation as its tape gets them. */
export function tapeOf({ spine, asides }: ConversationPlan): readonly Draft[] {
  const own = asides.filter(({ draft }) => !draft.key?.endsWith(':whole'));
  return [...spine, undefined].flatMap((draft, i) => [
    ...own.flatMap((one) => (one.after === i ? [one.draft] : [])),
    ...(draft === undefined ? [] : [draft]),
  ]);
}

/** Drafts as short texts: `user: hi`, `assistant: [read]`, `read → ok`, `# compact/1`, `x-claude-code summary`. */
export const outline = (drafts: readonly Draft[]): string[] => drafts.map(line);

function line({ kind, name, mark, payload }: Draft): string {
  if (!isObject(payload)) throw new Error(`a draft of kind ${kind} has no object as payload`);
  const { role, content, output, toolCallId } = payload;
  if (kind === 'message' && Array.isArray(content)) return `${role}: ${content.map(word).join(' ')}`;
  if (kind === 'tool-result' && isObject(output)) return `${toolCallId} → ${word(output)}`;
  if (mark === 'boundary' && isObject(payload.state)) return `# ${name} ${payload.state.summary ?? '-'}`;
  if (kind === 'event') return `! ${name} ${payload.text}`;
  return `${kind} ${payload.uuid ?? payload.type}`;
}

function word(part: unknown): string {
  if (!isObject(part)) return '?';
  if (part.type === 'tool-call') return `[${part.toolCallId}]`;
  if (typeof part.text === 'string') return part.text;
  return typeof part.value === 'string' ? part.value : `<${part.type}>`;
}

/**
 * What is wrong with a history, in words; nothing when each draft can be appended, keys are unique, and each call
 * that is not the provider's has exactly one result, right behind its message.
 */
export function faults(drafts: readonly Draft[]): string[] {
  const found: string[] = [];
  const keys = new Set<string | undefined>();
  let open = new Set<unknown>();
  for (const draft of drafts) {
    const payload = normalise(draft)[0]?.payload;
    if (draft.key === undefined || keys.has(draft.key))
      found.push(`key ${draft.key} is missing or used twice`);
    keys.add(draft.key);
    if (draft.kind === 'tool-result') {
      const id = isObject(payload) ? payload.toolCallId : undefined;
      if (!open.delete(id)) found.push(`${id}: a result that answers no call before it`);
      continue;
    }
    if (open.size > 0) found.push(`${[...open].join()}: no result right behind its message`);
    open = new Set(callsIn(payload));
  }
  if (open.size > 0) found.push(`${[...open].join()}: no result at the end`);
  return found;
}

function callsIn(payload: unknown): unknown[] {
  const content = isObject(payload) && payload.role === 'assistant' ? payload.content : [];
  return (Array.isArray(content) ? content : [])
    .filter((part) => isObject(part) && part.type === 'tool-call' && part.providerExecuted !== true)
    .map((part) => (isObject(part) ? part.toolCallId : undefined));
}

/** Imports records, and asserts that what comes of them is a valid history. */
export function read(records: readonly unknown[]): Imported & { readonly lines: string[] } {
  const transcript = imported(jsonl(records));
  expect(faults(transcript.drafts)).toEqual([]);
  return { ...transcript, lines: outline(transcript.drafts) };
}
