import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { Draft, Entry, Json, Part, Seq } from '@tapedeck/tape';
import {
  continueText,
  type Dialect,
  dialectOf,
  fitAssistantPart,
  fitResult,
  fitUserPart,
  isClientCall,
  isObject,
  legalCallId,
  legalToolName,
  noAnswer,
  noResult,
  noStart,
  renderEntry,
  renderState,
  type Selection,
  storedPayloads,
} from '@tapedeck/tape/internal';
import { isBlobRef, sha256 } from '@tapedeck/tape/store';

/** A part of a history that an application sent. */
export interface Sent {
  /** Index of its message in the prompt. */
  readonly message: number;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly part: Part;
  readonly providerOptions: Part['providerOptions'];
  /** What is compared; undefined for a part that is not. */
  readonly key: string | undefined;
  /** Whether views put it there to make a history valid. */
  readonly isFiller: boolean;
}

/** An entry that the tape shows to a model. */
export interface Told {
  readonly seq: Seq;
  /** For each part that is compared, the keys of the forms in which a history can have it. */
  readonly keys: readonly (readonly string[])[];
  readonly kind: 'user' | 'assistant' | 'result';
  /** Its beginning, for people. */
  readonly text: string;
  /** The client-side calls that it makes. */
  readonly calls: readonly { readonly toolCallId: string; readonly toolName: string }[];
  /** The call that it answers. */
  readonly answers: string | undefined;
  /** A history may lack it: it is of the session, and no part of the conversation. */
  readonly isOptional: boolean;
  /** An answer that its application never had whole. */
  readonly isPartial: boolean;
  /** The provider and the model that made it. */
  readonly maker: { readonly provider?: string; readonly model?: string };
}

/** The parts of a history, in order, without system messages and answers to requests for approval. */
export function sentIn(prompt: LanguageModelV4Prompt): readonly Sent[] {
  return prompt.flatMap(({ role, content, providerOptions }, message): Sent[] => {
    if (role === 'system') return [];
    const parts = (content as unknown as readonly Part[]).filter(
      ({ type }) => type !== 'tool-approval-response',
    );
    if (parts.length === 0) return [];
    const stored = storedParts({ kind: 'message', payload: { role, content: parts } });
    return parts.map((part, i) => {
      const key = keyOf(role, stored[i] ?? part);
      return { message, role, part, providerOptions, key, isFiller: key !== undefined && fillers.has(key) };
    });
  });
}

/** The parts of a message, or of all results of one, as they would be stored. */
function storedParts(draft: Draft): readonly Part[] {
  const payloads = storedPayloads(draft);
  return payloads.flatMap((payload) =>
    isObject(payload) && Array.isArray(payload.content) ? payload.content : [payload],
  ) as unknown as readonly Part[];
}

/**
 * The entries that a selection shows, in order. A history can have their parts in the forms that a view gives them for
 * the provider of the model, or for none.
 */
export function toldIn({ start, entries, pruned }: Selection, provider: string): readonly Told[] {
  const dialects = [dialectOf({ provider }), dialectOf({})];
  const state = renderState(start);
  const begins =
    state === undefined || start === undefined
      ? []
      : [toldBy(start, { role: 'user', content: state.content }, dialects)];
  const told = entries.flatMap((entry): Told[] => {
    const { kind, payload, meta } = entry;
    if (meta.context === false || !isObject(payload)) return [];
    if (kind === 'tool-result') return [resultBy(entry, pruned.get(entry.seq), dialects)];
    const message = kind === 'message' ? payload : messageIn(entry);
    return message === undefined ? [] : [toldBy(entry, message as never, dialects)];
  });
  return [...begins.map((one) => ({ ...one, isOptional: true })), ...told];
}

/** The message that an entry of another kind is shown as. */
function messageIn(entry: Entry): object | undefined {
  const rendered = renderEntry(entry);
  return rendered?.type === 'message' ? rendered.message : undefined;
}

function toldBy(
  { seq, kind, meta }: Entry,
  message: { readonly role: string; readonly content: readonly Part[] },
  dialects: readonly Dialect[],
): Told {
  const role = message.role === 'assistant' ? 'assistant' : 'user';
  const content = message.content.filter(isObject) as unknown as readonly Part[];
  return {
    seq,
    kind: role,
    keys: content.flatMap((part) => {
      if (keyOf(role, part) === undefined) return [];
      const shown =
        part.type === 'text' ? [] : dialects.flatMap((dialect) => fitted(role, part, dialect) ?? []);
      return [[part, ...shown].flatMap((form) => keyOf(role, form) ?? [])];
    }),
    text: beginningOf(content),
    calls: role === 'assistant' ? callsIn(content) : [],
    answers: undefined,
    isOptional: kind !== 'message',
    isPartial: role === 'assistant' && meta.partial === true,
    maker: {
      ...(typeof meta.provider === 'string' && { provider: meta.provider }),
      ...(typeof meta.model === 'string' && role === 'assistant' && { model: meta.model }),
    },
  };
}

/** The form in which a view for a dialect gives a part that another provider made, or a user; undefined if in none. */
function fitted(role: string, part: Part, dialect: Dialect): Part | undefined {
  if (role === 'user') return fitUserPart(part, dialect);
  return isClientCall(part) ? undefined : fitAssistantPart(part, { dialect, own: false, paired: false });
}

function resultBy(entry: Entry, pruned: number | undefined, dialects: readonly Dialect[]): Told {
  const { seq, payload, meta } = entry;
  const part = payload as unknown as Part;
  const call = { id: String(part.toolCallId), name: String(part.toolName) };
  const rendered = renderEntry(entry, pruned);
  const shown =
    rendered?.type === 'result' ? dialects.map((dialect) => fitResult(rendered.part, call, dialect)) : [];
  // A history that was read from the tape before the call was closed.
  const lacking =
    meta.source === 'repair' ? [{ ...part, output: { type: 'error-text', value: noResult } }] : [];
  return {
    seq,
    kind: 'result',
    keys: [[part, ...shown, ...lacking].flatMap((form) => keyOf('tool', form) ?? [])],
    text: beginningOf([part]),
    calls: [],
    answers: call.id,
    isOptional: false,
    isPartial: false,
    maker: {},
  };
}

/** The client-side calls of an answer. Pure. */
export function callsIn(content: readonly Part[]): Told['calls'] {
  return content
    .filter(isClientCall)
    .map(({ toolCallId, toolName }) => ({ toolCallId: String(toolCallId), toolName: String(toolName) }));
}

/** What is compared of a part in its stored form; undefined for one that a history need not have. Pure. */
function keyOf(role: string, part: Part): string | undefined {
  const { type, text, toolCallId, toolName } = part;
  switch (type) {
    case 'text':
      return String(text).trim() === '' ? undefined : keyText([role, String(text).toWellFormed()]);
    case 'tool-call':
      // The arguments are not compared: a schema of the application can change them.
      return keyText(['call', legalCallId(String(toolCallId)), legalToolName(String(toolName))]);
    case 'tool-result':
      return keyText(['result', legalCallId(String(toolCallId)), plain(part.output)]);
    case 'file':
    case 'image':
      return keyText([role, 'file', plain(part.data ?? part.image)]);
    default:
      return undefined;
  }
}

function keyText(facts: readonly unknown[]): string {
  const text = JSON.stringify(facts);
  return text.length > 200 ? sha256(text) : text;
}

/** A value in one form, however the AI SDK or a tape wraps it: without options of providers, and bytes as their hash. */
function plain(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (isBlobRef(value)) return value.hash;
  if (Array.isArray(value)) return value.map(plain);
  const { type, data, url } = value as { type?: unknown; data?: unknown; url?: unknown };
  if (type === 'data' && data !== undefined) return plain(data);
  if (type === 'url' && typeof url === 'string') return url;
  const fields = Object.entries(value).filter(
    ([name, field]) => name !== 'providerOptions' && field !== undefined,
  );
  return Object.fromEntries(
    fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => [name, plain(field)]),
  );
}

const fillers: ReadonlySet<string> = new Set(
  [
    ['user', continueText],
    ['user', noStart],
    ['assistant', noAnswer],
  ].map(keyText),
);

const beginningMax = 200;

/** The beginning of what parts say, for people. Pure. */
export function beginningOf(parts: readonly Part[]): string {
  const texts = parts.map(({ type, text, toolName, output }) => {
    if (typeof text === 'string') return text;
    if (type === 'tool-call') return `[${String(toolName)}]`;
    return type === 'tool-result' ? `[${String(toolName)} → ${valueText(output)}]` : `[${type}]`;
  });
  return texts.join(' ').slice(0, beginningMax).toWellFormed();
}

function valueText(output: unknown): string {
  const value = isObject(output) ? ((output.value ?? output.reason ?? null) as Json) : output;
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}
