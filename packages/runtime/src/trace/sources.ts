import {
  type Entry,
  type EntryKind,
  isObject,
  type JsonObject,
  type Seq,
  type SessionInfo,
  sha256,
  type TapeStore,
} from '@tapedeck/tape';
import type { Walk } from './walk.ts';

/** What of a child was brought by one merge. */
export interface Source {
  readonly session: string;
  /** The mark that brought it; null for a child that was not merged there. */
  readonly mark: { readonly session: string; readonly seq: Seq; readonly hiddenBy?: Seq } | null;
  /** The child's positions, both ends included. */
  readonly range: readonly [Seq, Seq] | null;
  readonly status?: string;
  readonly state: 'merged' | 'discarded' | 'unmerged';
  /** The child's entry whose text was brought; null where the text was given with the merge, or erased since. */
  readonly text: { readonly seq: Seq; readonly kind: EntryKind } | null;
  /** It lies outside the range above it, and its message is quoted there. */
  readonly quoted?: true;
  /** There is no session of that id. */
  readonly missing?: true;
  /** It was told of above: what is below it stands there. */
  readonly again?: true;
  /** What other children's work lies in the range, or is quoted. */
  readonly from: readonly Source[];
}

/** The children whose work an entry of a session's own brought. */
export async function sourcesOf(walk: Walk, owner: SessionInfo, entry: Entry): Promise<readonly Source[]> {
  const { store } = walk;
  const { seq, kind, name = '', meta, payload } = entry;
  if (kind === 'anchor' && name.startsWith('merge/')) return [await sourceOf(walk, owner, entry)];
  if (kind === 'message' && meta.source === 'merge') {
    // The mark and its message are one act.
    const [mark] = await Array.fromAsync(store.read(owner.id, { own: true, from: seq - 1, to: seq - 1 }));
    return mark?.name?.startsWith('merge/') === true ? [await sourceOf(walk, owner, mark)] : [];
  }
  if (kind === 'tool-result' && isObject(payload))
    return await spawnedBy(walk, owner, String(payload.toolCallId));
  return [];
}

/** The children that a call started, each with its merges into the session that called. */
async function spawnedBy(walk: Walk, owner: SessionInfo, call: string): Promise<readonly Source[]> {
  const { store } = walk;
  const sources: Source[] = [];
  for (const child of await store.sessions({ parent: owner.id, all: true })) {
    if (child.spawnCall !== call) continue;
    const marks: Entry[] = [];
    for await (const { into, seq = 0 } of store.lineage({ session: child.id, types: ['merge', 'discard'] }))
      if (into === owner.id)
        marks.push(...(await Array.fromAsync(store.read(owner.id, { own: true, from: seq, to: seq }))));
    for (const mark of marks) sources.push(await sourceOf(walk, owner, mark));
    if (marks.length === 0)
      sources.push({
        session: child.name,
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

/** What a mark brought, and what lies below that. */
async function sourceOf(walk: Walk, into: SessionInfo, mark: Entry): Promise<Source> {
  const { store, seen } = walk;
  const state = isObject(mark.payload) && isObject(mark.payload.state) ? mark.payload.state : {};
  const child = await store.find(typeof state.child === 'string' ? state.child : childName(mark));
  const hiddenBy = await store.hiddenBy(into.id, mark.seq);
  const discarded = state.strategy === 'discard';
  const told = {
    session: child?.name ?? childName(mark),
    mark: { session: into.name, seq: mark.seq, ...(hiddenBy !== undefined && { hiddenBy }) },
    ...(typeof state.status === 'string' && { status: state.status }),
    state: discarded ? ('discarded' as const) : ('merged' as const),
  };
  const range = child === undefined ? undefined : await rangeOf(store, { child, into, mark, state });
  if (child === undefined || range === undefined)
    return { ...told, range: null, text: null, ...(child === undefined && { missing: true }), from: [] };
  const key = `${into.id}@${mark.seq}`;
  if (seen.has(key)) return { ...told, range, text: null, again: true, from: [] };
  seen.add(key);
  return {
    ...told,
    range,
    text: discarded ? null : await textOf(store, { child, range, state }),
    from: await below(walk, { child, range, said: discarded ? '' : await messageAfter(store, into, mark) }),
  };
}

function childName({ name = '' }: Entry): string {
  return name.slice('merge/'.length);
}

/** The positions that a mark covers: as it says, or, where it was erased, as the lineage does. */
async function rangeOf(
  store: TapeStore,
  { child, into, mark, state }: { child: SessionInfo; into: SessionInfo; mark: Entry; state: JsonObject },
): Promise<readonly [Seq, Seq] | undefined> {
  if (Array.isArray(state.range)) {
    const [from, to] = state.range;
    return typeof from === 'number' && typeof to === 'number' ? [from, to] : undefined;
  }
  for await (const line of store.lineage({ session: child.id, types: ['merge', 'discard'] }))
    if (line.into === into.id && line.seq === mark.seq) return line.range ?? undefined;
  return undefined;
}

/** The child's entry that holds the text that was brought. What was given with the merge is on no tape of the child. */
async function textOf(
  store: TapeStore,
  { child, range, state }: { child: SessionInfo; range: readonly [Seq, Seq]; state: JsonObject },
): Promise<Source['text']> {
  const { text, textSeq } = await store.collect(child.id, range);
  if (textSeq === undefined || sha256(text) !== state.result_digest) return null;
  const [entry] = await Array.fromAsync(store.read(child.id, { from: textSeq, to: textSeq }));
  return entry === undefined ? null : { seq: textSeq, kind: entry.kind };
}

/** The text of the message that follows a mark. */
async function messageAfter(store: TapeStore, into: SessionInfo, { seq }: Entry): Promise<string> {
  const [message] = await Array.fromAsync(store.read(into.id, { own: true, from: seq + 1, to: seq + 1 }));
  return message?.meta.source === 'merge' ? JSON.stringify(message.payload) : '';
}

/** The merges into a child that lie in a range of it, and those whose messages are quoted in what was said of it. */
async function below(
  walk: Walk,
  { child, range, said }: { child: SessionInfo; range: readonly [Seq, Seq]; said: string },
): Promise<readonly Source[]> {
  const { store } = walk;
  const [from, to] = range;
  const tags = new Set(Array.from(said.matchAll(/<merge-([0-9a-f]{8}) /g), ([, head = '']) => head));
  const found: { readonly owner: SessionInfo; readonly mark: Entry; readonly quoted: boolean }[] = [];
  // What the child inherited can only be quoted; it is looked for where something is.
  let upTo = child.head;
  for (let at: SessionInfo | undefined = child; at !== undefined && upTo > child.floor; ) {
    for await (const mark of store.merges(at.id)) {
      const inRange = at === child && mark.seq >= from && mark.seq <= to;
      const quoted = !inRange && mark.seq <= upTo && tags.has(headOf(mark));
      if (inRange || quoted) found.push({ owner: at, mark, quoted });
    }
    upTo = Math.min(upTo, at.base);
    at = tags.size > 1 && at.parentId !== undefined ? await store.find(at.parentId) : undefined;
  }
  const sources: Source[] = [];
  for (const { owner, mark, quoted } of found.toSorted((a, b) => a.mark.seq - b.mark.seq))
    sources.push({ ...(await sourceOf(walk, owner, mark)), ...(quoted && { quoted }) });
  return sources;
}

/** The beginning of the head that a mark covers, which is in the tag of its message. */
function headOf({ payload }: Entry): string {
  const state = isObject(payload) && isObject(payload.state) ? payload.state : {};
  return String(state.child_head ?? '').slice(0, 8);
}
