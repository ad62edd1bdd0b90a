import { setTimeout as sleep } from 'node:timers/promises';
import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import type { HomeHead } from '@tapedeck/tape/internal';
import { toneOf } from '../output/session.ts';
import { stated } from '../session/stated.ts';
import type { PageEvent } from './data.ts';
import { type PageSource, parentRefOf, refOf } from './source.ts';

/** How often the store is asked whether anything was written, in milliseconds: that takes microseconds. */
const pollMs = 50;
/** How often it is looked for processes that have died, which write nothing. */
const deadMs = 1_000;
/** Sessions that are named one by one at a time. */
const namedMax = 500;

/**
 * Yields what any process changes behind a place of the home, until the signal: together what was found together, so
 * that a page goes on behind all of it. The first events say which sessions run or wait. Takes no lock and holds no statement open between two events.
 */
export async function* follow(
  { store }: PageSource,
  { after, signal }: { readonly after: string; readonly signal: AbortSignal },
): AsyncGenerator<readonly PageEvent[]> {
  // What says the states is loaded before the first event needs it.
  await stated(store, []);
  // Before what is read: a write in between is found at once, and not when it is looked for processes that have died.
  let seen = store.changes();
  let found = store.atOnce(() => begun(store, after));
  for (;;) {
    const events = await eventsOf(store, found);
    if (events.length > 0) yield events;
    for (let waited = 0; store.changes() === seen && waited < deadMs; waited += pollMs) {
      if (signal.aborted) return;
      await sleep(pollMs, undefined, { signal }).catch(() => {});
    }
    if (signal.aborted) return;
    seen = store.changes();
    const before = found;
    found = store.atOnce(() => writtenSince(store, before));
  }
}

/** What changed up to a place of the home, and the sessions as they are there: all of it is read at one moment. */
interface Found {
  readonly head: HomeHead;
  /** The sessions with new lines of the lineage. */
  readonly lines: ReadonlySet<string>;
  /** What is said of each session; undefined where more changed than is named one by one. */
  readonly changed: ReadonlyMap<string, PageEvent['what']> | undefined;
  readonly infos: readonly SessionInfo[];
  /** The sessions that a process holds. */
  readonly owned: ReadonlySet<string>;
}

/** What a page lacks that begins at a place: what was written since, and what runs or waits. */
function begun(store: HomeStore, after: string): Found {
  const from = headIn(after);
  const owned = ownedIn(store);
  if (from === undefined) return { head: store.homeHead(), ...{ owned, ...unnamed } };
  const open = store.sessions.list({ pending: true, all: true, deleted: false, limit: namedMax });
  return foundBehind(store, { from, states: open.map(({ id }) => id), owned });
}

/** A lease says more of a state than what is on a tape, and changes without it. */
function writtenSince(store: HomeStore, before: Found): Found {
  const owned = ownedIn(store);
  const states = [...before.owned.symmetricDifference(owned)];
  return foundBehind(store, { from: before.head, states, owned });
}

function foundBehind(
  store: HomeStore,
  {
    from,
    states,
    owned,
  }: {
    readonly from: HomeHead;
    /** The sessions whose states may have changed without an entry. */
    readonly states: readonly string[];
    readonly owned: ReadonlySet<string>;
  },
): Found {
  const { head, entries, lines, isMore } = store.writtenBehind(from);
  const changed = new Map<string, PageEvent['what']>([
    ...states.map((id) => [id, 'state'] as const),
    ...entries.map((id) => [id, 'entries'] as const),
    ...lines.map((id) => [id, 'lineage'] as const),
  ]);
  if (isMore || changed.size > namedMax) return { head, owned, ...unnamed };
  const ids = [...changed.keys()];
  const infos = ids.length === 0 ? [] : [...store.readSessions({ ids, all: true, deleted: false })];
  return { head, lines: new Set(lines), changed, infos, owned };
}

/** More changed than is named one by one. */
const unnamed: Pick<Found, 'lines' | 'changed' | 'infos'> = {
  ...{ lines: new Set(), changed: undefined, infos: [] },
};

const everything: Omit<PageEvent, 'at'> = {
  ...{ what: 'all', session: '', id: '', head: 0, state: '', tone: 'plain' },
};

/** An event for each session that changed, as it was then. */
async function eventsOf(
  store: HomeStore,
  { head, lines, changed, infos }: Found,
): Promise<readonly PageEvent[]> {
  const at = textOf(head);
  if (changed === undefined) return [{ ...everything, at }];
  if (changed.size === 0) return [];
  const there = new Set(infos.map(({ id }) => id));
  const gone = [...lines].filter((id) => !there.has(id));
  return [
    ...(await stated(store, infos)).map(({ info, state }): PageEvent => {
      const parent = parentRefOf(info);
      return {
        at,
        what: changed.get(info.id) ?? 'state',
        session: refOf(store, info),
        id: info.id,
        ...(parent !== undefined && { parent }),
        head: info.head,
        state,
        tone: toneOf(state),
      };
    }),
    ...gone.map((id) => ({ ...everything, at, what: 'lineage' as const, id, state: 'deleted' })),
  ];
}

function ownedIn(store: HomeStore): ReadonlySet<string> {
  return new Set(store.leases.list().map(({ id }) => id));
}

/** A place of the home as pages keep it. */
export function textOf({ entry, line }: HomeHead): string {
  return `${entry}.${line}`;
}

function headIn(text: string): HomeHead | undefined {
  const [, entry, line] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  return entry === undefined ? undefined : { entry: Number(entry), line: Number(line) };
}
