import type { Draft, Entry, JsonObject, Seq, SqliteTapeStore } from '@tapedeck/tape';
import { note, TapeError } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { changeOf, commonOf, type Imported, keyOf } from './change.ts';
import type { ConversationPlan, ImportPlan } from './plan.ts';

/** What an import wrote of one conversation. */
export interface Reconciled {
  readonly conversation: string;
  readonly session: string;
  /** Whether the session is new. */
  readonly created: boolean;
  readonly added: number;
  readonly rewound: boolean;
}

/**
 * Makes the sessions of a home read as the conversations of a plan: creates those that are missing, parents first, and
 * appends what is new to the others. Each session changes in one transaction. A branch is forked where it leaves its
 * parent, before or after the parent changed, so that what the parent has of it is not written again.
 */
export function reconcile(store: SqliteTapeStore, plan: ImportPlan): readonly Reconciled[] {
  const done = new Map<string, Reconciled>();
  const before = new Map<string, readonly Entry[]>();
  for (const conversation of plan.conversations) {
    const parent = done.get(conversation.parent?.key ?? '')?.session;
    const origin: Draft = { ...originOf(plan, conversation), key: 'import:source' };
    const name = freeName(store, conversation.name, origin);
    const existing = store.sessions.find(name);
    if (existing !== undefined) before.set(conversation.key, importedIn(store, name).shown);
    else if (parent !== undefined && conversation.kind !== 'cleared') {
      const earlier = before.get(conversation.parent?.key ?? '') ?? [];
      store.lineage.fork(parent, forkOf(store, { conversation, name, parent, earlier }));
    }
    const isNew = existing === undefined;
    const { added, rewound } = write(store, name, { conversation, origin, isNew });
    done.set(conversation.key, {
      conversation: conversation.key,
      session: name,
      created: isNew,
      added,
      rewound,
    });
  }
  return [...done.values()];
}

/** Where an import comes from, as an event of its session. */
function originOf({ format, session }: ImportPlan, { key, kind, parent }: ConversationPlan): Draft {
  if (kind === 'main') return note('import/source', { format, session });
  const from = parent === undefined ? {} : { from: parent.key };
  return note('import/source', { format, session, conversation: key, ...from });
}

/** The name of the session of a conversation: the first of its names that is free, or that it has already. */
function freeName(store: SqliteTapeStore, name: string, origin: Draft): string {
  for (let n = 1; ; n += 1) {
    const one = n === 1 ? name : `${name}-${n}`;
    if (store.sessions.find(one) === undefined) return one;
    const [source] = store.entries.read(one, { own: true, name: 'import/source', limit: 1 });
    if (JSON.stringify(source?.payload) === JSON.stringify(origin.payload)) return one;
  }
}

interface Forking {
  readonly conversation: ConversationPlan;
  readonly name: string;
  readonly parent: string;
  /** What the parent showed before this import. */
  readonly earlier: readonly Entry[];
}

function forkOf(store: SqliteTapeStore, { conversation, name, parent, earlier }: Forking) {
  const { key, kind, spine, title } = conversation;
  const call = conversation.parent?.call;
  const now = importedIn(store, parent).shown;
  const common = { name, key, ...(title !== undefined && { title }) };
  if (kind === 'subagent') {
    const cut = callAt(now, call);
    const spawn = call === undefined ? {} : { spawnCall: call };
    // What is forked since a mark inherits its state.
    const [at] = cut === undefined ? [] : store.entries.read(parent, { from: cut, to: cut });
    const isPlain = at !== undefined && at.mark === undefined;
    const from = isPlain ? { inherit: { since: at.seq }, cut: at.seq } : { inherit: 'nothing' as const };
    return { ...common, ...from, kind: 'subagent', ...spawn };
  }
  const [was, is] = [spineOf(earlier), spineOf(now)];
  const shared = commonOf(spine, was) > commonOf(spine, is) ? was : is;
  const n = commonOf(spine, shared);
  const cut = shared[n - 1]?.seq ?? (shared[0] === undefined ? 1 : shared[0].seq - 1);
  return { ...common, kind: 'session', cut };
}

/** The position before the message that makes a call. */
function callAt(shown: readonly Entry[], call: string | undefined): Seq | undefined {
  const message = shown.find(
    ({ kind, payload }) =>
      kind === 'message' &&
      isObject(payload) &&
      Array.isArray(payload.content) &&
      payload.content.some((part) => isObject(part) && part.type === 'tool-call' && part.toolCallId === call),
  );
  return message && message.seq - 1;
}

function spineOf(entries: readonly Entry[]): readonly Entry[] {
  return entries.filter(({ kind }) => !kind.startsWith('x-'));
}

/** What a session has of an import. */
function importedIn(store: SqliteTapeStore, session: string): Imported {
  const ranges = store.views.ranges(session).filter(({ hiddenBy }) => hiddenBy === undefined);
  const written = new Map<string, number>();
  const counted = new Map<string, JsonObject>();
  const shown: Entry[] = [];
  let range = 0;
  for (const entry of store.entries.read(session)) {
    if (entry.key === undefined || entry.meta.source !== 'import') continue;
    const key = keyOf(entry);
    if (!entry.inherited) written.set(key, (written.get(key) ?? 0) + 1);
    if (isObject(entry.meta.usage)) counted.set(key, most(counted.get(key), entry.meta.usage));
    while (range < ranges.length && entry.seq > (ranges[range]?.to ?? 0)) range += 1;
    if (entry.seq >= (ranges[range]?.from ?? Number.POSITIVE_INFINITY)) shown.push(entry);
  }
  return { shown, written, counted };
}

/** The greatest figure of each kind. */
function most(a: JsonObject = {}, b: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(b).map(([name, count]) => [name, Math.max(Number(a[name] ?? 0), Number(count))]),
  );
}

interface Writing {
  readonly conversation: ConversationPlan;
  readonly origin: Draft;
  readonly isNew: boolean;
}

/** How often a session is read anew after another writer was faster. */
const triesMax = 10;

function write(
  store: SqliteTapeStore,
  session: string,
  { conversation, origin, isNew }: Writing,
): Pick<Reconciled, 'added' | 'rewound'> {
  if (isNew && store.sessions.find(session) === undefined) {
    const { title } = conversation;
    const drafts = [origin, ...changeOf(conversation, nothing).drafts];
    const keys = drafts.flatMap(({ key }) => key ?? []);
    const staged = store.imports.stage(session, { keys, ...(title !== undefined && { title }) });
    const { added } = store.imports.append(staged.id, drafts);
    store.imports.publish([staged.id]);
    return { added, rewound: false };
  }
  for (let tries = 1; ; tries += 1) {
    const info = store.sessions.find(session);
    const tape = importedIn(store, session);
    const { rewindTo, drafts } = changeOf(conversation, tape);
    const first = isNew ? [origin] : [];
    const rewind: readonly Draft[] =
      rewindTo === undefined
        ? []
        : [{ kind: 'rewind', mark: 'rewind', ref: rewindTo, payload: { to: rewindTo, mode: 'import' } }];
    const batch = [...rewind, ...first, ...drafts];
    if (batch.length === 0) return { added: 0, rewound: false };
    try {
      const { added } = store.entries.append(session, batch, { expectHead: info?.headHash });
      return { added, rewound: rewind.length > 0 };
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_STALE_HEAD' || tries >= triesMax) throw error;
    }
  }
}

const nothing: Imported = { shown: [], written: new Map(), counted: new Map() };
