import type { Entry, JsonObject, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { LineageLine } from '@tapedeck/tape/store';
import type { AuditFinding } from './finding.ts';
import type { Subject } from './subject.ts';

/** The edges of a session that only the lineage records, or only a tape. */
export async function* examineEdges({ store, info, ref }: Subject): AsyncGenerator<AuditFinding> {
  yield* examineFork(store, info);
  for await (const line of store.lineage.read({ session: info.id, types: ['merge', 'discard'] }))
    yield* examineLine({ store, info, ref }, line);
  yield* examineMarks(store, info);
}

function oneSided(session: string, seq: Seq | null, message: string): AuditFinding {
  return { code: 'edge-on-one-side', session, seq, message, next: { act: 'verify' } };
}

/** Compares the lineage line of a fork with the mark at the start of the child's tape. */
async function* examineFork(store: TapeStore, info: SessionInfo): AsyncGenerator<AuditFinding> {
  const { id, session: name, parent, parentId, base } = info;
  const [line] = await Array.fromAsync(store.lineage.read({ session: id, types: ['fork'] }));
  if (parentId === undefined && line === undefined) return;
  const start = await ownEntry(store, id, base + 1);
  const isStart = start?.kind === 'anchor' && start.name === 'fork/start';
  if (parentId !== undefined && line === undefined)
    yield oneSided(name, base + 1, `the lineage has no line of the fork of '${name}' from '${parent}'`);
  const parentOnTape = isStart
    ? start.payload === null
      ? parentId
      : stringOf(start.payload, 'parent')
    : undefined;
  if (line !== undefined && parentOnTape !== line.parent)
    yield oneSided(
      name,
      base + 1,
      `line ${line.g} of the lineage says that '${name}' was forked from '${line.parent_session_id}'; its tape does not`,
    );
}

/** Compares the line of a merge or discard with the mark on the target. */
async function* examineLine(
  { store, info, ref }: Pick<Subject, 'store' | 'info' | 'ref'>,
  { g, type, into, into_session_id, seq, range, child_head }: LineageLine,
): AsyncGenerator<AuditFinding> {
  const { id, session: name } = info;
  const target = into === undefined ? undefined : await store.sessions.find(into);
  const mark = target === undefined || seq === undefined ? undefined : await ownEntry(store, target.id, seq);
  const claim = `line ${g} of the lineage says that '${name}' was ${type === 'merge' ? 'merged into' : 'discarded at'} ${into_session_id}@${seq}`;
  if (mark?.kind !== 'anchor' || mark.name !== `merge/${name}`) {
    yield oneSided(
      ref(target ?? info),
      target === undefined ? null : (seq ?? null),
      `${claim}; that position has no mark`,
    );
    return;
  }
  if (mark.payload === null) return;
  const state = stateOf(mark);
  const same =
    state.child === id &&
    state.child_head === child_head &&
    JSON.stringify(state.range) === JSON.stringify(range) &&
    (state.strategy === 'discard') === (type === 'discard');
  if (!same) yield oneSided(ref(target ?? info), seq ?? null, `${claim}; the mark there records another act`);
}

/** Compares the merge marks on a session's own tape with their children and with the lineage. */
async function* examineMarks(store: TapeStore, info: SessionInfo): AsyncGenerator<AuditFinding> {
  // The lines of each child are read once.
  const known = new Map<string, ReadonlySet<Seq>>();
  for await (const mark of store.entries.read(info.id, { own: true, kind: 'anchor', namePrefix: 'merge/' })) {
    const { seq, name = '', payload, adopted, key } = mark;
    // The mark of a copy has no key. What a bundle brought may be of a child that it did not bring.
    if (adopted === true && key?.startsWith('merge:') !== true) continue;
    const state = stateOf(mark);
    const of = name.slice('merge/'.length);
    const children =
      payload === null
        ? await mergedAs(store, { id: info.id, seq, name: of })
        : [await store.sessions.find(String(state.child))].filter((one) => one !== undefined);
    for (const { id } of children) if (!known.has(id)) known.set(id, await linesInto(store, id, info.id));
    const child = children.find(({ id }) => known.get(id)?.has(seq) === true) ?? children[0];
    if (child === undefined && adopted === true) continue;
    if (child === undefined) {
      yield oneSided(
        info.session,
        seq,
        `the mark ${info.session}@${seq} names '${of}', which is not a session`,
      );
      continue;
    }
    if (known.get(child.id)?.has(seq) !== true && adopted !== true)
      yield oneSided(
        info.session,
        seq,
        `the lineage has no line of the mark ${info.session}@${seq} of '${of}'`,
      );
    const fault = payload === null || adopted === true ? undefined : await rangeFault(store, child, state);
    if (fault !== undefined)
      yield oneSided(
        info.session,
        seq,
        `the mark ${info.session}@${seq} covers ${fault}, which '${child.session}' does not have`,
      );
  }
}

/**
 * The sessions of which a redacted mark can be, since it has only the name: several of that below its session, where one was
 * forked anew, and those that are elsewhere by now.
 */
async function mergedAs(
  store: TapeStore,
  { id, seq, name }: { readonly id: string; readonly seq: Seq; readonly name: string },
): Promise<readonly SessionInfo[]> {
  const below = (await store.sessions.list({ under: id, all: true })).filter(
    ({ session }) => session === name,
  );
  if (below.length === 1) return below;
  for await (const line of store.lineage.read({ types: ['merge', 'discard'] })) {
    if (line.into !== id || line.seq !== seq) continue;
    const child = await store.sessions.find(line.session);
    return child === undefined ? below : [child];
  }
  return below;
}

async function linesInto(store: TapeStore, child: string, into: string): Promise<ReadonlySet<Seq>> {
  const seqs = new Set<Seq>();
  for await (const line of store.lineage.read({ session: child, types: ['merge', 'discard'] }))
    if (line.into === into && line.seq !== undefined) seqs.add(line.seq);
  return seqs;
}

/** The positions or the head that a mark covers, if its child does not have them. */
async function rangeFault(
  store: TapeStore,
  child: SessionInfo,
  state: JsonObject,
): Promise<string | undefined> {
  const [from, to] = Array.isArray(state.range) ? state.range : [];
  if (
    typeof from !== 'number' ||
    typeof to !== 'number' ||
    from <= child.base ||
    from > to ||
    to > child.head
  )
    return `positions ${JSON.stringify(state.range ?? null)}`;
  const last = await ownEntry(store, child.id, to);
  return last?.hash === state.child_head
    ? undefined
    : `head ${String(state.child_head).slice(0, 8)} at @${to}`;
}

async function ownEntry(store: TapeStore, id: string, seq: Seq): Promise<Entry | undefined> {
  const [entry] = await Array.fromAsync(store.entries.read(id, { own: true, from: seq, to: seq }));
  return entry;
}

function stateOf({ payload }: Entry): JsonObject {
  return isObject(payload) && isObject(payload.state) ? payload.state : {};
}

function stringOf(payload: unknown, field: string): string | undefined {
  const value = isObject(payload) ? payload[field] : undefined;
  return typeof value === 'string' ? value : undefined;
}
