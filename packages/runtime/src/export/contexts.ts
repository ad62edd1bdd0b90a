import type { Entry, JsonObject, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject, isPrune } from '@tapedeck/tape/internal';
import { isBlobRef } from '@tapedeck/tape/store';

/** A session as it was when the export began, and the store that gives what of it is exported. */
export interface ExportSource {
  readonly store: TapeStore;
  readonly info: SessionInfo;
}

/** The entries of a session that no rewind hides, in order. */
export function shownEntries({ store, info }: ExportSource): AsyncIterable<Entry> {
  // A store of an export reads asynchronously.
  return store.views.entries(info.id, { policy: 'full', at: info.head }) as AsyncIterable<Entry>;
}

/** What a model had before it from one boundary to the next. */
export interface ModelContext {
  /** The boundary at its beginning, if it has one, with the entries that were kept before it, and all up to the next. */
  readonly entries: readonly Entry[];
  /** Those of them that the context before it ends with, the boundary included. */
  readonly repeated: readonly Entry[];
  /** The system prompt, where it is recorded. */
  readonly instructions: string | undefined;
  /** The tools that the model was sent for its answers; undefined without any, and where those of one are not recorded. */
  readonly tools: readonly OfferedTool[] | undefined;
}

/** A tool as a model was sent it. */
export interface OfferedTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of its arguments; absent for a tool of the provider. */
  readonly schema?: JsonObject;
}

/**
 * The contexts that the model of a session had, in order: a handoff or a compaction ends one and begins the next with its
 * summary. No more than one is in memory.
 */
export async function* contextsOf(source: ExportSource): AsyncGenerator<ModelContext> {
  let entries: Entry[] = [];
  let repeated: Entry[] = [];
  let instructions: string | undefined;
  const recorded = new Map<string, readonly OfferedTool[]>();
  const context = (): ModelContext => ({
    entries,
    repeated,
    instructions,
    tools: toolsIn(entries, recorded),
  });
  for await (const entry of shownEntries(source)) {
    if (entry.name === 'instructions/text')
      instructions = (await instructionsIn(source.store, entry)) ?? instructions;
    // Outputs that were pruned later were whole when the model had them.
    if (isPrune(entry)) continue;
    const { tools, tools_digest: digest } = entry.meta;
    if (Array.isArray(tools) && typeof digest === 'string') recorded.set(digest, tools.filter(isOffered));
    if (entry.mark === 'boundary') {
      yield context();
      const from = entry.ref ?? entry.seq;
      entries = entries.filter((one) => one.seq >= from || isOfFork(one));
      entries.push(entry);
      repeated = [...entries];
    } else entries.push(entry);
  }
  yield context();
}

/** All tools of the answers among entries, each as it was sent last. */
function toolsIn(
  entries: readonly Entry[],
  recorded: ReadonlyMap<string, readonly OfferedTool[]>,
): readonly OfferedTool[] | undefined {
  const digests = entries.flatMap(({ kind, meta: { tools_digest: digest } }) =>
    kind === 'message' && typeof digest === 'string' ? [digest] : [],
  );
  const offers = [...new Set(digests)].map((digest) => recorded.get(digest));
  if (offers.includes(undefined)) return undefined;
  const tools = new Map(offers.flatMap((offer) => (offer ?? []).map((tool) => [tool.name, tool])));
  return tools.size === 0 ? undefined : [...tools.values()];
}

/** Whether a tape that another program may have written has a tool in this place. */
function isOffered(value: unknown): value is OfferedTool {
  if (!isObject(value)) return false;
  const { name, description = '', schema = {} } = value;
  return typeof name === 'string' && typeof description === 'string' && isObject(schema);
}

/** Whether an entry is the task of a fork, which its model has in each context. */
function isOfFork({ inherited, kind, name }: Entry): boolean {
  return !inherited && kind === 'anchor' && (name === 'fork/start' || name === 'intention');
}

/** The text that an event records as the system prompt. */
async function instructionsIn(store: TapeStore, { payload }: Entry): Promise<string | undefined> {
  const text = isObject(payload) ? payload.text : undefined;
  if (isBlobRef(text)) return Buffer.from(await store.entries.blob(text.hash)).toString();
  return typeof text === 'string' ? text : undefined;
}
