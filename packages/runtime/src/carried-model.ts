import { type Entry, isObject, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { forkTermsOf } from './settings.ts';

/** How many messages of a session are searched, from its end, for one that a run took in. */
const carriedMax = 10_000;
const pageSize = 20;

/** What was found up to a position. Entries before it do not change, so it holds for as long as the session does. */
interface Found {
  readonly head: number;
  readonly asked: Pick<Entry, 'inherited' | 'meta'> | undefined;
}

const found = new WeakMap<TapeStore, Map<string, Found>>();

/**
 * The model that a session goes on with, because a message named it, until one names another (G54). Every message that a
 * run takes in bears it, so that the last of them tells.
 */
export async function carriedModel(store: TapeStore, session: string): Promise<string | undefined> {
  const info = await store.find(session);
  if (info === undefined) return undefined;
  const known = found.get(store) ?? new Map<string, Found>();
  found.set(store, known);
  const before = known.get(info.id);
  const asked = (await lastAsked(store, info, before?.head ?? 0)) ?? before?.asked;
  known.set(info.id, { head: info.head, asked });
  const { model } = (await forkTermsOf(store, info)).settings;
  const named = typeof asked?.meta.model === 'string' ? asked.meta.model : undefined;
  // A message that was inherited was not meant for what the session was forked to run with.
  return asked?.inherited === true ? (model ?? named) : (named ?? model);
}

/** The last message after a position that a run took in. */
async function lastAsked(
  store: TapeStore,
  { id, head }: SessionInfo,
  after: number,
): Promise<Pick<Entry, 'inherited' | 'meta'> | undefined> {
  let to = head;
  for (let searched = 0; searched < carriedMax && to > after; searched += pageSize) {
    const page: Entry[] = [];
    for await (const entry of store.read(id, { kind: 'message', last: pageSize, from: after + 1, to }))
      page.push(entry);
    const asked = page.findLast(
      ({ payload, meta }) =>
        isObject(payload) && payload.role === 'user' && (meta.run !== undefined || meta.model !== undefined),
    );
    if (asked !== undefined) return { inherited: asked.inherited, meta: asked.meta };
    if (page.length < pageSize || page[0] === undefined) return undefined;
    to = page[0].seq - 1;
  }
  return undefined;
}
