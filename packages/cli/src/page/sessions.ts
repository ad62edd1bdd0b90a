import type { SessionInfo, SqliteTapeStore } from '@tapedeck/tape';
import { isSummarizer } from '@tapedeck/tape/internal';
import { mentions, type Placed, withDescendants } from '../session/listing.ts';
import { type Stated, stated, statedInParts } from '../session/stated.ts';
import type { Page, SessionRow, SessionsQuery } from './data.ts';
import { sessionRow } from './session-row.ts';
import type { PageSource } from './source.ts';

/** Rows of an answer. */
const rowsMax = 200;
/** Sessions that an answer looks at, where it leaves some out. */
const lookedMax = 500;

/** Lists sessions as `tape sessions` does, a part at a time. */
export async function sessions({ store }: PageSource, query: SessionsQuery): Promise<Page<SessionRow>> {
  return query.tree === true ? await listTrees(store, query) : await listSessions(store, query);
}

async function listSessions(
  store: SqliteTapeStore,
  { find = '', kind, state, sort, all, offset = 0 }: SessionsQuery,
): Promise<Page<SessionRow>> {
  const which = {
    deleted: false,
    ...(all === true && { all }),
    ...(kind !== undefined && kind !== '' && { kind }),
  };
  const isFiltered = find !== '' || state !== undefined;
  const limit = isFiltered ? lookedMax : rowsMax;
  const found = store.readSessions({
    ...which,
    ...(sort !== undefined && { order: sort }),
    // What is open is found without looking at what has ended.
    ...(state === 'open' && { pending: true }),
    ...{ counts: true, titles: true, offset, limit: limit + 1 },
  });
  const rows: SessionRow[] = [];
  let looked = 0;
  let isMore = false;
  for await (const one of statedInParts(store, found)) {
    isMore = looked === limit || rows.length === rowsMax;
    if (isMore) break;
    looked += 1;
    if (isIn(one, state) && (find === '' || mentions(store, one.info, find))) rows.push(sessionRow(one));
  }
  return {
    rows,
    ...(isMore && { next: offset + looked }),
    ...(!isFiltered && { total: store.countListed(which) }),
  };
}

function isIn({ state }: Stated, wanted: SessionsQuery['state']): boolean {
  if (wanted === 'open') return /^(?:busy|running|waiting|interrupted)$/.test(state);
  if (wanted === 'merged') return /^merged\b/.test(state);
  return wanted === undefined || /^(?:merged, )?(?:failed|halted|aborted|orphaned|filtered)$/.test(state);
}

/** An offset has the number of a root, and that of a row of its tree. */
const treeMax = 1_000_000;

/** Lists sessions without a parent, each with all below it. The query selects roots. */
async function listTrees(
  store: SqliteTapeStore,
  { find = '', kind, state, all, offset = 0 }: SessionsQuery,
): Promise<Page<SessionRow>> {
  let [root, row] = [Math.floor(offset / treeMax), offset % treeMax];
  const listed = { deleted: false, ...(all === true && { all }) };
  const roots = store.readSessions({
    ...listed,
    ...(kind !== undefined && kind !== '' && { kind }),
    ...{ roots: true, offset: root, limit: lookedMax + 1 },
  });
  const last = root + lookedMax;
  const placed: Placed[] = [];
  let next: number | undefined;
  for await (const one of statedInParts(store, roots)) {
    if (placed.length === rowsMax || root === last) {
      next = root * treeMax;
      break;
    }
    if (isIn(one, state) && (find === '' || mentions(store, one.info, find))) {
      const below = store.sessions.list({ under: one.info.id, ...listed });
      const family = withDescendants(
        one.info,
        below.filter((info) => !isSummarizer(info)),
      );
      const shown = family.slice(row, row + rowsMax - placed.length);
      placed.push(...shown);
      row += shown.length;
      if (row < family.length) {
        next = root * treeMax + row;
        break;
      }
    }
    [root, row] = [root + 1, 0];
  }
  return { rows: await rowsOf(store, placed), ...(next !== undefined && { next }) };
}

/** Reads what the rows of a tree show beside names and states: of these alone, whatever the size of the tree. */
async function rowsOf(store: SqliteTapeStore, placed: readonly Placed[]): Promise<readonly SessionRow[]> {
  const ids = placed.map(({ info }) => info.id);
  const whole = new Map<string, SessionInfo>();
  for (const info of store.readSessions({ ids, all: true, counts: true, titles: true }))
    whole.set(info.id, info);
  const states = await stated(
    store,
    placed.map(({ info }) => whole.get(info.id) ?? info),
  );
  return states.map((one, i) => sessionRow(one, placed[i]?.depth));
}
