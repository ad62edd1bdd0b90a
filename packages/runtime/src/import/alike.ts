import type { SqliteTapeStore } from '@tapedeck/tape';
import { spineOf } from './change.ts';
import { copiesIn, firstKey } from './copies.ts';
import { importedIn } from './imported.ts';

/** A main conversation, and what its readers see of its source. */
export interface Alike {
  readonly session: string;
  /** It names the session of which it is a copy, and that is here. */
  readonly isPlaced: boolean;
  /** Its entries, by their keys and contents: records without an id have the same keys in any file. */
  readonly keys: readonly string[];
  /** When it said each of these, by its source: infinite where that does not tell. */
  readonly times: readonly number[];
}

/** A session, and how many entries another one has in common with it. */
export interface Likely {
  readonly session: string;
  readonly common: number;
}

/** The main conversations that begin with the same message as one of them, that one included. */
export function alike(store: SqliteTapeStore, session: string): readonly Alike[] {
  const id = store.sessions.find(session)?.id;
  const first = id === undefined ? undefined : firstKey(store, id);
  const copies = copiesIn(store);
  const ids = first === undefined ? [] : [...copies.beginningWith(first)];
  if (ids.length < 2) return [];
  return ids.flatMap((one) => {
    const info = store.sessions.find(one);
    if (info === undefined || info.lifecycle !== 'active') return [];
    const spine = spineOf(importedIn(store, info.session).shown);
    const times = new Map(
      [...store.entries.read(one)].map(({ seq, meta }) => [seq, Date.parse(String(meta.timestamp))]),
    );
    return {
      ...{
        session: info.session,
        isPlaced: copies.isPlaced(one),
        keys: spine.map(({ key, content = '' }) => `${key} ${content}`),
      },
      times: spine.map(({ seq }) => times.get(seq) ?? Number.NaN),
    };
  });
}

/**
 * The session of which another one is most likely a copy: of those that went on before it where the two part, the one with
 * the longest common beginning, and of several the one that went on first. Pure.
 */
export function likeliestSource(one: Alike, all: readonly Alike[]): Likely | undefined {
  const sources = all.flatMap((other) => {
    const common = commonOf(one.keys, other.keys);
    const [own, its] = [wentOn(one, common), wentOn(other, common)];
    const isFirst = its < own || (its === own && other.session < one.session);
    return other !== one && common > 0 && isFirst ? [{ session: other.session, common, at: its }] : [];
  });
  const [best] = sources.sort(
    (a, b) => b.common - a.common || a.at - b.at || (a.session < b.session ? -1 : 1),
  );
  return best;
}

function commonOf(a: readonly string[], b: readonly string[]): number {
  const parted = a.findIndex((key, i) => key !== b[i]);
  return parted === -1 ? a.length : parted;
}

/** When a session first said something behind its first entries. */
function wentOn({ times }: Alike, after: number): number {
  return times.slice(after).find((at) => !Number.isNaN(at)) ?? Number.MAX_SAFE_INTEGER;
}
