import type { Seq } from '@tapedeck/tape';
import type { Divergence } from './divergence.ts';
import { beginningOf, type Sent, type Told } from './pieces.ts';

/** What makes the tape read as the history that was sent. */
export interface Plan {
  /** Rewind to before this position. */
  readonly rewind?: Seq;
  /** Begin the view at this position. */
  readonly window?: Seq;
  /** What differs; absent when the history only goes on, or leaves out an answer that was cut off. */
  readonly divergence?: Omit<Divergence, 'session'>;
  /** The parts to append, when nothing is to be hidden first. */
  readonly rest: readonly Sent[];
}

/** Compares what a tape shows with a history. Pure. */
export function planFor(told: readonly Told[], sent: readonly Sent[]): Plan {
  const ends = follow(told, sent);
  const end = ends.at(-1);
  if (ends.length === told.length) return { rest: end === undefined ? sent : end.rest };
  const begins = told.findIndex(({ isOptional }) => !isOptional);
  const window = ends.length <= begins ? windowIn(told, sent) : undefined;
  if (window !== undefined) return window;
  const different = told[ends.length];
  const cut = settled(told, ends.length);
  const before = told[cut];
  if (different === undefined || before === undefined) return { rest: [] };
  const next = (end === undefined ? sent : end.rest).find(({ key }) => key !== undefined);
  if (different.isPartial) return { rewind: different.seq, rest: [] };
  return {
    rewind: before.seq,
    rest: [],
    divergence: {
      kind: next === undefined ? 'shortened' : 'changed',
      seq: different.seq,
      recorded: different.text,
      ...(next !== undefined && { message: next.message, sent: beginningOf([next.part]) }),
    },
  };
}

/** The place in a history after an entry: the parts that follow. */
interface End {
  readonly rest: readonly Sent[];
}

/** Follows a history along the entries as far as they agree: one end for each of them. */
function follow(told: readonly Told[], sent: readonly Sent[]): readonly End[] {
  const ends: End[] = [];
  let rest = sent;
  for (const entry of told) {
    const after = entry.kind === 'result' ? afterResult(entry, rest) : afterMessage(entry, rest);
    if (after === undefined && !entry.isOptional) break;
    rest = after ?? rest;
    ends.push({ rest });
  }
  return ends;
}

/** The parts after those of a message; undefined when the history does not have them here. */
function afterMessage({ keys }: Told, sent: readonly Sent[]): readonly Sent[] | undefined {
  let at = 0;
  for (const forms of keys) {
    while (at < sent.length && !isOneOf(sent[at], forms) && isPassed(sent[at])) at += 1;
    if (!isOneOf(sent[at], forms)) return undefined;
    at += 1;
  }
  // What is not compared belongs to the message it is in.
  const message = sent[at - 1]?.message;
  while (at > 0 && sent[at]?.message === message && sent[at]?.key === undefined && at < sent.length) at += 1;
  return sent.slice(at);
}

/** The parts without a result, which can be anywhere among the results that come next. */
function afterResult({ keys }: Told, sent: readonly Sent[]): readonly Sent[] | undefined {
  const [forms = []] = keys;
  for (const [at, piece] of sent.entries()) {
    if (isOneOf(piece, forms)) return sent.toSpliced(at, 1);
    if (piece.role !== 'tool') return undefined;
  }
  return undefined;
}

function isOneOf(piece: Sent | undefined, forms: readonly string[]): boolean {
  return piece?.key !== undefined && forms.includes(piece.key);
}

function isPassed(piece: Sent | undefined): boolean {
  return piece?.key === undefined || piece.isFiller;
}

/** The last index up to one at which no call is open. */
function settled(told: readonly Told[], index: number): number {
  const open = new Set<string>();
  let last = 0;
  for (const [i, { calls, answers }] of told.slice(0, index).entries()) {
    if (open.size === 0) last = i;
    for (const { toolCallId } of calls) open.add(toolCallId);
    if (answers !== undefined) open.delete(answers);
  }
  return open.size === 0 ? index : last;
}

/** The plan for a history that begins at a later message of a user, and is the same from there on. */
function windowIn(told: readonly Told[], sent: readonly Sent[]): Plan | undefined {
  for (const [i, { seq, kind, text, isOptional }] of told.entries()) {
    if (i === 0 || kind !== 'user' || isOptional) continue;
    const left = told.slice(i);
    const ends = follow(left, sent);
    if (ends.length === left.length)
      return {
        window: seq,
        divergence: { kind: 'window', seq, recorded: text },
        rest: ends.at(-1)?.rest ?? [],
      };
  }
  return undefined;
}
