import { basename, dirname } from 'node:path';
import { assistant, handoff, type Json, type JsonObject, type Part, toolCall, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import type { JsonLines } from '../lines/json-lines.ts';
import type { RecordForm } from '../plan/irregular.ts';
import { asText, text } from '../plan/text.ts';
import { noCounts, type Transcript } from '../plan/transcript.ts';
import { Dialogue } from './dialogue.ts';

/** Whether a JSON object is a record of a `session.jsonl`. */
export function isSessionRecord({ recordType, schemaVersion }: JsonObject): boolean {
  return typeof schemaVersion === 'number' && (recordType === 'message' || recordType === 'compaction');
}

/** Its records, among those of others. */
export const sessionJsonl: RecordForm = {
  name: 'session-jsonl',
  file: 'a session.jsonl',
  hasRecord: isSessionRecord,
};

/**
 * Reads the records of a `session.jsonl` as one session, which is named after its directory. Records of other kinds become
 * `x-session-jsonl` entries. The key of a record depends on all before it, so that a file that has grown adds what is new.
 * Pure.
 */
export function readSessionJsonl(lines: JsonLines, { file }: { readonly file: string }): Transcript {
  const dialogue = new Dialogue();
  const { drafts } = dialogue;
  const keeps = new Map<string, string>();
  /** The keys of messages, by their numbers. */
  const numbered: { readonly seq: number; readonly key: string }[] = [];
  let [chain, compactions, aside] = ['', 0, 0];
  for (const { value } of lines.records) {
    chain = sha256(`${chain}\n${JSON.stringify(value)}`);
    const key = `sj:${chain}`;
    const timestamp = text(value.timestamp);
    const meta = { source: 'import', ...(timestamp !== undefined && { timestamp }) };
    const { recordType, role, seq, toolCallId } = value;
    if (recordType === 'message' && typeof seq === 'number') numbered.push({ seq, key });
    const output = {
      type: value.isError === true ? 'error-text' : 'text',
      value: textParts(value)
        .map((part) => part.text)
        .join('\n\n'),
    } as const;
    if (role === 'toolResult' && dialogue.answer(asText(toolCallId), output, { key, meta })) continue;
    if (recordType === 'compaction') {
      compactions += 1;
      const kept = numbered.find((one) => one.seq >= Number(asText(value.firstKeptSeq)));
      if (kept !== undefined) keeps.set(key, kept.key);
      dialogue.say({
        ...handoff(`compact/${compactions}`, { summary: asText(value.summary) }),
        meta: { ...meta, ...factsOf(value) },
        key,
      });
    } else if (recordType === 'message' && role === 'user')
      dialogue.say({ ...user(textParts(value), meta), key });
    else if (recordType === 'message' && role === 'assistant') {
      const parts = blocksOf(value).flatMap((block) => {
        if (block.type === 'text') return [{ type: 'text', text: asText(block.text) }];
        return block.type === 'toolCall'
          ? [toolCall(asText(block.id), asText(block.name), block.arguments ?? {})]
          : [];
      });
      const calls = parts.flatMap((part, i) =>
        'toolCallId' in part
          ? [{ toolCallId: String(part.toolCallId), toolName: String(part.toolName), key: `${key}:${i}` }]
          : [],
      );
      dialogue.say({ ...assistant(parts, meta), key }, calls);
    } else {
      drafts.push({ kind: 'x-session-jsonl', payload: value, meta, key });
      aside += 1;
    }
  }
  dialogue.end();
  return {
    session: basename(dirname(file)),
    drafts,
    keeps,
    counts: {
      ...noCounts,
      records: lines.records.length,
      messages: drafts.filter(({ kind }) => kind === 'message').length,
      offPath: aside,
      repaired: dialogue.repaired,
      compactions,
    },
  };
}

function blocksOf({ content }: JsonObject): readonly JsonObject[] {
  return Array.isArray(content) ? content.filter(isObject) : [];
}

function textParts(value: JsonObject): readonly Part[] {
  return blocksOf(value).flatMap(({ type, text }) => (type === 'text' ? [{ type, text: asText(text) }] : []));
}

/** What a compaction says beside its summary, in the names that a tape has for it. */
function factsOf({ readFiles = [], modifiedFiles = [], tokensBefore = 0 }: JsonObject): {
  readonly [name: string]: Json;
} {
  return { read_files: readFiles, modified_files: modifiedFiles, tokens_before: tokensBefore };
}
