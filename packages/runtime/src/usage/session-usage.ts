import {
  type Entry,
  isObject,
  recordedUsage,
  type SessionInfo,
  summarizerKind,
  type TapeStore,
  totalOf,
} from '@tapedeck/tape';
import { addUsage, noUsage, type Usage } from './usage.ts';

/** What model calls took, added up (G7). */
export interface UsageSum {
  /** Model calls whose usage is recorded. */
  readonly steps: number;
  readonly usage: Usage;
  /** All tokens of `usage`. */
  readonly total: number;
  /** What the writers of the calls said that they cost, in their unit; left out where none said so (G10). */
  readonly cost?: number;
}

export interface ModelUsage extends UsageSum {
  /** Left out for calls that do not say which model was asked. */
  readonly model?: string;
}

/** What the model calls of one session took. */
export interface SessionUsage extends UsageSum {
  readonly session: string;
  /** Tokens that the last call had in the model's window: what it was given and what it said (G11). */
  readonly window?: number;
  /** By model, in the order in which they were first asked. */
  readonly models: readonly ModelUsage[];
  /**
   * What the calls took whose answers it inherited and shows: what a branch begins with (G26, G29). They are counted where they
   * were made, and are in no other sum here.
   */
  readonly inherited?: UsageSum;
  /** What its summaries took. They are counted in the sessions in which they were written, and are in no other sum here. */
  readonly summaries?: UsageSum;
  /** The sessions that were forked from it, in that order. */
  readonly children?: readonly SessionUsage[];
  /** The session and all that came from it. */
  readonly tree?: UsageSum;
}

export const noSum: UsageSum = { steps: 0, usage: noUsage, total: 0 };

export function addSums(a: UsageSum, b: UsageSum): UsageSum {
  const cost = a.cost === undefined ? b.cost : a.cost + (b.cost ?? 0);
  return {
    steps: a.steps + b.steps,
    usage: addUsage(a.usage, b.usage),
    total: a.total + b.total,
    ...(cost !== undefined && { cost }),
  };
}

/**
 * Adds up the calls among a session's entries, which are read one at a time. A call is one assistant message, however its
 * stream ended (G8). What was inherited is counted where it was written; what a rewind hides was paid for and counts.
 */
export async function sumUsage(
  session: string,
  entries: Iterable<Entry> | AsyncIterable<Entry>,
): Promise<SessionUsage> {
  const models = new Map<string | undefined, UsageSum>();
  let sum = noSum;
  let window: number | undefined;
  for await (const entry of entries) {
    const call = entry.inherited ? undefined : callOf(entry);
    if (call === undefined) continue;
    const model = typeof entry.meta.model === 'string' ? entry.meta.model : undefined;
    models.set(model, addSums(models.get(model) ?? noSum, call));
    sum = addSums(sum, call);
    if (entry.kind === 'message') window = call.total;
  }
  return {
    session,
    ...sum,
    ...(window !== undefined && { window }),
    models: [...models].map(([model, of]) => ({ ...(model !== undefined && { model }), ...of })),
  };
}

/** The call that an entry is the answer of: what a model said, or a summary whose writer recorded on it what it took. */
function callOf({ kind, payload, meta }: Entry): UsageSum | undefined {
  if (!isObject(payload)) return undefined;
  // A merge's message says what its summary took.
  const isAnswer = kind === 'message' && (payload.role === 'assistant' || meta.source === 'merge');
  if (kind !== 'compaction' && !isAnswer) return undefined;
  const usage = recordedUsage(meta);
  if (usage === undefined) return undefined;
  return {
    steps: 1,
    usage,
    total: totalOf(usage),
    ...(typeof meta.cost === 'number' && { cost: meta.cost }),
  };
}

async function* answersOf(store: Pick<TapeStore, 'read'>, id: string): AsyncGenerator<Entry> {
  for (const kind of ['message', 'compaction'] as const) yield* store.read(id, { own: true, kind });
}

/** What the calls took whose answers a session inherited, as far as no rewind hid them there; nothing when it inherits nothing. */
async function inheritedUsage(
  store: Pick<TapeStore, 'find' | 'viewEntries'>,
  id: string,
): Promise<UsageSum | undefined> {
  const { base = 0, floor = 0 } = (await store.find(id)) ?? {};
  if (base === floor) return undefined;
  let sum = noSum;
  for await (const entry of store.viewEntries(id, { policy: 'full', at: base })) {
    const call = callOf(entry);
    if (call !== undefined) sum = addSums(sum, call);
  }
  return sum;
}

/** What the summaries of a session took, those too that came to nothing; nothing when there are none. */
export async function readSummaries(
  store: Pick<TapeStore, 'read' | 'sessions'>,
  id: string,
): Promise<UsageSum | undefined> {
  let sum: UsageSum | undefined;
  for (const child of await store.sessions({ parent: id, kind: summarizerKind, all: true }))
    sum = addSums(sum ?? noSum, await sumUsage(child.name, answersOf(store, child.id)));
  return sum;
}

/**
 * Reads what the model calls of a session took, off its own entries; with `beside` also of those that it begins with, which reads
 * all of them, and of its summaries; with `tree`, of each session that came from it, too.
 * @throws TAPE_NO_SESSION
 */
export async function readUsage(
  store: Pick<TapeStore, 'find' | 'read' | 'sessions' | 'viewEntries'>,
  { id, name }: Pick<SessionInfo, 'id' | 'name'>,
  { tree = false, beside = false }: { readonly tree?: boolean; readonly beside?: boolean } = {},
): Promise<SessionUsage> {
  const inherited = beside ? await inheritedUsage(store, id) : undefined;
  const summaries = beside ? await readSummaries(store, id) : undefined;
  const own = {
    ...(await sumUsage(name, answersOf(store, id))),
    ...(inherited !== undefined && { inherited }),
    ...(summaries !== undefined && { summaries }),
  };
  if (!tree) return own;
  const children: SessionUsage[] = [];
  for (const child of await store.sessions({ parent: id, all: true }))
    children.push(await readUsage(store, child, { tree }));
  const { steps, usage, total, cost } = own;
  return {
    ...own,
    children,
    tree: children.reduce((sum, child) => addSums(sum, child.tree ?? child), {
      steps,
      usage,
      total,
      ...(cost !== undefined && { cost }),
    }),
  };
}
