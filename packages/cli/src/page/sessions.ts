import type { HomeStore, SessionInfo } from '@tapedeck/tape';
import { familyOf, inFamilies, isListed, type Member, mentions } from '../session/listing.ts';
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
  store: HomeStore,
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

/** An offset has the number of a root, and that of a member of its family. */
const treeMax = 1_000_000;

/** Lists what a query selects, each below its nearest ancestor that it selects too. */
async function listTrees(
  store: HomeStore,
  { find = '', kind = '', state, all = false, offset = 0 }: SessionsQuery,
): Promise<Page<SessionRow>> {
  const isFiltered = find !== '' || state !== undefined;
  const isCandidate = (info: SessionInfo) => isListed(info, { all }) && (kind === '' || info.kind === kind);
  const { steps, next } = walk(store, { offset, isCandidate, max: isFiltered ? lookedMax : rowsMax });
  const candidates = steps.filter(({ info, isAbove }) => isCandidate(info) && (isFiltered || !isAbove));
  const states = await statesOf(
    store,
    candidates.map(({ info }) => info),
  );
  const isSelected = ({ info }: Step) => {
    if (!isFiltered) return isCandidate(info);
    const one = states.get(info.id);
    return one !== undefined && isIn(one, state) && (find === '' || mentions(store, one.info, find));
  };
  const rows: SessionRow[] = [];
  // Of each step, how many are selected of it and what is above it.
  const depths: number[] = [];
  for (const step of steps) {
    const depth = depths[step.above] ?? 0;
    const isRow = isSelected(step);
    depths.push(isRow ? depth + 1 : depth);
    const one = states.get(step.info.id);
    if (!isRow || step.isAbove || one === undefined) continue;
    if (rows.length === rowsMax) return { rows, next: step.offset };
    rows.push(sessionRow(one, depth));
  }
  return { rows, ...(next !== undefined && { next }) };
}

/** A session that an answer looks at. */
interface Step {
  readonly info: SessionInfo;
  readonly offset: number;
  /** The number of the step to the session above it; -1 for a root. */
  readonly above: number;
  /** Whether it is of an earlier part: it is here for what is below it. */
  readonly isAbove: boolean;
}

interface Walk {
  readonly offset: number;
  readonly isCandidate: (info: SessionInfo) => boolean;
  /** The most candidates. */
  readonly max: number;
}

/** Walks through the trees of a home from an offset on, with what is above that. */
function walk(
  store: HomeStore,
  { offset, isCandidate, max }: Walk,
): { readonly steps: readonly Step[]; readonly next?: number } {
  const steps: Step[] = [];
  let [root, from] = [Math.floor(offset / treeMax), offset % treeMax];
  let [looked, candidates] = [0, 0];
  for (const info of store.readSessions({ ...inFamilies, roots: true, offset: root, limit: lookedMax + 1 })) {
    const family = familyOf(store, info);
    const numbers = new Map<number, number>();
    const add = ({ info, above }: Member, at: number, isAbove: boolean) => {
      const step = { info, offset: root * treeMax + at, above: numbers.get(above) ?? -1, isAbove };
      numbers.set(at, steps.push(step) - 1);
    };
    for (const at of lineTo(family, from)) add(family[at] as Member, at, true);
    for (const [i, member] of family.slice(from).entries()) {
      const at = from + i;
      if (candidates === max || looked === lookedMax) return { steps, next: root * treeMax + at };
      add(member, at, false);
      looked += 1;
      if (isCandidate(member.info)) candidates += 1;
    }
    [root, from] = [root + 1, 0];
  }
  return { steps };
}

/** The places of all that is above a member of a family, the root first. */
function lineTo(family: readonly Member[], at: number): readonly number[] {
  const line: number[] = [];
  for (let above = family[at]?.above ?? -1; above >= 0; above = family[above]?.above ?? -1) line.push(above);
  return line.reverse();
}

/** Reads what rows show beside names, and what sessions are in: of these alone, whatever the size of their trees. */
async function statesOf(
  store: HomeStore,
  infos: readonly SessionInfo[],
): Promise<ReadonlyMap<string, Stated>> {
  const ids = infos.map(({ id }) => id);
  const whole = new Map<string, SessionInfo>();
  for (const info of store.readSessions({ ids, all: true, counts: true, titles: true }))
    whole.set(info.id, info);
  const states = await stated(
    store,
    infos.map((info) => whole.get(info.id) ?? info),
  );
  return new Map(states.map((one) => [one.info.id, one]));
}
