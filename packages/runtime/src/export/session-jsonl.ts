import type { Entry, JsonObject, Part } from '@tapedeck/tape';
import { clientCalls, isObject, isoTime, renderEntry, renderState } from '@tapedeck/tape/internal';
import { type ExportSource, shownEntries } from './contexts.ts';
import { fileText, isFailed, outputText } from './output-text.ts';

/** What `metadata.json` has beside the records of a session. */
export interface SessionMetadata {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
  readonly lastMessageAt: string;
  readonly model: string;
  readonly messageCount: number;
  /** `cron` where the source of its first message names a job, as `cron:nightly` does. */
  readonly source: 'interactive' | 'cron';
  /** The name of that job. */
  readonly cronJobId?: string;
  /** The instructions that it was given for itself. */
  readonly systemPromptOverride?: string;
}

/** Content of a record: a text, or a call of a tool. */
type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'toolCall'; readonly id: string; readonly name: string; readonly arguments: JsonObject };

/**
 * Writes `session.jsonl`: a record for each message, result and boundary, with its position on the tape as `seq`. Records
 * are never changed, so that the file of a session that has grown begins with the one before.
 */
export async function* writeSessionJsonl(source: ExportSource): AsyncGenerator<string, SessionMetadata> {
  const { session, id, createdAt } = source.info;
  const calls = new Set<string>();
  let [count, last, model] = [0, createdAt, ''];
  let trigger: Pick<SessionMetadata, 'source' | 'cronJobId'> | undefined;
  let instructions: string | undefined;
  for await (const entry of shownEntries(source)) {
    instructions = instructionsIn(entry) ?? instructions;
    for (const call of clientCalls(entry.payload)) calls.add(call);
    const fields = entry.mark === 'boundary' ? compactionOf(entry) : messageOf(entry, calls);
    if (fields === undefined) continue;
    const at = entry.sourceAt ?? entry.at;
    const { recordType, ...rest } = fields;
    const record = { recordType, schemaVersion: 1, seq: entry.seq, ...rest, timestamp: isoTime(at) };
    yield `${JSON.stringify(record)}\n`;
    if (recordType !== 'message') continue;
    [count, last] = [count + 1, at];
    if (rest.role === 'user') trigger ??= triggerOf(entry);
    if (typeof entry.meta.model === 'string') model = entry.meta.model;
  }
  return {
    ...{ id, name: session, createdAt: isoTime(createdAt), lastMessageAt: isoTime(last) },
    ...{ model, messageCount: count, ...(trigger ?? { source: 'interactive' }) },
    ...(instructions !== undefined && { systemPromptOverride: instructions }),
  };
}

/** What began a session whose first message this is. */
function triggerOf({ meta }: Entry): Pick<SessionMetadata, 'source' | 'cronJobId'> {
  const [, job] = /^cron:(.+)$/s.exec(String(meta.source ?? '')) ?? [];
  return job === undefined ? { source: 'interactive' } : { source: 'cron', cronJobId: job };
}

/** The instructions that a session, or a fork, was created with. */
function instructionsIn({ name, payload }: Entry): string | undefined {
  if ((name !== 'session/start' && name !== 'fork/start') || !isObject(payload)) return undefined;
  const { settings } = payload;
  return isObject(settings) && typeof settings.instructions === 'string' ? settings.instructions : undefined;
}

/** A handoff or a compaction: what is before the first kept position is replaced by its summary. */
function compactionOf({ seq, ref = seq, ...entry }: Entry): { readonly recordType: string } & JsonObject {
  const { payload, kind, meta } = entry;
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  const { summary, ...others } = state;
  const texts = [
    ...(typeof summary === 'string' && summary !== '' ? [summary] : []),
    ...(kind === 'anchor' && Object.keys(others).length > 0 ? [JSON.stringify(others)] : []),
  ];
  return {
    recordType: 'compaction',
    firstKeptSeq: ref,
    summary: texts.join('\n'),
    tokensBefore: Number(state.tokens_before ?? meta.tokens_before ?? 0),
    readFiles: textsIn(state.read_files ?? meta.read_files),
    modifiedFiles: textsIn(state.modified_files ?? meta.modified_files),
  };
}

/** A message, or the result of one of these calls; undefined for an entry that no model sees. */
function messageOf(
  entry: Entry,
  calls: ReadonlySet<string>,
): ({ readonly recordType: string } & JsonObject) | undefined {
  // What a fork was given when it began is a message to its model.
  const state = entry.name === 'fork/start' && !entry.inherited ? renderState(entry) : undefined;
  const rendered = state === undefined ? renderEntry(entry) : ({ type: 'message', message: state } as const);
  if (rendered?.type === 'result') {
    const { part } = rendered;
    if (!calls.has(String(part.toolCallId))) return undefined;
    return {
      recordType: 'message',
      role: 'toolResult',
      content: [{ type: 'text', text: outputText(part) }],
      toolCallId: String(part.toolCallId),
      isError: isFailed(part),
    };
  }
  if (rendered === undefined) return undefined;
  const { role, content } = rendered.message;
  const blocks = content.flatMap(blockOf);
  if (blocks.length === 0) return undefined;
  return { recordType: 'message', role, content: blocks as unknown as readonly JsonObject[] };
}

function blockOf(part: Part): readonly Block[] {
  const { type, text, toolCallId, toolName, input, providerExecuted } = part;
  if (type === 'text') return [{ type, text: String(text) }];
  if (type === 'tool-call' && providerExecuted !== true)
    return [
      {
        type: 'toolCall',
        id: String(toolCallId),
        name: String(toolName),
        arguments: isObject(input) ? input : { input: (input ?? null) as JsonObject },
      },
    ];
  return type === 'file' || type === 'image' ? [{ type: 'text', text: fileText(part) }] : [];
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
