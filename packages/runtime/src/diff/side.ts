import type { Entry, JsonObject, Seq, TapeStore } from '@tapedeck/tape';
import {
  artifactOf,
  assistantText,
  callText,
  isObject,
  mergedText,
  patchPaths,
} from '@tapedeck/tape/internal';
import { touchesOf } from '@tapedeck/tape/store';
import { textOf } from '../config/hooks.ts';

/** What one session has beyond the common base. */
export interface DiffSide {
  readonly session: string;
  /** The requested point. */
  readonly at: Seq;
  /** The compared positions, inclusive, oldest first, without rewound ones. */
  readonly ranges: readonly (readonly [Seq, Seq])[];
  readonly entries: number;
  readonly messages: { readonly user: number; readonly assistant: number; readonly merge: number };
  /** How many of the newest entries were read for what follows; absent when all were. */
  readonly read?: number;
  /** The last messages, oldest first. */
  readonly recent: readonly DiffMessage[];
  /** Calls per tool, in order of first use. */
  readonly tools: readonly { readonly tool: string; readonly calls: number }[];
  /**
   * Files that calls declared or that a worktree's patch contains; `seq` is the last entry that touched the
   * file.
   */
  readonly files: readonly { readonly path: string; readonly wrote: boolean; readonly seq: Seq }[];
  /** Keys of anchor states, and the last position that wrote each. */
  readonly state: readonly { readonly key: string; readonly seq: Seq }[];
  /** The last answer with text, even if both have it. */
  readonly answer?: { readonly seq: Seq; readonly text: string };
  /** False if some tools, files or keys are left out, or not all entries were read. */
  readonly complete: boolean;
}

/** A message in brief. */
export interface DiffMessage {
  readonly seq: Seq;
  readonly from: 'user' | 'assistant' | 'merge';
  /** The beginning of its text, and of an answer the calls; of a merge, the beginning of the child's result. */
  readonly text: string;
}

/** How much of each side is read and listed. */
export interface DiffLimits {
  /** The most entries to read, the newest ones (default: 20,000). */
  readonly entries?: number;
  /** The most messages to list, the last ones (default: 20). */
  readonly messages?: number;
}

const entriesMax = 20_000;
const recentMax = 20;
const textMax = 200;
/** The most tools, files or keys that are listed, which bounds the memory. */
const namesMax = 1_000;

/** Sums up the newest entries of ranges, which it reads in order. */
export async function sideOf(
  session: string,
  at: Seq,
  {
    ranges,
    read,
    limits: { entries: most = entriesMax, messages: recentMost = recentMax },
  }: {
    readonly ranges: DiffSide['ranges'];
    readonly limits: DiffLimits;
    readonly read: (range: readonly [Seq, Seq]) => Iterable<Entry> | AsyncIterable<Entry>;
  },
): Promise<DiffSide> {
  const messages = { user: 0, assistant: 0, merge: 0 };
  const recent: DiffMessage[] = [];
  const tools = new Names<number>();
  const touched = new Names<{ wrote: boolean; seq: Seq }>();
  let answer: DiffSide['answer'];
  const entries = sizeOf(ranges);
  const newest = newestOf(ranges, most);
  const isWhole = sizeOf(newest) === entries;
  for (const range of newest)
    for await (const entry of read(range)) {
      const { seq } = entry;
      for (const { what, wrote } of touchesIn(entry))
        touched.change(what, (before) => ({ wrote: wrote || before?.wrote === true, seq }));
      const message = messageOf(entry);
      if (message === undefined) continue;
      messages[message.from] += 1;
      recent.push({ ...message, text: message.text.slice(0, textMax).toWellFormed() });
      if (recent.length > recentMost) recent.shift();
      if (message.from !== 'assistant') continue;
      const said = assistantText(entry.payload);
      if (said !== '') answer = { seq, text: said };
      for (const tool of toolsIn(entry)) tools.change(tool, (before = 0) => before + 1);
    }
  return {
    session,
    at,
    ranges,
    entries,
    ...(!isWhole && { read: sizeOf(newest) }),
    messages,
    recent,
    tools: tools.all((tool, calls) => ({ tool, calls })),
    files: touched.all((what, of) => (what.startsWith('file:') ? { path: what.slice(5), ...of } : undefined)),
    state: touched.all((what, { seq }) =>
      what.startsWith('state:') ? { key: what.slice(6), seq } : undefined,
    ),
    ...(answer !== undefined && { answer }),
    complete: isWhole && tools.complete && touched.complete,
  };
}

function sizeOf(ranges: DiffSide['ranges']): number {
  return ranges.reduce((sum, [lo, hi]) => sum + hi - lo + 1, 0);
}

/** The part of ranges that has the newest positions, of which there are at most `most`. */
function newestOf(ranges: DiffSide['ranges'], most: number): DiffSide['ranges'] {
  const newest: (readonly [Seq, Seq])[] = [];
  let left = most;
  for (const [lo, hi] of ranges.toReversed()) {
    if (left <= 0) break;
    newest.unshift([Math.max(lo, hi - left + 1), hi]);
    left -= hi - lo + 1;
  }
  return newest;
}

/** The last answer with text in ranges, searched from the end. */
export async function lastAnswer(
  store: Pick<TapeStore, 'entries'>,
  id: string,
  ranges: DiffSide['ranges'],
): Promise<DiffSide['answer']> {
  for (const [from, hi] of ranges.toReversed())
    for (let to = hi; to >= from; ) {
      const page = await Array.fromAsync(
        store.entries.read(id, { kind: 'message', last: recentMax, from, to }),
      );
      const answer = page.findLast((entry) => assistantText(entry.payload) !== '');
      if (answer !== undefined) return { seq: answer.seq, text: assistantText(answer.payload) };
      if (page.length < recentMax) break;
      to = (page[0]?.seq ?? from) - 1;
    }
  return undefined;
}

/** A bounded map from names to values. */
class Names<T> {
  readonly #of = new Map<string, T>();
  complete = true;

  change(name: string, next: (before: T | undefined) => T): void {
    if (this.#of.size < namesMax || this.#of.has(name)) this.#of.set(name, next(this.#of.get(name)));
    else this.complete = false;
  }

  all<R>(each: (name: string, of: T) => R | undefined): R[] {
    return [...this.#of].flatMap(([name, of]) => each(name, of) ?? []);
  }
}

function messageOf({ kind, seq, payload, meta }: Entry): DiffMessage | undefined {
  if (kind !== 'message' || !isObject(payload)) return undefined;
  if (payload.role === 'assistant') return { seq, from: 'assistant', text: textAndCalls(payload) };
  const text = textOf(payload.content ?? null);
  if (meta.source !== 'merge') return { seq, from: 'user', text };
  return { seq, from: 'merge', text: mergedText(text) ?? text };
}

/** The text of an answer, and the calls that it makes. */
function textAndCalls(payload: JsonObject): string {
  const content = Array.isArray(payload.content) ? payload.content : [];
  const calls = content.filter(isObject).filter(({ type }) => type === 'tool-call');
  return [assistantText(payload), ...calls.map(callText)].filter((text) => text !== '').join(' ');
}

function toolsIn({ payload }: Entry): string[] {
  const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  return content.flatMap((part) =>
    isObject(part) && part.type === 'tool-call' ? [String(part.toolName)] : [],
  );
}

/**
 * What an entry touches, as the store records it, and the files of a worktree's patch, also of a merged
 * child.
 */
function touchesIn(entry: Entry): readonly { readonly what: string; readonly wrote: boolean }[] {
  const artifact = artifactOf(entry) ?? mergedArtifact(entry);
  if (artifact === undefined) return touchesOf(entry);
  return patchPaths(artifact).map((path) => ({ what: `file:${path}`, wrote: true }));
}

function mergedArtifact({ kind, name = '', payload }: Entry) {
  if (kind !== 'anchor' || !name.startsWith('merge/') || !isObject(payload)) return undefined;
  const { artifact }: JsonObject = isObject(payload.state) ? payload.state : {};
  if (!isObject(artifact) || !Array.isArray(artifact.files)) return undefined;
  const files = artifact.files.filter(isObject).flatMap(({ path, from }) => {
    if (typeof path !== 'string') return [];
    return [{ path, change: 'changed' as const, ...(typeof from === 'string' && { from }) }];
  });
  return { files };
}
