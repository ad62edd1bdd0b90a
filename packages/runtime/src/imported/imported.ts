/**
 * What is on tapes of transcripts: the entries of a session (`imported.ts`), read once as long as that is as it was (`states.ts`),
 * with the keys of their records (`keys.ts`), also erased ones (`erased.ts`), the notes of its sources and of what it is a copy
 * of (`origins.ts`, `copy-notes.ts`), the edges that were concluded (`derived-edges.ts`), how it begins (`first-said.ts`), and
 * the tokens that were counted (`ledger.ts`), once for each API call (`api-call.ts`). `change.ts` concludes from that what a plan
 * adds, but for what only stands in another line (`moved-lines.ts`). What an import has to know of all sessions is read of each
 * once (`session-facts.ts`, `known-sessions.ts`).
 * Imports `plan` and what lies below.
 */

import { hash } from 'node:crypto';
import type { Draft, Entry, HomeStore, JsonObject, Seq } from '@tapedeck/tape';
import { clientCalls, importedEvent, isObject } from '@tapedeck/tape/internal';
import { type Base, isAside, type SaidIn } from '../plan/plan.ts';
import { type ApiCall, apiCallOf } from './api-call.ts';
import { isErased } from './erased.ts';
import { keyOf, saysLine } from './keys.ts';
import { statesIn } from './states.ts';

/** An entry of an import that readers see. Its content is not kept: a session can be larger than the memory. */
export interface Shown extends Pick<Entry, 'seq' | 'kind'> {
  readonly mark: Entry['mark'] | undefined;
  readonly name: string | undefined;
  readonly ref: Seq | undefined;
  /** The key of its draft. */
  readonly key: string;
  /** What its content is known by; undefined where that was redacted. */
  readonly content: string | undefined;
  /** How long its content is, as JSON. */
  readonly length: number;
  /** The calls that a message makes. */
  readonly calls: readonly string[];
}

/** The tokens that were counted: for an answer, by its key, and for the call that it answers. */
export interface Counted {
  readonly counted: (key: string) => JsonObject | undefined;
  readonly answered: (call: ApiCall) => JsonObject | undefined;
}

/** The records that a tape has of an import. */
export interface Records {
  /** The keys of all that it has, also of what it inherits. */
  readonly known: ReadonlySet<string>;
  /**
   * Those beside its conversation whose keys say their lines alone, by their keys: in another file another record can be in the
   * same line. Has those of which the content was read.
   */
  readonly byLine: ReadonlyMap<string, readonly Shown[]>;
}

/** An answer by its key. */
interface CountedAnswer extends Pick<ApiCall, 'response'> {
  readonly key: string;
}

/** What a tape has of an import. */
export interface Imported extends Records {
  /** The entries of the import that readers see, in order. */
  readonly shown: readonly Shown[];
  /** How often each key was written to the tape itself, whether or not a rewind hides it. */
  readonly written: ReadonlyMap<string, number>;
  /** Of the keys, those of what was erased. */
  readonly erased: ReadonlySet<string>;
  /** The tokens that were counted for a key. */
  readonly counted: ReadonlyMap<string, JsonObject>;
  /** The answers to each request whose tokens were counted. */
  readonly answers: ReadonlyMap<string, readonly CountedAnswer[]>;
  /** The tokens that were counted elsewhere, and count no more here. */
  readonly elsewhere?: Counted | undefined;
  /** What was erased in other sessions that have the same records, wherever they have them, and what beside them quotes it. */
  readonly erasedElsewhere?:
    | {
        has(conversation: SaidIn, place: number): boolean;
        hasAside(draft: Draft): boolean;
      }
    | undefined;
  /** What other sessions of the same conversation have. */
  readonly beside?: readonly Records[];
  /** The last position that readers see of a conversation that went on here. */
  readonly ownWork?: Seq;
  /** What a person took out of sight, with a rewind: how long each content is, as JSON, by its key. */
  readonly rewound: ReadonlyMap<string, number>;
}

/** How a rewind says that an import wrote it. */
export const rewindMode = 'import';

/** What a new tape has. */
export const nothingImported: Imported = {
  shown: [],
  written: new Map(),
  known: new Set(),
  byLine: new Map(),
  erased: new Set(),
  counted: new Map(),
  answers: new Map(),
  rewound: new Map(),
};

/**
 * What was read of a store, by session: of one with many branches and subagents, each is forked from the same tape. The memory
 * that it takes is free for anything else.
 */
const reads = new WeakMap<HomeStore, Map<string, WeakRef<Imported>>>();
/** How many readings are kept: of a source that was rewritten often, those of all its sessions are needed several times. */
const readsMax = 256;

/** Reads what a session has of an import, of what is shown that behind a base. One that has not changed is not read again. */
export function importedIn(
  store: HomeStore,
  session: string,
  base?: Base,
  /** The first position that is read. */
  from: Seq = 1,
): Imported {
  const of = `${statesIn(store).of(session)} ${base?.cut ?? 0} ${from}`;
  const kept = reads.get(store) ?? new Map<string, WeakRef<Imported>>();
  reads.set(store, kept);
  const imported = kept.get(of)?.deref() ?? readIn(store, session, { base, from });
  // Anew at the end: what was read longest ago goes first.
  kept.delete(of);
  kept.set(of, new WeakRef(imported));
  for (const [oldest] of kept) if (kept.size > readsMax) kept.delete(oldest);
  return imported;
}

/**
 * What a session will have of an import when it is forked from another one.
 * @param range the positions that it will inherit, null for none
 */
export function inheritedFrom(
  store: HomeStore,
  { from, range }: { readonly from: string; readonly range: readonly [Seq, Seq] | null },
  base?: Base,
): Imported {
  if (range === null) return nothingImported;
  const [first, at] = range;
  const { floor, head } = store.sessions.find(from) ?? {};
  // Mostly all of it, which was read to find the place.
  const isAll = floor === first - 1 && head === at;
  const all = isAll ? importedIn(store, from, base) : readIn(store, from, { base, from: first, at });
  return { ...all, written: new Map() };
}

/** What a session had of an import at a position, whatever was rewound since. */
export function importedAt(store: HomeStore, session: string, at: Seq, base?: Base): Imported {
  return readIn(store, session, { base, at });
}

/** What the readers of a session saw of an import there. */
export function shownAt(store: HomeStore, session: string, at: Seq): readonly Shown[] {
  return importedAt(store, session, at).shown;
}

function readIn(
  store: HomeStore,
  session: string,
  { base, from = 1, at }: { readonly base?: Base | undefined; readonly from?: Seq; readonly at?: Seq },
): Imported {
  const since = base?.cut ?? 0;
  const upTo = at === undefined ? {} : { at };
  const ranges = [...store.views.ranges(session, upTo)];
  const written = new Map<string, number>();
  const known = new Set<string>();
  const byLine = new Map<string, Shown[]>();
  const erased = new Set<string>();
  const counted = new Map<string, JsonObject>();
  const answers = new Map<string, CountedAnswer[]>();
  const shown: Shown[] = [];
  const hidden = new Map<Seq, (readonly [key: string, length: number])[]>();
  let ownWork: Seq | undefined;
  let range = 0;
  let before: Entry | undefined;
  for (const entry of store.entries.read(session, { from, ...(at !== undefined && { to: at }) })) {
    while (range < ranges.length && entry.seq > (ranges[range]?.to ?? 0)) range += 1;
    const { hiddenBy } = ranges[range] ?? {};
    const isShown = ranges[range] !== undefined && hiddenBy === undefined;
    // What the source itself left is no concern of a person.
    if (isImportRewind(entry)) hidden.delete(entry.seq);
    const isReport = isErasedReport(entry, before);
    before = entry;
    // A base that a rewind hides is nothing to go on from.
    if (entry.seq === since && !isShown) ownWork = Number.POSITIVE_INFINITY;
    if (entry.key === undefined || !isOfImport(entry)) {
      const isOwn = isShown && entry.seq > since && isSaid(entry) && !isReport;
      if (isOwn) ownWork = Math.max(ownWork ?? 0, entry.seq);
      continue;
    }
    const key = keyOf(entry);
    known.add(key);
    if (isErased(entry)) erased.add(key);
    if (!entry.inherited) written.set(key, (written.get(key) ?? 0) + 1);
    if (isObject(entry.meta.usage)) {
      // What was written again is the same answer.
      const call = counted.has(key) ? undefined : apiCallOf(entry);
      counted.set(key, most(counted.get(key), entry.meta.usage));
      if (call !== undefined) {
        const answer = { key, response: call.response };
        const others = answers.get(call.request);
        if (others === undefined) answers.set(call.request, [answer]);
        else others.push(answer);
      }
    }
    const isCompared = isShown && entry.seq > since;
    const isOfLine = isAside(entry) && saysLine(key);
    const one = isCompared || isOfLine ? shownOf(entry, key) : undefined;
    if (one !== undefined && isCompared) shown.push(one);
    if (one !== undefined && isOfLine) byLine.set(key, [...(byLine.get(key) ?? []), one]);
    if (hiddenBy === undefined) continue;
    const left = [key, JSON.stringify(entry.payload).length] as const;
    const others = hidden.get(hiddenBy);
    if (others === undefined) hidden.set(hiddenBy, [left]);
    else others.push(left);
  }
  const rewound = new Map([...hidden.values()].flat());
  return {
    ...{ shown, written, known, byLine, erased, counted, answers, rewound },
    ...(ownWork !== undefined && { ownWork }),
  };
}

/** Whether an import wrote an entry: of one that was redacted, only the key is left that its record had. */
export function isOfImport({ key, name, meta, payload }: Entry): boolean {
  // What an import notes, such as a title, is of the session here, and of no record: also where it was erased.
  if (name === importedEvent || key?.startsWith('u:import:') === true) return false;
  return meta.source === 'import' || (payload === null && key?.startsWith('u:') === true);
}

/** An entry as an import compares it. */
export function shownOf(entry: Entry, key: string): Shown {
  const { seq, kind, mark, name, ref, payload, meta } = entry;
  const text = JSON.stringify(payload);
  return {
    ...{ seq, kind, mark, name, ref, key },
    content:
      payload === null || isErased(entry) ? undefined : contentMark(text, JSON.stringify(comparedMeta(meta))),
    length: text.length,
    calls: kind === 'message' ? clientCalls(payload) : [],
  };
}

/**
 * The meta of which an entry has what its source says: neither what an import notes of its own work, nor the id of an answer, which
 * earlier versions did not keep of each. Pure.
 */
export function comparedMeta(meta: JsonObject): JsonObject {
  const { again: _, usageBefore: __, redacted: ___, response: ____, ...own } = meta;
  return own;
}

/**
 * What content is known by, as the texts of JSON as which it is stored: a hash with a character for each byte, since an import makes
 * and holds one of each entry. Pure.
 */
export function contentMark(payload: string, meta: string): string {
  return hash('sha256', `${meta}\n${payload}`, 'binary');
}

/** Whether an import wrote a rewind, since its source left what it hides, or has something else there. */
export function isImportRewind({ kind, payload }: Entry): boolean {
  return kind === 'rewind' && isObject(payload) && payload.mode === rewindMode;
}

/** Whether an entry is part of a conversation. What a merge delivers of a subagent of the import is not. */
export function isSaid({ kind, mark, meta }: Entry): boolean {
  if (meta.source === 'merge' && meta.context === false) return false;
  return kind === 'message' || kind === 'tool-result' || mark === 'boundary';
}

/** Whether an entry is what an import's merge delivered, where that was erased: the mark before it says whose it is. */
function isErasedReport(entry: Entry, before: Entry | undefined): boolean {
  const isMerge = before?.name?.startsWith('merge/') === true && before.meta.source === 'merge';
  return isMerge && entry.kind === 'message' && isErased(entry);
}

/** The greatest figure of each kind. */
export function most(a: JsonObject | undefined, b: JsonObject): JsonObject {
  // Most answers are counted once, and several of an import have the same object then.
  if (a === undefined) return b;
  return {
    ...a,
    ...Object.fromEntries(
      Object.entries(b).map(([name, count]) => [name, Math.max(Number(a[name] ?? 0), Number(count))]),
    ),
  };
}
