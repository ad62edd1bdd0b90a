import { type Entry, type HomeStore, type Json, TapeError, view } from '@tapedeck/tape';
import { isObject, policyText } from '@tapedeck/tape/internal';
import { policyOfLastCall, receivedManifest } from '../session/received.ts';
import { roleOf } from '../transcript/wanted.ts';
import { isDamaged } from './damaged-reads.ts';
import type { PageData, Seen, SeenRange } from './data.ts';
import { differenceOf, type Range } from './ranges.ts';
import { lineOf, needShown, type PageSource, placesOf, refOf } from './source.ts';
import { flat } from './texts.ts';

/** Ranges of an answer, and of what changed; and characters of a text of a manifest. */
const rangesMax = 500;
const changedMax = 200;
const textMax = 200;
/** Entries of a view that is made again, or anew: to render more of them would keep others waiting. */
const entriesMax = 5_000;

/**
 * What the model was given for the answer at a position, or what a view would be there.
 * @param most entries of a recorded view that is made again
 */
export function seen(
  source: PageSource,
  { session, seq }: Parameters<PageData['seen']>[0],
  most: number = entriesMax,
): Seen {
  const { store } = source;
  const info = needShown(store, session);
  const at = store.entries.resolve(info.id, seq);
  const place = placesOf(store, info)(at);
  const entry = entryOf(store, info.id, at);
  const received = receivedManifest(store, info.id, at, most);
  const manifest: Readonly<Record<string, Json>> = received ?? viewAt(store, info.id, at);
  const ranges = rangesIn(manifest);
  const before = received === undefined ? undefined : answerBefore(store, info.id, at);
  const { target, digest, pruned, same, fault } = manifest;
  const isUnread = entry === 'damaged' || (isObject(fault) && fault.code === 'TAPE_CORRUPT');
  return {
    session: refOf(store, info),
    seq: at,
    entry,
    ...(entry !== 'answer' && { nearest: nearestAnswers(store, info.id, at) }),
    ...sizeOf(manifest),
    ...(typeof target === 'string' && { target: flat(target, textMax) }),
    digest: typeof digest === 'string' ? flat(digest, textMax) : '',
    ...(typeof pruned === 'number' && { pruned }),
    ...(typeof same === 'boolean' && { same }),
    ...(isObject(fault) && { fault: flat(String(fault.message), textMax) }),
    recorded: received !== undefined,
    ranges: ranges.slice(-rangesMax),
    ...(ranges.length > rangesMax && { more: ranges.length - rangesMax }),
    ...(before !== undefined && {
      before: {
        seq: before.seq,
        ...sizeOf(before.manifest),
        ...changesOf(rangesIn(before.manifest), ranges),
      },
    }),
    commands: isUnread
      ? [{ what: 'Say what is wrong', line: lineOf(source, 'check', [refOf(store, info)]) }]
      : [
          { what: 'Print the messages', line: lineOf(source, 'view', [place]) },
          { what: 'Print each entry with the reason', line: lineOf(source, 'view', [place], ['--explain']) },
        ],
  };
}

function entryOf(store: HomeStore, id: string, at: number): Seen['entry'] {
  const [entry] = store.entries.read(id, { from: at, to: at });
  if (entry === undefined) return 'other';
  if (isDamaged(entry)) return 'damaged';
  return isAnswer(entry) ? 'answer' : 'other';
}

/** Whether a model said an entry. One whose content was erased is known by the model. */
function isAnswer(entry: Entry): boolean {
  return roleOf(entry) === 'assistant' || typeof entry.meta.model === 'string';
}

/** The answers around a position. */
function nearestAnswers(store: HomeStore, id: string, at: number): readonly number[] {
  const before = [...store.entries.read(id, { to: at, kind: 'message', last: lookedMax })];
  const behind = store.entries.read(id, { from: at, kind: 'message', limit: lookedMax });
  return [before.findLast(isAnswer), Iterator.from(behind).find(isAnswer)].flatMap((entry) =>
    entry === undefined ? [] : [entry.seq],
  );
}

function viewAt(store: HomeStore, id: string, at: number): Readonly<Record<string, Json>> {
  const policy = policyOfLastCall(store, id, at);
  try {
    const entries = [...Iterator.from(store.views.entries(id, { policy, at })).take(entriesMax + 1)];
    if (entries.length > entriesMax) {
      const message = `the view has more than ${entriesMax} entries`;
      return { policy: policyText(policy), fault: { message } };
    }
    return view(entries, { policy }).manifest() as unknown as Readonly<Record<string, Json>>;
  } catch (error) {
    if (!(error instanceof TapeError) || error.code !== 'TAPE_CORRUPT') throw error;
    return { policy: policyText(policy), fault: { code: error.code, message: error.message } };
  }
}

/** A manifest comes from the tape: what it says can be any JSON. */
function sizeOf({ policy, tokens }: Readonly<Record<string, Json>>): Pick<Seen, 'policy' | 'tokens'> {
  return {
    policy: typeof policy === 'string' ? flat(policy, textMax) : '',
    tokens: typeof tokens === 'number' ? tokens : 0,
  };
}

/** The ranges of a manifest, those that were in the view and the others, in order. */
function rangesIn(manifest: Readonly<Record<string, Json>>): readonly SeenRange[] {
  const read = (list: Json | undefined, isIn: boolean) =>
    (Array.isArray(list) ? list : []).flatMap((range): readonly SeenRange[] => {
      const [from, to, why] = Array.isArray(range) ? range : [];
      if (typeof from !== 'number' || typeof to !== 'number') return [];
      return [
        { from, to, in: isIn, why: typeof why === 'string' ? flat(why, textMax) : isIn ? 'in view' : '' },
      ];
    });
  return [...read(manifest.in, true), ...read(manifest.out, false)].sort((a, b) => a.from - b.from);
}

/** What is in a view that was not in the one before, and what is no longer in it, with the reason. */
function changesOf(
  was: readonly SeenRange[],
  is: readonly SeenRange[],
): Pick<NonNullable<Seen['before']>, 'added' | 'removed'> {
  const shown = (ranges: readonly SeenRange[]) =>
    ranges.flatMap(({ in: isIn, from, to }): readonly Range[] => (isIn ? [[from, to]] : []));
  const gone = differenceOf(shown(was), shown(is));
  const why = (at: number) => is.find((range) => !range.in && range.from <= at && at <= range.to);
  const removed = gone.slice(0, changedMax).flatMap(([from, to]) => {
    const parts: SeenRange[] = [];
    for (let at = from; at <= to && parts.length < changedMax; ) {
      const range = why(at);
      const end = Math.min(to, range?.to ?? to);
      parts.push({ from: at, to: end, in: false, why: range?.why ?? '' });
      at = end + 1;
    }
    return parts;
  });
  return {
    added: differenceOf(shown(is), shown(was)).slice(0, changedMax),
    removed: removed.slice(0, changedMax),
  };
}

/** Answers that are looked at for one whose view is recorded. */
const lookedMax = 400;
const pageSize = 20;

/** The last answer before a position, of what is visible there, whose view is recorded. */
function answerBefore(
  store: HomeStore,
  id: string,
  at: number,
): { readonly seq: number; readonly manifest: Readonly<Record<string, Json>> } | undefined {
  let looked = 0;
  for (const { from, to, hiddenBy } of store.views.ranges(id, { at }).toReversed()) {
    if (hiddenBy !== undefined) continue;
    for (let end = Math.min(to, at - 1); end >= from && looked < lookedMax; ) {
      const found = [...store.entries.read(id, { from, to: end, kind: 'message', last: pageSize })];
      for (const { seq, meta } of found.toReversed())
        if (isObject(meta.view)) return { seq, manifest: meta.view };
      looked += found.length;
      if (found.length < pageSize) break;
      end = (found[0]?.seq ?? from) - 1;
    }
  }
  return undefined;
}
