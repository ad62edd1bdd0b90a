import { type Entry, type JsonObject, type Part, TapeError } from '@tapedeck/tape';
import { isClientCall, isObject, isoTime, recordedUsage } from '@tapedeck/tape/internal';
import { restored } from '../ui/restored.ts';
import { type Block, blocksOf, resultOf } from './anthropic-blocks.ts';
import type { ExportSource } from './contexts.ts';
import { markOf } from './mark.ts';
import { type Transcript, uuidFrom } from './transcript.ts';
import { type BoundaryTurn, type SaidTurn, turnsOf } from './turns.ts';

/** The version of Claude Code whose records these are; one that was imported keeps its own. */
const thisVersion = '2.1.330';

/**
 * Writes a transcript of Claude Code: a record for each content block and result, linked in one line. A compaction is a
 * boundary and its summary, which names the records that it keeps. Each record names its entry in `tapedeck`, so that a
 * later import knows it again; those of an import have their old uuids.
 * @throws TAPE_BAD_POINT where nothing is shown
 */
export async function* writeClaudeCode(
  source: ExportSource,
  place: Transcript,
): AsyncGenerator<string, number> {
  const writer = new RecordWriter(source, place, await forkedFrom(source));
  let count = 0;
  for (const turn of await turnsOf(source, { provider: 'anthropic.messages' })) {
    if (turn.kind === 'said') count += 1;
    const records = await (turn.kind === 'boundary' ? writer.boundary(turn) : writer.said(turn));
    for (const record of records) yield `${JSON.stringify(record)}\n`;
  }
  const { session, head } = source.info;
  // The program finds no conversation in such a file.
  if (writer.isEmpty)
    throw new TapeError(
      'TAPE_BAD_POINT',
      `cannot export '${session}' as claude-code: it shows nothing up to @${head}`,
      {
        data: { session, seq: head },
      },
    );
  for (const record of writer.end()) yield `${JSON.stringify(record)}\n`;
  return count;
}

/** Writes records that follow each other. */
class RecordWriter {
  readonly #source: ExportSource;
  readonly #place: Transcript;
  readonly #taken = new Set<string>();
  /** The uuids of the records of each turn. */
  readonly #written = new Map<SaidTurn, readonly string[]>();
  /** The hashes of messages without a record, which the next record names. */
  readonly #passed: string[] = [];
  /** The sessions from which this one was forked, which the first record names. */
  readonly #from: string[];
  #last: string | null = null;
  #prompt: string | undefined;

  constructor(source: ExportSource, place: Transcript, from: readonly string[]) {
    this.#source = source;
    this.#place = place;
    this.#from = [...from];
  }

  get isEmpty(): boolean {
    return this.#last === null;
  }

  async said(turn: SaidTurn): Promise<readonly JsonObject[]> {
    this.#passed.push(...turn.passed);
    const records = await this.#records(turn);
    this.#written.set(
      turn,
      records.map(({ uuid }) => String(uuid)),
    );
    return records;
  }

  async #records({ entry, again, message, results }: SaidTurn): Promise<readonly JsonObject[]> {
    const { store } = this.#source;
    const parts = (await restored(store, message)).content;
    const blocks = blocksOf(parts);
    if (blocks.length === 0) {
      if (!again) this.#passed.push(entry.hash);
      return [];
    }
    if (message.role === 'user') {
      const [only] = blocks;
      const content = blocks.length === 1 && only?.type === 'text' ? String(only.text) : blocks;
      if (!again && typeof content === 'string' && entry.meta.isMeta !== true) this.#prompt = content;
      const isMeta = entry.meta.isMeta === true || again ? { isMeta: true } : {};
      return [
        this.#chained({ type: 'user', message: { role: 'user', content }, ...isMeta }, { entry, again }),
      ];
    }
    // Of two records of an answer with the same block, an import takes one for a copy of the other.
    const isTwice = new Set(blocks.map((block) => JSON.stringify(block))).size < blocks.length;
    const groups = isTwice ? [blocks] : blocks.map((block) => [block]);
    const made = groups.map((content) => this.#answer(content, { entry, parts }));
    for (const { part, entry: from } of results) {
      const block = resultOf(await restored(store, part));
      const fields = { type: 'user', message: { role: 'user', content: [block] } };
      made.push(this.#chained(fields, { entry: from ?? entry, again: from === undefined }));
    }
    return made;
  }

  /** Claude Code writes each block of an answer as a record of its own. */
  #answer(
    content: readonly Block[],
    { entry, parts }: { readonly entry: Entry; readonly parts: readonly Part[] },
  ): JsonObject {
    const { meta, hash } = entry;
    const { input, output, reasoning, cacheRead, cacheWrite } = recordedUsage(meta) ?? noTokens;
    // The id that its own source gave it: some providers give one to several answers, which an import would take for one.
    const recorded =
      meta.source === 'import' && typeof meta.response === 'string' ? meta.response : undefined;
    const message = {
      id: recorded ?? `msg_${hash.slice(0, 24)}`,
      type: 'message',
      role: 'assistant',
      model: typeof meta.model === 'string' ? meta.model : '<synthetic>',
      content: [...content],
      stop_reason: parts.some(isClientCall) ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: input,
        cache_creation_input_tokens: cacheWrite,
        cache_read_input_tokens: cacheRead,
        output_tokens: output + reasoning,
      },
    };
    const request = typeof meta.requestId === 'string' ? { requestId: meta.requestId } : {};
    return this.#chained({ message, ...request, type: 'assistant' }, { entry, again: false });
  }

  async boundary({ entry, text, kept: turns, passed }: BoundaryTurn): Promise<readonly JsonObject[]> {
    this.#passed.push(...passed);
    // A boundary names records: what stands between those it keeps has to be one.
    const missing: JsonObject[] = [];
    for (const turn of turns) if (!this.#written.has(turn)) missing.push(...(await this.said(turn)));
    const logical = this.#last;
    this.#last = null;
    const uuid = this.#uuidOf(entry);
    const summaryUuid = text === undefined ? uuid : this.#free(`${entry.hash}:summary`);
    const kept = turns.flatMap((turn) => this.#written.get(turn) ?? []);
    const state = isObject(entry.payload) && isObject(entry.payload.state) ? entry.payload.state : {};
    const { trigger, pre_tokens: tokens, tokens_before: before = tokens } = { ...entry.meta, ...state };
    const compactMetadata = {
      trigger: trigger === 'auto' || trigger === 'threshold' ? 'auto' : 'manual',
      preTokens: typeof before === 'number' ? before : 0,
      ...(kept.length > 0 && {
        preservedMessages: { anchorUuid: summaryUuid, uuids: kept, allUuids: kept },
      }),
    };
    const head = this.#record(
      {
        logicalParentUuid: logical,
        type: 'system',
        subtype: 'compact_boundary',
        content: 'Conversation compacted',
        isMeta: false,
        level: 'info',
        compactMetadata,
      },
      { entry, uuid },
    );
    this.#last = uuid;
    if (text === undefined) return [...missing, head];
    const shown = entry.meta.source === 'import' && typeof state.summary === 'string' ? state.summary : text;
    const summary = this.#record(
      {
        type: 'user',
        message: { role: 'user', content: shown },
        isVisibleInTranscriptOnly: true,
        isCompactSummary: true,
      },
      { entry, uuid: summaryUuid },
    );
    this.#last = summaryUuid;
    return [...missing, head, summary];
  }

  /** What says where the conversation ends, and its title. */
  end(): readonly JsonObject[] {
    const sessionId = this.#place.id;
    const { title } = this.#source.info;
    const passed = this.#passed.length > 0 ? { passed: this.#passed } : {};
    const mark = { tapedeck: { session: this.#source.info.id, ...passed } };
    return [
      ...(title === undefined ? [] : [{ type: 'custom-title', customTitle: title, sessionId, ...mark }]),
      ...(this.#last === null
        ? []
        : [
            { type: 'last-prompt', lastPrompt: this.#prompt ?? '', leafUuid: this.#last, sessionId, ...mark },
          ]),
    ];
  }

  /** A record of the conversation behind the last one. */
  #chained(
    fields: JsonObject,
    { entry, again }: { readonly entry: Entry; readonly again: boolean },
  ): JsonObject {
    const uuid = again ? this.#free(`${entry.hash}:${this.#taken.size}`) : this.#uuidOf(entry);
    const record = this.#record(fields, { entry, uuid, again });
    this.#last = uuid;
    return record;
  }

  /** Claude Code looks for some fields where it writes them itself: the parent first, the time behind the uuid. */
  #record(
    fields: JsonObject,
    {
      entry,
      uuid,
      again = false,
    }: { readonly entry: Entry; readonly uuid: string; readonly again?: boolean },
  ): JsonObject {
    const { id, project, branch } = this.#place;
    return {
      parentUuid: this.#last,
      isSidechain: false,
      ...fields,
      uuid,
      timestamp: isoTime(entry.sourceAt ?? entry.at),
      userType: 'external',
      cwd: project,
      sessionId: id,
      version: typeof entry.meta.version === 'string' ? entry.meta.version : thisVersion,
      ...(branch !== undefined && { gitBranch: branch }),
      tapedeck: markOf(this.#source.info.id, entry, {
        message: isObject(fields.message) ? fields.message : undefined,
        // The text between two turns may be no record of a draft.
        passed: again ? [] : this.#passed.splice(0),
        from: this.#from.splice(0),
      }),
    };
  }

  /** The uuid of the record that an entry was imported from, for the first record that is written of it. */
  #uuidOf({ hash, key = '', meta }: Entry): string {
    const { uuid } = meta;
    const isImported = meta.source === 'import' && typeof uuid === 'string' && key.includes(uuid);
    return isImported && !this.#taken.has(uuid) ? this.#take(uuid) : this.#free(hash);
  }

  #free(seed: string): string {
    for (let n = 0; ; n += 1) {
      const uuid = uuidFrom(n === 0 ? seed : `${seed}:${n}`);
      if (!this.#taken.has(uuid)) return this.#take(uuid);
    }
  }

  #take(uuid: string): string {
    this.#taken.add(uuid);
    return uuid;
  }
}

/** The sessions from which a session was forked, by their ids, the nearest first. */
async function forkedFrom({ store, info }: ExportSource): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let at = info.parentId; at !== undefined && !ids.includes(at); ) {
    ids.push(at);
    at = (await store.sessions.find(at))?.parentId;
  }
  return ids;
}

const noTokens = { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
