import type { Entry, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { factsOf, type SessionFacts } from './terms.ts';

/** The number of messages that are searched, from the end, for the last one of a run. */
const carriedMax = 10_000;
const pageSize = 20;

type AnsweredMessage = Pick<Entry, 'inherited' | 'meta'>;

/** The result of a search up to a position. It stays valid until a rewind goes back past that position. */
interface Found {
  readonly head: Seq;
  readonly message: AnsweredMessage | undefined;
}

const found = new WeakMap<TapeStore, Map<string, Found>>();

/**
 * The model that a session carries: the one that its last visible user message names. Every message that a
 * run takes up records the run's named model.
 * @param at the position to look from, among the entries visible now (default: the head)
 */
export async function modelCarried(
  store: TapeStore,
  { info, origin }: SessionFacts,
  { at }: { readonly at?: Seq } = {},
): Promise<string | undefined> {
  const message =
    at === undefined || at >= info.head ? await lastOf(store, info) : await search(store, info, { to: at });
  const { model } = origin.settings;
  const named = typeof message?.meta.model === 'string' ? message.meta.model : undefined;
  // The settings of a fork take precedence over an inherited message.
  return message?.inherited === true ? (model ?? named) : (named ?? model);
}

/** `modelCarried` by name or ULID; undefined for an unknown session. */
export async function carriedModel(
  store: TapeStore,
  session: string,
  o: { readonly at?: Seq } = {},
): Promise<string | undefined> {
  const info = await store.sessions.find(session);
  return info === undefined ? undefined : await modelCarried(store, await factsOf(store, info), o);
}

/** The last visible message that a run took up. */
async function lastOf(store: TapeStore, info: SessionInfo): Promise<AnsweredMessage | undefined> {
  const known = found.get(store) ?? new Map<string, Found>();
  found.set(store, known);
  const before = known.get(info.id);
  if (before?.head === info.head) return before.message;
  const holds = before !== undefined && (await isVisibleAs(store, info.id, before.head));
  const after = holds ? before.head : 0;
  const message =
    (await search(store, info, { after, to: info.head })) ?? (holds ? before.message : undefined);
  known.set(info.id, { head: info.head, message: message });
  return message;
}

/**
 * Whether the entries visible at a position are still the visible ones: no later rewind goes back past it.
 */
async function isVisibleAs(store: TapeStore, id: string, head: Seq): Promise<boolean> {
  const [range] = await store.views.ranges(id, { from: head });
  // A rewind entry hides itself.
  return range?.hiddenBy === undefined || range.hiddenBy === head;
}

/** The last visible message that a run took up, after one position and up to another. */
async function search(
  store: TapeStore,
  { id }: SessionInfo,
  { after = 0, to: last }: { readonly after?: Seq; readonly to: Seq },
): Promise<AnsweredMessage | undefined> {
  let to = last;
  for (let searched = 0; searched < carriedMax && to > after; searched += pageSize) {
    const page: Entry[] = [];
    for await (const entry of store.entries.read(id, {
      kind: 'message',
      last: pageSize,
      from: after + 1,
      to,
    }))
      page.push(entry);
    for (const { seq, payload, meta, inherited } of page.toReversed()) {
      const isUserMessage = isObject(payload) && payload.role === 'user';
      if (!isUserMessage || (meta.run === undefined && meta.model === undefined)) continue;
      const [range] = await store.views.ranges(id, { from: seq });
      if (range?.hiddenBy === undefined) return { inherited, meta };
    }
    if (page.length < pageSize || page[0] === undefined) return undefined;
    to = page[0].seq - 1;
  }
  return undefined;
}
