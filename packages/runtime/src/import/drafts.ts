import {
  assistant,
  type Draft,
  entryBytesMax,
  handoff,
  isObject,
  type Json,
  type JsonObject,
  type Meta,
  note,
  type Part,
  toolResult,
  user,
} from '@tapedeck/tape';
import type { Answer } from './answers.ts';
import { wordsOf } from './blocks.ts';
import type { Call, Message, MessageUsage } from './message.ts';
import { interrupted, outputOf } from './outputs.ts';
import { type CodeRecord, text } from './records.ts';
import type { RecordTurn } from './turns.ts';

/** The model's message. */
export function messageDraft(record: CodeRecord, { parts }: Message, usage?: MessageUsage): Draft {
  const { raw } = record;
  const model = isObject(raw.message) ? text(raw.message.model) : undefined;
  const meta = origin(record, {
    provider: 'anthropic',
    model,
    usage: usage && { ...usage },
    requestId: text(raw.requestId),
  });
  return { ...assistant(parts, meta), key: record.key };
}

/**
 * What was said in a person's place. Skills and commands put texts there that no person typed (`isMeta`): the
 * model was given them and worked by them, so they are messages too, and their meta says what they are.
 */
export function userDraft(record: CodeRecord, parts: readonly Part[]): Draft {
  const isMeta = record.raw.isMeta === true ? true : undefined;
  return { ...user(parts, origin(record, { isMeta })), key: record.key };
}

/** The result of a call. Its meta names the subagent that worked for it, when there was one. */
export function resultDraft(call: Call, { record, block }: Answer): Draft {
  const details = record.raw.toolUseResult;
  const output = outputOf(block);
  const meta = origin(record, {
    agentId: isObject(details) ? text(details.agentId) : undefined,
    // An output with files has no form that says it is an error.
    isError: block.is_error === true && output.type === 'content' ? true : undefined,
  });
  return { ...toolResult(call, output, meta), key: `${record.key}:${call.toolCallId}` };
}

/** The result of a call that the file has none for. */
export function repairDraft(call: Call): Draft {
  const key = `${call.record.key}:${call.toolCallId}:interrupted`;
  return { ...toolResult(call, interrupted, { source: 'repair' }), key };
}

/** The boundary of the nth compaction, with the summary that stands for what came before. */
export function boundaryDraft({ record, summary }: RecordTurn, n: number): Draft {
  const details = isObject(record.raw.compactMetadata) ? record.raw.compactMetadata : {};
  const state = known({
    summary: summary && wordsOf(summary.raw),
    trigger: text(details.trigger),
    pre_tokens: typeof details.preTokens === 'number' ? details.preTokens : undefined,
  });
  return { ...handoff(`compact/${n}`, state), meta: origin(record), key: record.key };
}

/** A failed call of the provider, which Claude Code writes in the place of a message. */
export function errorDraft(record: CodeRecord): Draft {
  const payload = known({ text: wordsOf(record.raw), error: record.raw.error });
  return { ...note('api-error', payload, origin(record)), key: record.key };
}

/** A record that views skip, as it is. Of one too large for an entry only its name and size are kept. */
export function asideDraft(record: CodeRecord, key: string = record.key): Draft {
  const { type, bytes, raw } = record;
  if (bytes <= entryBytesMax) return { kind: 'x-claude-code', payload: raw, meta: { source: 'import' }, key };
  const payload = known({ type, uuid: raw.uuid });
  return { kind: 'x-claude-code', payload, meta: { source: 'import', omittedBytes: bytes }, key };
}

/** Where an entry comes from. Times are the file's: an entry's own is when it was imported. */
function origin({ raw }: CodeRecord, more: { readonly [field: string]: Json | undefined } = {}): Meta {
  return known({ source: 'import', ...more, uuid: text(raw.uuid), timestamp: text(raw.timestamp) });
}

function known(fields: { readonly [field: string]: Json | undefined }): JsonObject & { summary?: string } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject;
}
