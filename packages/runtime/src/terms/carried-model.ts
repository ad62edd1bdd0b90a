import { type Entry, isObject, type Seq, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { factsOf, type SessionFacts } from './terms.ts';

/** How many messages of a session are searched, from its end, for one that a run took in. */
const carriedMax = 10_000;
const pageSize = 20;

type TakenMessage = Pick<Entry, 'inherited' | 'meta'>;

/** What was found up to a position. Entries before it do not change, so it holds as long as no rewind goes back past it. */
interface Found {
  readonly head: Seq;
  readonly asked: TakenMessage | undefined;
}

const found = new WeakMap<TapeStore, Map<string, Found>>();

/**
 * The model that a session goes on with, because a message named it, until another names another (G54). Every message that a
 * run takes in bears it, so that the last of them tells; those that a rewind hides do not count.
 * @param at a position: the model that it went on with there, of what is visible now
 */
export async function modelCarried(
  store: TapeStore,
  { info, origin }: SessionFacts,
  { at }: { readonly at?: Seq } = {},
): Promise<string | undefined> {
  const asked =
    at === undefined || at >= info.head ? await lastOf(store, info) : await search(store, info, { to: at });
  const { model } = origin.settings;
  const named = typeof asked?.meta.model === 'string' ? asked.meta.model : undefined;
  // A message that was inherited was not meant for what the session was forked to run with.
  return asked?.inherited === true ? (model ?? named) : (named ?? model);
}

/** `modelCarried` of a session that is given by its name or ULID; undefined when there is none. */
export async function carriedModel(
  store: TapeStore,
  session: string,
  o: { readonly at?: Seq } = {},
): Promise<string | undefined> {
  const info = await store.find(session);
  return info === undefined ? undefined : await modelCarried(store, await factsOf(store, info), o);
}

/** The last visible message that a run took in. */
async function lastOf(store: TapeStore, info: SessionInfo): Promise<TakenMessage | undefined> {
  const known = found.get(store) ?? new Map<string, Found>();
  found.set(store, known);
  const before = known.get(info.id);
  if (before?.head === info.head) return before.asked;
  const holds = before !== undefined && (await isVisibleAs(store, info.id, before.head));
  const after = holds ? before.head : 0;
  const asked = (await search(store, info, { after, to: info.head })) ?? (holds ? before.asked : undefined);
  known.set(info.id, { head: info.head, asked });
  return asked;
}

/** Whether what was visible at a position is what is visible of it now: no later rewind goes back past it. */
async function isVisibleAs(store: TapeStore, id: string, head: Seq): Promise<boolean> {
  const by = await store.hiddenBy(id, head);
  // A rewind is never visible itself.
  return by === undefined || by === head;
}

/** The last visible message that a run took in, after a position and up to another. */
async function search(
  store: TapeStore,
  { id }: SessionInfo,
  { after = 0, to: last }: { readonly after?: Seq; readonly to: Seq },
): Promise<TakenMessage | undefined> {
  let to = last;
  for (let searched = 0; searched < carriedMax && to > after; searched += pageSize) {
    const page: Entry[] = [];
    for await (const entry of store.read(id, { kind: 'message', last: pageSize, from: after + 1, to }))
      page.push(entry);
    for (const { seq, payload, meta, inherited } of page.toReversed()) {
      const isAsked = isObject(payload) && payload.role === 'user';
      if (!isAsked || (meta.run === undefined && meta.model === undefined)) continue;
      if ((await store.hiddenBy(id, seq)) === undefined) return { inherited, meta };
    }
    if (page.length < pageSize || page[0] === undefined) return undefined;
    to = page[0].seq - 1;
  }
  return undefined;
}
