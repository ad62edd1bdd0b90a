import { setTimeout as sleep } from 'node:timers/promises';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { type HomeHead, treeParentOf } from '@tapedeck/tape/internal';
import { toneOf } from '../output/session.ts';
import { stated } from '../session/stated.ts';
import type { PageEvent } from './data.ts';
import { type PageSource, refOf } from './source.ts';

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
  let owned = ownedIn(store);
  let { head, lines, changed, isMore } = begun(store, after);
  for (;;) {
    const seen = store.changes();
    const events =
      isMore || changed.size > namedMax
        ? [{ ...everything, at: textOf(head) }]
        : await eventsOf(store, { head, lines, changed });
    if (events.length > 0) yield events;
    for (let waited = 0; store.changes() === seen && waited < deadMs; waited += pollMs) {
      if (signal.aborted) return;
      await sleep(pollMs, undefined, { signal }).catch(() => {});
    }
    if (signal.aborted) return;
    const written = store.writtenBehind(head);
    const now = ownedIn(store);
    ({ head, isMore } = written);
    lines = new Set(written.lines);
    // A lease says more of a state than what is on a tape, and changes without it.
    changed = new Map([
      ...[...owned.symmetricDifference(now)].map((id) => [id, 'state'] as const),
      ...written.entries.map((id) => [id, 'entries'] as const),
      ...written.lines.map((id) => [id, 'lineage'] as const),
    ]);
    owned = now;
  }
}

interface Changes {
  readonly head: HomeHead;
  readonly lines: ReadonlySet<string>;
  /** What is said of each session. */
  readonly changed: ReadonlyMap<string, PageEvent['what']>;
}

/** What a page lacks that begins at a place: what was written since, and what runs or waits. */
function begun(store: SqliteTapeStore, after: string): Changes & { readonly isMore: boolean } {
  const from = headIn(after);
  const written = from === undefined ? undefined : store.writtenBehind(from);
  if (written === undefined)
    return { head: store.homeHead(), lines: new Set(), changed: new Map(), isMore: true };
  const { head, entries, lines, isMore } = written;
  const open = store.sessions.list({ pending: true, all: true, deleted: false, limit: namedMax });
  return {
    head,
    isMore,
    lines: new Set(lines),
    changed: new Map([
      ...open.map(({ id }) => [id, 'state'] as const),
      ...entries.map((id) => [id, 'entries'] as const),
      ...lines.map((id) => [id, 'lineage'] as const),
    ]),
  };
}

const everything: Omit<PageEvent, 'at'> = {
  ...{ what: 'all', session: '', id: '', head: 0, state: '', tone: 'plain' },
};

/** An event for each session that changed, as it is now. */
async function eventsOf(
  store: SqliteTapeStore,
  { head, lines, changed }: Changes,
): Promise<readonly PageEvent[]> {
  if (changed.size === 0) return [];
  const at = textOf(head);
  const infos = [...store.readSessions({ ids: [...changed.keys()], all: true, deleted: false })];
  const there = new Set(infos.map(({ id }) => id));
  const gone = [...lines].filter((id) => !there.has(id));
  return [
    ...(await stated(store, infos)).map(({ info, state }): PageEvent => {
      const { parent } = treeParentOf(info);
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

function ownedIn(store: SqliteTapeStore): ReadonlySet<string> {
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
