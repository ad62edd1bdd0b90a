import {
  assistant,
  type Draft,
  handoff,
  type Json,
  type JsonObject,
  type Meta,
  note,
  type Part,
  toolResult,
  user,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { entryBytesMax } from '@tapedeck/tape/store';
import { keyPart } from '../../plan/key-part.ts';
import { interrupted } from '../../plan/output.ts';
import { text } from '../../plan/text.ts';
import { blockOf, type RecordedResult } from './answers.ts';
import { isQueued } from './attachments.ts';
import { wordsOf } from './blocks.ts';
import { commandRecordOf } from './commands.ts';
import type { Call, Message, MessageUsage } from './message.ts';
import { outputOf, savedAs } from './outputs.ts';
import type { CodeRecord } from './records.ts';
import type { RecordTurn } from './turns.ts';

/** An assistant message. */
export function messageDraft(record: CodeRecord, { parts }: Message, usage?: MessageUsage): Draft {
  const { raw } = record;
  const { id, model } = isObject(raw.message) ? raw.message : {};
  const meta = origin(record, {
    provider: 'anthropic',
    model: text(model),
    usage: usage && { ...usage },
    requestId: text(raw.requestId),
    response: text(id),
  });
  return { ...assistant(parts, meta), key: record.key };
}

/**
 * A user message. Skills, commands and attachments also write texts that the user did not type (`isMeta`), and commands of
 * Claude Code itself are written as prompts (`localCommand`). The model received them, so they are messages as well,
 * with the fact in their meta; `attachment` says what was attached.
 */
export function userDraft(record: CodeRecord, parts: readonly Part[]): Draft {
  const { raw } = record;
  const attachment = isObject(raw.attachment) ? text(raw.attachment.type) : undefined;
  const isTyped = raw.isMeta !== true && (attachment === undefined || isQueued(raw));
  const localCommand = commandRecordOf(wordsOf(raw));
  const more = { isMeta: isTyped ? undefined : true, localCommand, attachment };
  return { ...user(parts, origin(record, more)), key: record.key };
}

/** The result of a call. Its meta names the subagent that produced it, and the file of a whole output, if any. */
export function resultDraft(call: Call, answer: RecordedResult): Draft {
  const { record } = answer;
  const block = blockOf(answer);
  const details = record.raw.toolUseResult;
  const output = outputOf(block);
  const meta = origin(record, {
    agentId: isObject(details) ? text(details.agentId) : undefined,
    // The content type of an output with files cannot express an error.
    isError: block.is_error === true && output.type === 'content' ? true : undefined,
    savedAs: savedAs(output),
  });
  return { ...toolResult(call, output, meta), key: resultKey(call, answer) };
}

/** The key of the result of a call. */
export function resultKey({ toolCallId }: Call, { record }: RecordedResult): string {
  return `${record.key}:${keyPart(toolCallId)}`;
}

/**
 * The result of a call for which the file has none. No run of this home was cut off there, so its source is not
 * `repair`: after that, a run would be open.
 */
export function repairDraft(call: Call): Draft {
  const key = `${call.record.key}:${keyPart(call.toolCallId)}:interrupted`;
  return { ...toolResult(call, interrupted, { source: 'import', repaired: true }), key };
}

/** The boundary of the nth compaction, with its summary. Its meta has what the tool notes of it, and showed no model. */
export function boundaryDraft({ record, summary }: RecordTurn, n: number): Draft {
  const state = record.mark?.state ?? known({ summary: summary && wordsOf(summary.raw) });
  const meta = origin(record, record.mark?.state === undefined ? detailsOf(record) : {});
  return { ...handoff(`compact/${n}`, state), meta, key: record.key };
}

/** What started a compaction, and how large the view was before it, in the names that a tape has for it. */
function detailsOf({ raw: { compactMetadata } }: CodeRecord) {
  const { trigger, preTokens } = isObject(compactMetadata) ? compactMetadata : {};
  return { trigger: text(trigger), tokens_before: typeof preTokens === 'number' ? preTokens : undefined };
}

/** A failed provider call, which Claude Code writes as a message. */
export function errorDraft(record: CodeRecord): Draft {
  const payload = known({ text: wordsOf(record.raw), error: record.raw.error });
  return { ...note('api-error', payload, origin(record)), key: record.key };
}

/** The kind of records that views skip. */
export const asideKind = 'x-claude-code';

/** A record as it is, which views skip. */
export function recordDraft(key: string, payload: JsonObject): Draft {
  return { kind: asideKind, payload, meta: { source: 'import' }, key };
}

/** A record that views skip, verbatim; of one that is too large for an entry only its type, uuid and size. */
export function asideDraft(record: CodeRecord, key: string = record.key): Draft {
  const { type, bytes, raw } = record;
  if (bytes <= entryBytesMax) return recordDraft(key, raw);
  const payload = known({ type, uuid: raw.uuid });
  return { kind: asideKind, payload, meta: { source: 'import', omittedBytes: bytes }, key };
}

/**
 * The origin of an entry: where the tool worked, on which branch, and its version. Times are the file's; the entry's own time
 * is that of the import.
 */
function origin(
  { raw, uuid, mark, around = {} }: CodeRecord,
  more: { readonly [field: string]: Json | undefined } = {},
): Meta {
  const said = (name: string) => text(raw[name]) ?? text(around[name]);
  const [cwd, branch, version] = [said('cwd'), said('gitBranch'), said('version')];
  const git = branch === undefined ? undefined : { branch };
  const place = mark?.place ?? known({ cwd, git });
  const isKnown = Object.keys(place).length > 0;
  return known({
    source: 'import',
    ...more,
    uuid,
    place: isKnown ? place : undefined,
    version,
    timestamp: text(raw.timestamp),
  });
}

function known(fields: { readonly [field: string]: Json | undefined }): JsonObject & { summary?: string } {
  const given: Record<string, Json> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) given[name] = value;
  }
  return given;
}
