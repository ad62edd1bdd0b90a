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
  const agreed = follow(told, sent);
  if (agreed.entries === told.length) return { rest: restOf(sent, agreed) };
  const begins = told.findIndex(({ isOptional }) => !isOptional);
  const window = agreed.entries <= begins ? windowIn(told, sent) : undefined;
  if (window !== undefined) return window;
  const different = told[agreed.entries];
  const before = told[settled(told, agreed.entries)];
  if (different === undefined || before === undefined) return { rest: [] };
  if (different.isPartial) return { rewind: different.seq, rest: [] };
  const next = restOf(sent, agreed).find(({ key }) => key !== undefined);
  return {
    rewind: before.seq,
    rest: [],
    divergence: {
      kind: next === undefined ? 'shortened' : 'changed',
      seq: different.seq,
      recorded: different.text,
      ...(next !== undefined && { index: next.message, sent: beginningOf([next.part]) }),
    },
  };
}

/** How far a tape and a history agree. */
interface Agreed {
  /** How many entries the history has. */
  readonly entries: number;
  /** The parts before this index are those of these entries. */
  readonly at: number;
  /** Results of calls after that index, which are theirs too. */
  readonly results: ReadonlySet<number>;
}

/** Follows a history along the entries as far as they agree. */
function follow(told: readonly Told[], sent: readonly Sent[]): Agreed {
  const results = new Set<number>();
  let at = 0;
  let entries = 0;
  for (const entry of told) {
    if (entry.kind === 'result') {
      const result = resultIn(entry, sent, { at, results });
      if (result === undefined) break;
      results.add(result);
    } else {
      const end = endOf(entry, sent, at);
      if (end === undefined && !entry.isOptional) break;
      at = end ?? at;
    }
    while (results.delete(at)) at += 1;
    entries += 1;
  }
  return { entries, at, results };
}

/** The parts of a history that the tape does not have. */
function restOf(sent: readonly Sent[], { at, results }: Agreed): readonly Sent[] {
  return sent.slice(at).filter((_, i) => !results.has(at + i));
}

/** The index after the parts of a message; undefined when the history does not have them here. */
function endOf({ keys }: Told, sent: readonly Sent[], from: number): number | undefined {
  let at = from;
  for (const forms of keys) {
    while (at < sent.length && !isOneOf(sent[at], forms) && isPassed(sent[at])) at += 1;
    if (!isOneOf(sent[at], forms)) return undefined;
    at += 1;
  }
  // What is not compared belongs to the message it is in.
  const message = at > from ? sent[at - 1]?.message : undefined;
  while (message !== undefined && sent[at]?.message === message && sent[at]?.key === undefined) at += 1;
  return at;
}

/** The index of a result, which can be anywhere among the results that come next. */
function resultIn(
  { keys: [forms = []] }: Told,
  sent: readonly Sent[],
  { at, results }: Pick<Agreed, 'at' | 'results'>,
): number | undefined {
  for (let i = at; sent[i]?.role === 'tool'; i += 1) if (!results.has(i) && isOneOf(sent[i], forms)) return i;
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
    const agreed = follow(told.slice(i), sent);
    if (agreed.entries === told.length - i)
      return {
        window: seq,
        divergence: { kind: 'window', seq, recorded: text },
        rest: restOf(sent, agreed),
      };
  }
  return undefined;
}
