import type { Entry, Seq, SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject, isoTime, originOf } from '@tapedeck/tape/internal';
import { isBlobRef, type SessionRange } from '@tapedeck/tape/store';
import { isInContext, shownEntry } from './entry.ts';
import { factsOf } from './facts.ts';
import { code } from './markdown.ts';

/** The names of the files of a session. */
export type LogName = 'context.md' | 'verbose.md';

/** A part of a file. */
export interface LogPiece {
  /** The position of the entry that it renders, or of the last one that it leaves out; absent for the heading of the file. */
  readonly seq?: Seq;
  /** Markdown, with the line ends at its end. */
  readonly text: string;
}

/** The first line of a file. The name and the id of a session never change. */
export function firstLine({ session, id }: Pick<SessionInfo, 'session' | 'id'>, name: LogName): string {
  return `# ${name === 'context.md' ? 'Context' : 'Verbose log'} of ${session} (${id})`;
}

interface Part {
  readonly name: LogName;
  /** Only the session's own entries. */
  readonly own: boolean;
  readonly from: Seq | undefined;
}

/** Renders the entries of a session up to the head that was read with it, one by one. */
export async function* piecesOf(
  store: TapeStore,
  session: SessionInfo,
  { name, own, from }: Part,
): AsyncGenerator<LogPiece> {
  const verbose = name === 'verbose.md';
  const { id, head, floor, base } = session;
  if (from === undefined) yield { text: heading(session, name) };
  const first = Math.max(from ?? 1, (own ? base : floor) + 1);
  const hidden = hiddenRanges(await store.views.ranges(id, { at: head, from: first }));
  let before = first > floor + 1 ? await entryAt(store, id, first - 1) : undefined;
  let gap: SessionRange | undefined;
  for await (const entry of store.entries.read(id, { from: first, to: head })) {
    const { seq } = entry;
    const range = hidden.at(seq);
    if (range !== undefined && !verbose) {
      gap = range;
      if (seq === range.to) yield { seq, text: gapText(range, own ? Math.max(base, floor) : floor) };
    } else if (verbose || isInContext(entry)) {
      const instructions = await instructionsOf(store, entry);
      const { what, blocks } = shownEntry(entry, { verbose, instructions });
      const marks = `${entry.inherited ? ', inherited' : ''}${range === undefined ? '' : `, hidden by the rewind at @${range.hiddenBy}`}`;
      const facts = verbose ? [factsOf(entry, before).join('\n')] : [];
      yield { seq, text: `${[`## @${seq} ${what}${marks}`, ...facts, ...blocks].join('\n\n')}\n\n` };
    }
    before = { seq, at: entry.at };
  }
  // A range that the head cuts off cannot be: its rewind is its last entry. A damaged tape may lack that.
  if (gap !== undefined && before !== undefined && before.seq < gap.to)
    yield { seq: before.seq, text: gapText(gap, floor) };
}

type Before = Pick<Entry, 'seq' | 'at'>;

async function entryAt(store: TapeStore, id: string, seq: Seq): Promise<Before | undefined> {
  for await (const { at } of store.entries.read(id, { from: seq, to: seq })) return { seq, at };
  return undefined;
}

/** Finds the range that hides a position. Callers give positions in ascending order. */
function hiddenRanges(ranges: readonly SessionRange[]): { at(seq: Seq): SessionRange | undefined } {
  const hidden = ranges.filter(({ hiddenBy }) => hiddenBy !== undefined);
  let next = 0;
  return {
    at: (seq) => {
      while ((hidden[next]?.to ?? seq) < seq) next += 1;
      const range = hidden[next];
      return range !== undefined && range.from <= seq ? range : undefined;
    },
  };
}

/** A line in the place of what a rewind hides, from the first entry that the file has. */
function gapText({ from, to, hiddenBy }: SessionRange, floor: Seq): string {
  const first = Math.max(from, floor + 1);
  return `*${first === to ? `@${to} is` : `@${first}-@${to} are`} left out: the rewind at @${hiddenBy} hides ${first === to ? 'it' : 'them'}.*\n\n`;
}

/** Facts about a session that never change. */
function heading(session: SessionInfo, name: LogName): string {
  const { id, kind, createdAt, floor, base } = session;
  const { parent, parentId, fromAnchor } = originOf(session);
  const inherited = base > floor ? `inherits @${floor + 1}-@${base}` : 'inherits nothing';
  const since = fromAnchor === undefined ? '' : ` since ${code(fromAnchor)}`;
  return `${[
    firstLine(session, name),
    '',
    `* session: ${id}, ${code(kind)}`,
    `* created: ${isoTime(createdAt)}`,
    ...(parentId === undefined ? [] : [`* parent: ${parent} (${parentId}), ${inherited}${since}`]),
  ].join('\n')}\n\n`;
}

/** The text of the instructions that an event records: its bytes are stored beside the entries. */
async function instructionsOf(store: TapeStore, { name, payload }: Entry): Promise<string | undefined> {
  if (name !== 'instructions/text' || !isObject(payload)) return undefined;
  const { text } = payload;
  if (typeof text === 'string') return text;
  return isBlobRef(text) ? Buffer.from(await store.entries.blob(text.hash)).toString('utf8') : undefined;
}
