import type { Entry, EntryKind, JsonObject, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type LineageLine, sha256 } from '@tapedeck/tape/store';
import type { Walk } from './walk.ts';

/** The part of a child that one merge delivered. */
export interface TraceSource {
  readonly session: string;
  /** The mark of the merge; null for a child that is not merged there. */
  readonly mark: {
    readonly session: string;
    readonly seq: Seq;
    /** Where that session had got the result before, of a merge that an import found. */
    readonly received?: Seq;
    readonly hiddenBy?: Seq;
  } | null;
  /** The child's positions, inclusive. */
  readonly range: readonly [Seq, Seq] | null;
  readonly status?: string;
  readonly state: 'merged' | 'discarded' | 'unmerged';
  /**
   * The child's entry with the delivered text; null if the merge supplied its own text, or the text was
   * redacted.
   */
  readonly text: { readonly seq: Seq; readonly kind: EntryKind } | null;
  /** Outside the range of the outer merge, whose text quotes its message. */
  readonly quoted?: true;
  /** The child's session does not exist. */
  readonly missing?: true;
  /** Already listed above, with its sources. */
  readonly again?: true;
  /** The merges of other children in the range, or quoted by it. */
  readonly from: readonly TraceSource[];
}

/** The children whose work an entry on a session's own tape contains. */
export async function sourcesOf(
  walk: Walk,
  owner: SessionInfo,
  entry: Entry,
): Promise<readonly TraceSource[]> {
  const { store } = walk;
  const { seq, kind, name = '', meta, payload } = entry;
  if (kind === 'anchor' && name.startsWith('merge/')) return [await sourceOf(walk, owner, entry)];
  if (kind === 'message' && meta.source === 'merge') {
    // One transaction writes a mark and, right after it, the message.
    const [mark] = await Array.fromAsync(
      store.entries.read(owner.id, { own: true, from: seq - 1, to: seq - 1 }),
    );
    return mark?.name?.startsWith('merge/') === true ? [await sourceOf(walk, owner, mark)] : [];
  }
  const call = kind === 'tool-result' && isObject(payload) ? String(payload.toolCallId) : undefined;
  const at = isOfImport(entry) ? seq : undefined;
  return call === undefined && at === undefined ? [] : await broughtBy(walk, owner, { call, at });
}

/** Whether an import wrote an entry that can have brought the result of a child. */
export function isOfImport({ kind, meta }: Pick<Entry, 'kind' | 'meta'>): boolean {
  return (kind === 'tool-result' || kind === 'message') && meta.source === 'import';
}

/** The children that a call started, or whose results an entry brought, each with its merges into the session. */
async function broughtBy(
  walk: Walk,
  owner: SessionInfo,
  { call, at }: { readonly call: string | undefined; readonly at: Seq | undefined },
): Promise<readonly TraceSource[]> {
  const { store } = walk;
  const sources: TraceSource[] = [];
  for (const child of await store.sessions.list({ parent: owner.id, all: true })) {
    const isOfCall = call !== undefined && child.spawnCall === call;
    if (!isOfCall && (at === undefined || child.delivery === undefined)) continue;
    const merges = await mergesInto(store, child, owner);
    if (!isOfCall && !merges.some(({ received }) => received === at)) continue;
    const marks: Entry[] = [];
    for (const { seq = 0 } of merges)
      marks.push(...(await Array.fromAsync(store.entries.read(owner.id, { own: true, from: seq, to: seq }))));
    for (const mark of marks) sources.push(await sourceOf(walk, owner, mark));
    if (marks.length === 0)
      sources.push({
        session: child.session,
        mark: null,
        range: null,
        ...(child.task !== undefined && { status: child.task }),
        state: 'unmerged',
        text: null,
        from: [],
      });
  }
  return sources;
}

/** The lines of the merges and discards of a child into a session. */
export async function mergesInto(
  store: TapeStore,
  { id: session }: Pick<SessionInfo, 'id'>,
  { id }: Pick<SessionInfo, 'id'>,
): Promise<readonly LineageLine[]> {
  const lines = await Array.fromAsync(store.lineage.read({ session, types: ['merge', 'discard'] }));
  return lines.filter(({ into }) => into === id);
}

/** The source that a mark records, and its own sources. */
async function sourceOf(walk: Walk, into: SessionInfo, mark: Entry): Promise<TraceSource> {
  const { store, seen } = walk;
  const state = isObject(mark.payload) && isObject(mark.payload.state) ? mark.payload.state : {};
  const child = await store.sessions.find(typeof state.child === 'string' ? state.child : childName(mark));
  const [shown] = await store.views.ranges(into.id, { from: mark.seq });
  const discarded = state.strategy === 'discard';
  const source = {
    session: child?.session ?? childName(mark),
    mark: {
      session: into.session,
      seq: mark.seq,
      ...(typeof state.received === 'number' && { received: state.received }),
      ...(shown?.hiddenBy !== undefined && { hiddenBy: shown.hiddenBy }),
    },
    ...(typeof state.status === 'string' && { status: state.status }),
    state: discarded ? ('discarded' as const) : ('merged' as const),
  };
  const range = child === undefined ? undefined : await rangeOf(store, { child, into, mark, state });
  if (child === undefined || range === undefined)
    return { ...source, range: null, text: null, ...(child === undefined && { missing: true }), from: [] };
  const key = `${into.id}@${mark.seq}`;
  if (seen.has(key)) return { ...source, range, text: null, again: true, from: [] };
  seen.add(key);
  return {
    ...source,
    range,
    text: discarded ? null : await textOf(store, { child, range, state }),
    from: await below(walk, {
      child,
      range,
      delivered: discarded ? '' : await messageAfter(store, into, mark),
    }),
  };
}

function childName({ name = '' }: Entry): string {
  return name.slice('merge/'.length);
}

/** The positions that a mark covers; if the mark was redacted, those in the lineage. */
async function rangeOf(
  store: TapeStore,
  { child, into, mark, state }: { child: SessionInfo; into: SessionInfo; mark: Entry; state: JsonObject },
): Promise<readonly [Seq, Seq] | undefined> {
  if (Array.isArray(state.range)) {
    const [from, to] = state.range;
    return typeof from === 'number' && typeof to === 'number' ? [from, to] : undefined;
  }
  for await (const line of store.lineage.read({ session: child.id, types: ['merge', 'discard'] }))
    if (line.into === into.id && line.seq === mark.seq) return line.range ?? undefined;
  return undefined;
}

/**
 * The child's entry that holds the delivered text. Text supplied with the merge is on no tape of the child.
 */
async function textOf(
  store: TapeStore,
  { child, range, state }: { child: SessionInfo; range: readonly [Seq, Seq]; state: JsonObject },
): Promise<TraceSource['text']> {
  // A range without a result brings the text of an earlier one.
  for (const from of [range[0], child.base + 1]) {
    const { text, textSeq } = await store.lineage.collect(child.id, [from, range[1]]);
    if (textSeq === undefined || sha256(text) !== state.result_digest) continue;
    const [entry] = await Array.fromAsync(store.entries.read(child.id, { from: textSeq, to: textSeq }));
    return entry === undefined ? null : { seq: textSeq, kind: entry.kind };
  }
  return null;
}

/** The message that follows a mark, as JSON. */
async function messageAfter(store: TapeStore, into: SessionInfo, { seq }: Entry): Promise<string> {
  const [message] = await Array.fromAsync(
    store.entries.read(into.id, { own: true, from: seq + 1, to: seq + 1 }),
  );
  return message?.meta.source === 'merge' ? JSON.stringify(message.payload) : '';
}

/** The merges into a child that lie in a range, and those whose messages the delivered text quotes. */
async function below(
  walk: Walk,
  { child, range, delivered }: { child: SessionInfo; range: readonly [Seq, Seq]; delivered: string },
): Promise<readonly TraceSource[]> {
  const { store } = walk;
  const [from, to] = range;
  const tags = new Set(Array.from(delivered.matchAll(/<merge-([0-9a-f]{8}) /g), ([, head = '']) => head));
  const found: { readonly owner: SessionInfo; readonly mark: Entry; readonly quoted: boolean }[] = [];
  // Inherited merges can only be quoted: ancestors are searched only if the text has several merge tags.
  let upTo = child.head;
  for (let at: SessionInfo | undefined = child; at !== undefined && upTo > child.floor; ) {
    for await (const mark of store.entries.read(at.id, { own: true, kind: 'anchor', namePrefix: 'merge/' })) {
      const inRange = at === child && mark.seq >= from && mark.seq <= to;
      const quoted = !inRange && mark.seq <= upTo && tags.has(headOf(mark));
      if (inRange || quoted) found.push({ owner: at, mark, quoted });
    }
    upTo = Math.min(upTo, at.base);
    at = tags.size > 1 && at.parentId !== undefined ? await store.sessions.find(at.parentId) : undefined;
  }
  const sources: TraceSource[] = [];
  for (const { owner, mark, quoted } of found.toSorted((a, b) => a.mark.seq - b.mark.seq))
    sources.push({ ...(await sourceOf(walk, owner, mark)), ...(quoted && { quoted }) });
  return sources;
}

/** The beginning of the head that a mark covers, as the tag of its message has it. */
function headOf({ payload }: Entry): string {
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  return String(state.child_head ?? '').slice(0, 8);
}
