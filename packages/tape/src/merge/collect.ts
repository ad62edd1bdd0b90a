import type { Db } from '../db/db.ts';
import { artifactOf, type RecordedArtifact } from '../entry/artifact.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import { type Interval, visible } from '../tape/interval.ts';
import { ownEntries, readEntries, type StoredEntry } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';
import {
  type Answers,
  afterEntry,
  atRangeStart,
  type FoundAnswer,
  type FoundText,
  noAnswers,
} from './answer.ts';

/**
 * Version of the rules by which the text is collected, also those of `answer.ts`. It changes when the same entries
 * would give another text, or other facts about it, and the schema changes with it: in one schema, a mark with another version is a forgery.
 */
export const textVersion = 1;

/** The outcome of a child over a range of its own entries. */
export interface Collected {
  /** The explicit result, else the model's last text and the reason for an early end; never empty. */
  readonly text: string;
  /** The value of the explicit result, if one was recorded. */
  readonly value?: Json;
  /** Position of the entry that the text came from, if any; of an answer in pieces, that of the last piece. */
  readonly textSeq: Seq | undefined;
  /** Position of the first piece, when the text is an answer in pieces. */
  readonly textFrom?: Seq;
  /** Pieces of interrupted answers that are not part of the text. The text begins with a line that names them. */
  readonly rest?: readonly Seq[];
  readonly usage: JsonObject | undefined;
  /**
   * Whether every tool that ran declared its paths, or ran in a worktree whose changes were recorded
   * afterwards. If false, a conflict report is incomplete.
   */
  readonly complete: boolean;
  /** The newest record of the child's worktree; it includes the changes of all earlier ones. */
  readonly recorded: RecordedArtifact | undefined;
  readonly durationMs: number;
}

/**
 * Collects a child's result from its own entries: an explicit `result` entry, else the model's last answer in
 * all its pieces, else its error. Reads only, and runs before the merge's transaction.
 * @param kept all own entries of the child, if they were read before
 */
export function collectResult(
  db: Db,
  child: TapeRow,
  [from, to]: readonly [Seq, Seq],
  kept?: readonly StoredEntry[],
): Collected {
  let result: Entry | undefined;
  let failed: FoundText | undefined;
  let first: number | undefined;
  let last = 0;
  let complete = true;
  let recorded: RecordedArtifact | undefined;
  const usage = new Map<string, number>();
  const shown = shownOf(db, child, { to, kept });
  let answers = answersBefore(db, child, { from, shown });
  for (const entry of kept === undefined
    ? readEntries(db, child, { from, to, own: true })
    : ownEntries(db, child, { from, to, kept })) {
    first ??= entry.at;
    last = entry.at;
    if (entry.kind === 'tool-result') complete &&= isObject(entry.meta.paths);
    if (entry.kind === 'message') addUsage(usage, entry.meta.usage);
    // A rewind on the child's tape does not undo changes to its files.
    const artifact = artifactOf(entry);
    if (artifact !== undefined) {
      recorded = { seq: entry.seq, artifact };
      complete = true;
    }
    // Rewound entries count for usage and duration, but not for the result.
    while (shown[0] !== undefined && entry.seq > shown[0].hi) shown.shift();
    if (shown[0] === undefined || entry.seq <= shown[0].lo) continue;
    // A redacted result is no result.
    if (entry.kind === 'result') result = entry.payload === null ? undefined : entry;
    else if (entry.kind === 'event') {
      failed = endOf(entry) ?? failed;
      if (entry.name === resultRefused) {
        result = undefined;
        answers = noAnswers;
      }
    } else {
      answers = afterEntry(answers, entry);
      failed = filteredEnd(entry) ?? failed;
    }
  }
  const { last: answer } = answers;
  const unfinished = failed !== undefined && failed.seq >= (answer?.seq ?? 0) ? failed : undefined;
  const value = result === undefined ? undefined : resultValue(result.payload);
  const chosen =
    result !== undefined && value !== undefined
      ? { seq: result.seq, text: typeof value === 'string' ? value : JSON.stringify(value) }
      : joinText(withRest(answer, child), unfinished);
  return {
    text: chosen?.text ?? emptyResult,
    ...(value !== undefined && { value }),
    textSeq: chosen?.seq,
    ...(value === undefined && answer !== undefined && placeOf(answer)),
    usage: usage.size === 0 ? undefined : Object.fromEntries(usage),
    complete,
    recorded,
    durationMs: first === undefined ? 0 : last - first,
  };
}

/** The positions of the child up to one that no rewind hides, oldest first. Rewinds of inherited entries do not matter. */
function shownOf(
  db: Db,
  child: TapeRow,
  { to, kept }: { readonly to: Seq; readonly kept: readonly StoredEntry[] | undefined },
): Interval[] {
  const lo = Math.max(child.floor_seq, child.base_seq);
  if (kept?.every(({ mark }) => mark !== 'rewind')) return to > lo ? [{ lo, hi: to }] : [];
  return [...visible(db, { ...child, floor_seq: lo }, to)].reverse();
}

/** How many entries before a range are searched for the pieces of an answer that goes on in it. */
export const backMax = 50;

/** The answers before a range of the child's own entries, as far as they go on in it. */
function answersBefore(
  db: Db,
  child: TapeRow,
  { from, shown }: { readonly from: Seq; readonly shown: readonly Interval[] },
): Answers {
  if (from <= child.base_seq + 1) return noAnswers;
  let answers = noAnswers;
  for (const entry of readEntries(db, child, { to: from - 1, own: true, last: backMax }))
    if (shown.some(({ lo, hi }) => entry.seq > lo && entry.seq <= hi)) answers = afterEntry(answers, entry);
  return atRangeStart(answers);
}

/** The first piece of an answer in pieces, and the pieces that it lacks. */
function placeOf({ from, seq, rest }: FoundAnswer): Pick<Collected, 'textFrom' | 'rest'> {
  return { ...(from < seq && { textFrom: from }), ...(rest.length > 0 && { rest }) };
}

/** An answer behind a line that names the pieces before it that are not part of its text. */
function withRest(answer: FoundAnswer | undefined, { name }: TapeRow): FoundText | undefined {
  if (answer === undefined || answer.rest.length === 0) return answer;
  const where = answer.rest.map((seq) => `tape show ${name}@${seq}`).join('; ');
  return { seq: answer.seq, text: `[An interrupted answer came before this one: ${where}]\n${answer.text}` };
}

function joinText(answer: FoundText | undefined, failed: FoundText | undefined): FoundText | undefined {
  if (answer === undefined || failed === undefined) return answer ?? failed;
  return { seq: failed.seq, text: `${answer.text}\n\n${failed.text}` };
}

function resultValue(payload: Json): Json {
  return isObject(payload) && 'value' in payload ? (payload.value ?? null) : payload;
}

/** Returns the reason that a run recorded for an early end. */
function endOf({ seq, name = '', payload }: Entry): FoundText | undefined {
  const label = endLabels[name];
  if (label === undefined || !isObject(payload) || typeof payload.message !== 'string') return undefined;
  return { seq, text: `${label}: ${payload.message}` };
}

/** Returns the reason for the end of an answer that a content filter cut off. */
function filteredEnd({ seq, kind, payload, meta }: Entry): FoundText | undefined {
  const isAnswer = kind === 'message' && isObject(payload) && payload.role === 'assistant';
  if (!isAnswer || meta.finish !== 'content-filter') return undefined;
  return { seq, text: 'Filtered: a content filter cut off the answer' };
}

/** The text that a parent gets of a child without a result or an answer. */
export const emptyResult = '(no result)';

/** Name of the event that records why an earlier result is invalid. This error then is the child's result. */
export const resultRefused = 'result/refused';

const endLabels: Readonly<Record<string, string>> = {
  'run/error': 'Error',
  'run/halted': 'Halted',
  [resultRefused]: 'Error',
};

/** Adds the numbers of a usage; one that would make a sum infinite, which no entry can hold, is left out. */
function addUsage(sum: Map<string, number>, usage: Json | undefined): void {
  if (!isObject(usage)) return;
  for (const [name, value] of Object.entries(usage)) {
    const total = typeof value === 'number' ? (sum.get(name) ?? 0) + value : Number.NaN;
    if (Number.isFinite(total)) sum.set(name, total);
  }
}
