import type { Entry, SessionInfo } from '@tapedeck/tape';
import { commandLine, oneLine, safe } from '../escape.ts';
import { colorOf, labelOf } from '../output/entry.ts';
import { painted, stateOf } from '../output/session.ts';
import type { Style } from '../terminal/style.ts';
import { isoDay, relativeTime, timeOfDay } from '../terminal/time.ts';
import { cutName, styledWidth, textWidth } from '../terminal/width.ts';
import { type Gap, type Item, isGap } from './fold.ts';
import { isLeft, type Left } from './forks.ts';
import { itemLine } from './item-line.ts';
import { gapText, itemRows, stateIn } from './item-rows.ts';
import { callTexts, reserved, withMargin } from './margin.ts';
import { isConversation, isUndated, timeOfEntry } from './wanted.ts';

/** How a log looks. */
export interface Look {
  readonly style: Style;
  /** Whether there are colours, with which answers are rendered as Markdown on a terminal. */
  readonly renders: boolean;
  /** Makes a link of the name of a session. */
  readonly link: (id: string, name: string) => string;
  /** Columns of the terminal; undefined in a pipe, where lines stay whole. */
  readonly columns: number | undefined;
  readonly times: 'relative' | 'iso';
  readonly full: boolean;
  /** One row for each item, without times. */
  readonly oneline: boolean;
  /** The text that the reader looks for. */
  readonly find: string | undefined;
  /** The time, which passes while a log is followed. */
  readonly now: () => number;
  /** The session, as commands name it. */
  readonly session: string;
  /** A text whose commands name the home that the user named. */
  readonly inHome: (text: string) => string;
  /** Whether a rewind hides a position. */
  readonly isHidden: (seq: number) => boolean;
}

/** What a log shows. */
export type Shown = Item | Gap | Left;

/** Columns before the text: position, mark and label. */
const indent = ' '.repeat(20);
/** Columns of a text beside its label; a narrower terminal has the text below it. */
const besideMin = 36;
/** Columns of a name: more than the name of a session has. */
const nameMax = 220;

/**
 * Makes the function that draws what a log shows, in order, with a line where the conversation comes to a later day. What
 * is of another day than that says so itself: the records of an import can be out of the order of their times.
 */
export function drawer(look: Look): (shown: Shown) => readonly string[] {
  let day = isoDay(look.now());
  let latest = '';
  return (shown) => {
    if (isGap(shown)) return [gapRow(shown, look)];
    if (isLeft(shown)) return leftRows(shown, look);
    if (look.oneline) return [lineOf(shown, look)];
    const { entry } = shown;
    const of = isoDay(timeOfEntry(entry));
    const isDated = look.times === 'relative' && isConversation(entry) && !isUndated(entry);
    const isNew = isDated && of !== day && of > latest;
    if (isNew) day = latest = of;
    const rows = drawItem(shown, { look, day });
    return isNew ? [dayRow(timeOfEntry(entry), look), ...rows] : rows;
  };
}

function dayRow(at: number, { style, now }: Look): string {
  const [day, age] = [isoDay(at), relativeTime(at, now())];
  return style.text('dim', `── ${day === age || !age.includes('day') ? day : `${day} · ${age}`} ──`);
}

/** Characters of a line in a pipe. */
const lineMax = 120;

function lineOf(item: Item, { style, columns = lineMax, isHidden }: Look): string {
  const { entry } = item;
  const hidden = isHidden(entry.seq);
  const left = leftOf(entry, hidden, style);
  // On a narrow terminal, the labels are not in a column.
  const start = columns - indent.length < besideMin ? `${left.trimEnd()} ` : left;
  const text = oneLine(itemLine(item), Math.max(20, columns - styledWidth(start)));
  return start + (hidden ? style.text('dim', text) : text);
}

/** @param day the day of the last line of a day */
function drawItem(item: Item, { look, day }: { readonly look: Look; readonly day: string }): string[] {
  const { style, columns = Number.POSITIVE_INFINITY, full, find, session } = look;
  const { entry } = item;
  const isHidden = look.isHidden(entry.seq);
  const left = leftOf(entry, isHidden, style);
  const time = timeText(entry, look, day);
  // A long label leaves less room for the first line than the indent leaves for the others.
  const start = columns - styledWidth(left) - 2;
  const margin = { time, call: callTexts(entry, look) };
  const first = start - reserved(margin, start);
  const isBeside = columns - indent.length >= besideMin && first >= 8;
  const before = isBeside ? indent : '  ';
  const room = Math.max(20, columns - before.length);
  const rows = itemRows(item, {
    style,
    link: look.link,
    renders: look.renders && look.columns !== undefined,
    columns: room,
    first: isBeside ? first : room,
    full,
    find,
    session,
    inHome: look.inHome,
  });
  const lines = isHidden ? rows.map((row) => style.text('dim', row)) : rows;
  const [beside = '', ...others] = isBeside ? lines : ['', ...lines];
  const below = others.map((row) => `${before}${row}`.trimEnd());
  return withMargin([`${left}${beside}`, ...below], margin, look);
}

function leftOf(entry: Entry, isHidden: boolean, style: Style): string {
  const mark = isHidden ? '×' : entry.inherited ? '↑' : ' ';
  const label = safe(nameOf(entry)).padEnd(11);
  return `${style.text('yellow', String(entry.seq).padStart(5))} ${mark} ${style.text(colorOf(entry), label)} `;
}

/** The label of an entry: of what has a meaning of its own, that. */
function nameOf(entry: Entry): string {
  const { kind, name = '', payload } = entry;
  if (kind === 'tool-result') return 'tool';
  if (kind !== 'anchor') return labelOf(entry);
  if (name.startsWith('merge/')) return stateIn(payload).strategy === 'discard' ? 'discard' : 'merge';
  if (name === 'fork/start') return 'fork';
  return name === 'intention' ? name : labelOf(entry);
}

function timeText(entry: Entry, { times, now }: Look, day: string): string {
  const at = timeOfEntry(entry);
  if (times === 'iso') return `${new Date(at).toISOString().slice(0, 19)}Z`;
  return isUndated(entry) ? '' : timeOfDay(at, now(), day);
}

function gapRow(gap: Gap, { style, ...look }: Look): string {
  const row = `${String(gap.to).padStart(5)}   ${'rewind'.padEnd(11)} ${gapText(gap, look)}`;
  return style.text('dim', row);
}

/** A child that left at a position, with how it is now, or how many more did. */
function leftRows(left: Left, look: Look): readonly string[] {
  const { style, columns = 2_000, session, inHome } = look;
  // A narrow terminal has texts below their labels.
  const before = columns - indent.length < besideMin ? '  ' : '        ';
  const row = (text: string) => `${before}${style.text('cyan', '├─')} ${text}`;
  if ('more' in left) {
    const count = left.more === Number.POSITIVE_INFINITY ? 'many' : left.more;
    return [row(style.text('dim', `${count} more (${inHome(commandLine('children', [session]))})`))];
  }
  const [first = '', ...others] = childRows(left.child, columns - before.length - 3, look);
  return [row(first), ...others.map((line) => `${before}${style.text('cyan', '│')}  ${line}`)];
}

/**
 * A child with its state. A name, which a reader types, has a line of its own before it is cut; so has the state where the
 * name leaves no room for it.
 */
function childRows(child: SessionInfo, room: number, { style, link }: Look): readonly string[] {
  const { id, session, title } = child;
  const state = stateOf(child);
  const name = cutName(oneLine(session, nameMax), Math.max(8, room));
  const named = link(id, style.text('bold', name));
  const rest = room - 'forked '.length - textWidth(name);
  if (rest < 0) return [`forked  ${painted(style, state)}`, named];
  const left = rest - 2 - state.length;
  if (left < 0) return [`forked ${named}`, `       ${painted(style, state)}`];
  const about = title === undefined || left < 12 ? '' : `  ${style.text('dim', oneLine(title, left - 2))}`;
  return [`forked ${named}  ${painted(style, state)}${about}`];
}
