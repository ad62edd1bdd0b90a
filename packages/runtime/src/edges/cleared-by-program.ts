import { type HomeStore, note, type SessionInfo } from '@tapedeck/tape';
import { isObject, treeParentOf } from '@tapedeck/tape/internal';
import type { Clear } from '../copies/clears.ts';
import { copiesIn } from '../copies/copies.ts';
import { clearedAtEvent, leftAtEvent } from '../imported/copy-notes.ts';
import { knownSessionsIn } from '../imported/known-sessions.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { text } from '../plan/text.ts';
import { appendBeside } from './beside.ts';
import { pairsOf, within } from './clear-pairs.ts';
import { clearType } from './cleared.ts';
import { link, type OnConcluded } from './link.ts';

/** Takes note of when a program left a session by a `/clear`, and of when it began one behind that. */
export function noteClears(store: HomeStore, { clearedAt, leftAt = [] }: ImportPlan, session: string): void {
  const id = store.sessions.find(session)?.id;
  if (id === undefined || (clearedAt === undefined && leftAt.length === 0)) return;
  const say = (name: string, at: string | undefined) => {
    const isNoted = [...store.entries.read(id, { own: true, name })].some(
      ({ payload }) => payload === null || (isObject(payload) && payload.at === at),
    );
    if (at === undefined || isNoted) return;
    appendBeside(store, id, [{ ...note(name, { at }), key: `${name.replace('/', ':')}:${at}` }]);
    copiesIn(store).wrote(id);
  };
  say(clearedAtEvent, clearedAt);
  for (const at of leftAt) say(leftAtEvent, at);
}

/** Puts the sessions that a program began behind a `/clear` under those that it left, where just one of each fits. */
export function placeClears(
  store: HomeStore,
  { clearedAt, leftAt = [] }: Pick<ImportPlan, 'clearedAt' | 'leftAt'>,
  onConcluded: OnConcluded,
): void {
  for (const at of [clearedAt, ...leftAt])
    if (at !== undefined) placeAround(store, Date.parse(at), onConcluded);
}

/** Puts a session back under the one that its program left, once it is below no other one that begins as it does. */
export function placeClearAgain(store: HomeStore, info: SessionInfo, onConcluded: OnConcluded): void {
  const { clearedAt } = knownSessionsIn(store).of(info);
  if (clearedAt !== undefined) placeAround(store, Date.parse(clearedAt), onConcluded);
}

/** What is new at a time can change which others fit each other, as far as these are near to it. */
function placeAround(store: HomeStore, time: number, onConcluded: OnConcluded): void {
  const { clears, tools } = copiesIn(store);
  const moments = clears.around(time, 2 * within).flatMap((one) => {
    const info = store.sessions.find(tools.mainOf(one.source) ?? '');
    return info === undefined ? [] : [{ ...one, info, directory: directoryOf(store, info.id) }];
  });
  for (const inOne of Map.groupBy(moments, ({ directory }) => directory).values()) {
    const pairs = pairsOf(inOne.filter(({ isLeft, info }) => isLeft || isAlone(store, info)));
    for (const one of inOne)
      if (!one.isLeft && Math.abs(one.at - time) <= within)
        placeBehind(store, one, one.directory === undefined ? undefined : pairs.get(one), onConcluded);
  }
}

/** A moment, and the session that it is of. */
interface Placed extends Clear {
  readonly info: SessionInfo;
}

/** @param before what was left; undefined where that is not sure */
function placeBehind(
  store: HomeStore,
  { at, info }: Placed,
  before: Placed | undefined,
  onConcluded: OnConcluded,
): void {
  if (before !== undefined) {
    const evidence = `it begins with a /clear, ${at - before.at} ms after that session took one from its queue`;
    link(store, info.id, before.info.id, { type: clearType, derived: true, evidence, onConcluded });
    return;
  }
  // What was concluded before another one came.
  if (info.link?.type !== clearType || info.link.derived !== true || namesRun(store, info)) return;
  const evidence = 'it begins with a /clear, and no record or time says of which session';
  link(store, info.id, null, { type: clearType, derived: true, evidence, onConcluded });
}

/** Where a session began, as its first message says. */
function directoryOf(store: HomeStore, id: string): string | undefined {
  const [first] = store.entries.read(id, { kind: 'message', limit: 1 });
  const place = first?.meta.place;
  return isObject(place) ? text(place.cwd) : undefined;
}

/**
 * Whether no record says what a session belongs to: it names no run and no source, and is below none that begins as it does, which
 * has the `/clear`. A person may have moved it.
 */
function isAlone(store: HomeStore, info: SessionInfo): boolean {
  const { type } = info.link ?? {};
  const isCopy = treeParentOf(info).parentId !== undefined && type !== clearType && type !== 'moved';
  return !isCopy && !namesRun(store, info) && knownSessionsIn(store).of(info).copyOf.length === 0;
}

function namesRun(store: HomeStore, info: SessionInfo): boolean {
  return knownSessionsIn(store).of(info).clearedFrom !== undefined;
}
