import type { Entry, JsonObject, Part } from '@tapedeck/tape';
import { isClientCall, isObject, isoTime, recordedUsage } from '@tapedeck/tape/internal';
import { restored } from '../ui/restored.ts';
import { type Block, blocksOf, resultOf } from './anthropic-blocks.ts';
import type { ExportSource } from './contexts.ts';
import { markOf } from './mark.ts';
import type { Transcript } from './transcript.ts';
import { type BoundaryTurn, type ResultOfTurn, type SaidTurn, turnsOf } from './turns.ts';

/** The version of the form that pi reads without a migration. */
const version = 3;

/**
 * Writes a session of pi: a header, and an entry for each message, result and compaction, each with its predecessor. pi makes
 * the messages valid for the model that it continues with.
 */
export async function* writePi(
  source: ExportSource,
  { id, project, at }: Transcript,
): AsyncGenerator<string, number> {
  const { info } = source;
  yield line({ type: 'session', version, id, timestamp: isoTime(at), cwd: project });
  const writer = new EntryWriter(source);
  if (info.title !== undefined) yield line(writer.entry({ type: 'session_info', name: info.title }, at));
  let count = 0;
  for (const turn of await turnsOf(source, { provider: 'anthropic.messages' })) {
    if (turn.kind === 'said') count += 1;
    for (const entry of turn.kind === 'boundary' ? [writer.compaction(turn)] : await writer.said(turn))
      yield line(entry);
  }
  return count;
}

function line(value: JsonObject): string {
  return `${JSON.stringify(value)}\n`;
}

/** Writes entries that follow each other. */
class EntryWriter {
  readonly #source: ExportSource;
  /** The id of the first entry of each turn. */
  readonly #written = new Map<SaidTurn, string>();
  /** The hashes of messages without an entry, which the next one names. */
  readonly #passed: string[] = [];
  #last: string | null = null;
  #count = 0;

  constructor(source: ExportSource) {
    this.#source = source;
  }

  async said(turn: SaidTurn): Promise<readonly JsonObject[]> {
    const { entry, again, message, results, passed } = turn;
    this.#passed.push(...passed);
    const parts = (await restored(this.#source.store, message)).content;
    const blocks = blocksOf(parts);
    if (blocks.length === 0) {
      if (!again) this.#passed.push(entry.hash);
      return [];
    }
    const at = entry.sourceAt ?? entry.at;
    const said =
      message.role === 'user'
        ? { role: 'user', content: blocks.flatMap(userContent), timestamp: at }
        : answerOf(entry, { blocks, parts });
    const made = [this.#message(said, entry)];
    if (this.#last !== null) this.#written.set(turn, this.#last);
    for (const result of results) made.push(await this.#result(result, entry));
    return made;
  }

  async #result({ part, entry: from }: ResultOfTurn, call: Entry): Promise<JsonObject> {
    const entry = from ?? call;
    const { content, is_error: isError } = resultOf(await restored(this.#source.store, part));
    const blocks: readonly Block[] =
      typeof content === 'string'
        ? [{ type: 'text', text: content }]
        : Array.isArray(content)
          ? content.filter(isObject)
          : [];
    const message = {
      role: 'toolResult',
      toolCallId: String(part.toolCallId),
      toolName: String(part.toolName),
      content: blocks.flatMap(userContent),
      isError: isError === true,
      timestamp: entry.sourceAt ?? entry.at,
    };
    return this.#message(message, entry);
  }

  compaction({ entry, kept, passed }: BoundaryTurn): JsonObject {
    this.#passed.push(...passed);
    const state = isObject(entry.payload) && isObject(entry.payload.state) ? entry.payload.state : {};
    const { summary, ...others } = state;
    const isBare = entry.kind === 'compaction' || Object.keys(others).length === 0;
    const texts = [
      ...(typeof summary === 'string' ? [summary] : []),
      ...(isBare ? [] : [JSON.stringify(others)]),
    ];
    const before = others.tokens_before ?? others.pre_tokens ?? entry.meta.tokens_before;
    const [first] = kept.flatMap((turn) => this.#written.get(turn) ?? []);
    return this.entry(
      {
        type: 'compaction',
        summary: texts.join('\n'),
        // Without one, the id is that of no entry before it.
        firstKeptEntryId: first ?? '',
        tokensBefore: typeof before === 'number' ? before : 0,
        tapedeck: markOf(this.#source.info.id, entry, { passed: this.#passed.splice(0) }),
      },
      entry.sourceAt ?? entry.at,
    );
  }

  #message(message: JsonObject, entry: Entry): JsonObject {
    return this.entry(
      {
        ...{ type: 'message', message },
        tapedeck: markOf(this.#source.info.id, entry, { message, passed: this.#passed.splice(0) }),
      },
      entry.sourceAt ?? entry.at,
    );
  }

  /** An entry behind the last one. */
  entry(fields: JsonObject, at: number): JsonObject {
    this.#count += 1;
    const id = this.#count.toString(16).padStart(8, '0');
    const { type, ...rest } = fields;
    const made = { type: type ?? '', id, parentId: this.#last, timestamp: isoTime(at), ...rest };
    this.#last = id;
    return made;
  }
}

function answerOf(
  entry: Entry,
  { blocks, parts }: { readonly blocks: readonly Block[]; readonly parts: readonly Part[] },
): JsonObject {
  const { meta } = entry;
  const { input, output, reasoning, cacheRead, cacheWrite } = recordedUsage(meta) ?? noTokens;
  const provider = typeof meta.provider === 'string' ? meta.provider : 'unknown';
  const [name = ''] = provider.split('.');
  return {
    role: 'assistant',
    content: blocks.flatMap(answerContent),
    api: apis[name] ?? 'openai-completions',
    provider: name,
    model: typeof meta.model === 'string' ? meta.model : 'unknown',
    usage: {
      input,
      output: output + reasoning,
      cacheRead,
      cacheWrite,
      totalTokens: input + output + reasoning + cacheRead + cacheWrite,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason: parts.some(isClientCall) ? 'toolUse' : 'stop',
    timestamp: entry.sourceAt ?? entry.at,
  };
}

const noTokens = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };

/** The names that pi has for the APIs of providers. */
const apis: Readonly<Record<string, string>> = {
  anthropic: 'anthropic-messages',
  google: 'google-generative-ai',
  openai: 'openai-responses',
};

/** pi takes texts and images of a user; of other files, it gets the content or the name. */
function userContent(block: Block): JsonObject[] {
  const { type, text, source } = block;
  if (type === 'text') return [{ type, text: String(text) }];
  const { type: kind, data, media_type: mimeType, url } = isObject(source) ? source : {};
  if (type === 'image' && kind === 'base64')
    return [{ type, data: String(data), mimeType: String(mimeType) }];
  if (kind === 'text') return [{ type: 'text', text: String(data) }];
  return [
    { type: 'text', text: `[A file that is not shown here: ${String(url ?? block.title ?? mimeType)}]` },
  ];
}

function answerContent(block: Block): JsonObject[] {
  const { type, text, thinking, signature, data, id, name, input } = block;
  switch (type) {
    case 'text':
      return [{ type, text: String(text) }];
    case 'thinking':
      return [{ type, thinking: String(thinking), thinkingSignature: String(signature) }];
    case 'redacted_thinking':
      return [{ type: 'thinking', thinking: '', thinkingSignature: String(data), redacted: true }];
    case 'tool_use':
      return [
        { type: 'toolCall', id: String(id), name: String(name), arguments: isObject(input) ? input : {} },
      ];
    default:
      // pi has no place for what a provider ran itself.
      return [
        {
          type: 'text',
          text: `[${String(name ?? type)}: ${JSON.stringify(input ?? block.content ?? null)}]`,
        },
      ];
  }
}
