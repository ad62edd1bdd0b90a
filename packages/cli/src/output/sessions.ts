import type { SessionInfo } from '@tapedeck/tape';
import type { SessionCounts } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { oneLine } from '../escape.ts';
import { shortNumber } from '../terminal/number.ts';
import { briefTime, relativeTime } from '../terminal/time.ts';
import { painted } from './session.ts';
import { firstFitting } from './table.ts';

/** A session for people, with what its row shows beside its properties. */
export interface Listed {
  readonly info: SessionInfo;
  readonly state: string;
  /** Its title, or its first prompt. */
  readonly about: string;
  /** Number of ancestors that are listed above it. */
  readonly depth: number;
}

/** How a table looks, and how much of a name tells it from the others of the home. */
interface Look extends Pick<Context, 'io' | 'style' | 'link'> {
  readonly distinct?: ((name: string) => number) | undefined;
}

/** What a table has room for, from all of it to the least. */
interface Room {
  readonly isBrief: boolean;
  /** Whether the columns of tokens and of children are there. */
  readonly has: { readonly tokens: boolean; readonly children: boolean };
  /** Columns that names and titles keep. */
  readonly least: number;
}

const rooms: readonly [Room, ...Room[]] = [
  { isBrief: false, has: { tokens: true, children: true }, least: 24 },
  { isBrief: true, has: { tokens: true, children: true }, least: 16 },
  { isBrief: true, has: { tokens: false, children: true }, least: 14 },
  { isBrief: true, has: { tokens: false, children: false }, least: 10 },
];

/** Sessions as a table for a terminal: what does not fit its width is said in fewer words, or not at all. */
export function sessionsTable(sessions: readonly Listed[], context: Look): string {
  const { io } = context;
  const some = {
    children: sessions.some(({ info: { counts } }) => (counts?.children ?? 0) > 0),
    tokens: sessions.some(({ info: { counts } }) => (counts?.tokens ?? 0) > 0),
    about: sessions.some(({ about }) => about.trim() !== ''),
  };
  const tableIn = ({ isBrief, has, least }: Room) => {
    const timeOf = isBrief ? briefTime : relativeTime;
    const headings = [
      'session',
      'state',
      isBrief ? 'msgs' : 'messages',
      has.children && some.children ? 'children' : '',
      has.tokens && some.tokens ? 'tokens' : '',
      'last',
      some.about ? 'about' : '',
    ];
    const rows = sessions.map(({ info, state, about, depth }) => [
      `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}╰ `}${info.session}`,
      state,
      String(info.messageCount),
      has.children && info.counts !== undefined ? childrenOf(info.counts, isBrief) : '',
      has.tokens && info.counts !== undefined && info.counts.tokens > 0
        ? shortNumber(info.counts.tokens)
        : '',
      timeOf(info.lastMessageAt ?? info.createdAt, io.now()),
      oneLine(about, io.columns),
    ]);
    const idOf = new Map(rows.map((row, i) => [row, sessions[i]?.info.id ?? '']));
    return {
      rows: [headings, ...rows],
      right: [2, 4],
      names: [0],
      distinct: context.distinct,
      width: io.columns,
      least,
      paint: painter(context, { headings, idOf }),
    };
  };
  const [first, ...others] = rooms;
  return firstFitting([tableIn(first), ...others.map(tableIn)]);
}

/** A child with its result. */
export interface ListedChild {
  readonly info: SessionInfo;
  readonly state: string;
  readonly text: string;
}

/** Children of a session as a table for a terminal, with the first words of their results. */
export function childrenTable(children: readonly ListedChild[], context: Look): string {
  const { io } = context;
  const tableIn = (isBrief: boolean) => {
    const timeOf = isBrief ? briefTime : relativeTime;
    const others = children.some(({ info }) => info.kind !== 'subagent');
    const anchors = !isBrief && children.some(({ info }) => info.fromAnchor !== undefined);
    const headings = [
      'session',
      'state',
      others ? 'kind' : '',
      'head',
      anchors ? 'from' : '',
      'last',
      'result',
    ];
    const rows = children.map(({ info, state, text }) => [
      info.session,
      state,
      others ? info.kind : '',
      `@${info.head}`,
      anchors && info.fromAnchor !== undefined ? `⚓ ${info.fromAnchor}` : '',
      timeOf(info.lastMessageAt ?? info.createdAt, io.now()),
      oneLine(text, io.columns),
    ]);
    const idOf = new Map(rows.map((row, i) => [row, children[i]?.info.id ?? '']));
    return {
      rows: [headings, ...rows],
      right: [3],
      names: [0],
      distinct: context.distinct,
      width: io.columns,
      least: isBrief ? 16 : 24,
      paint: painter(context, { headings, idOf }),
    };
  };
  return firstFitting([tableIn(false), tableIn(true)]);
}

/** `2 open, 5 merged`, and of how many where some are neither; in brief the first of both, as a part of all. */
function childrenOf({ children, openChildren, mergedChildren }: SessionCounts, isBrief: boolean): string {
  if (children === 0) return '';
  const parts = [
    { count: openChildren, what: 'open' },
    { count: mergedChildren, what: 'merged' },
  ].filter(({ count }) => count > 0);
  const [first] = parts;
  if (first === undefined) return String(children);
  if (isBrief && first.count < children) return `${first.count} of ${children} ${first.what}`;
  const isAll = openChildren + mergedChildren === children;
  return `${parts.map(({ count, what }) => `${count} ${what}`).join(', ')}${isAll ? '' : ` of ${children}`}`;
}

interface Painted {
  readonly headings: readonly string[];
  /** The session of a row. */
  readonly idOf: ReadonlyMap<readonly string[], string>;
}

/** Formats a cell: of a heading, of a name, of a state, of the text at the end, or of what is between. */
function painter({ style, link }: Look, { headings, idOf }: Painted) {
  return (cell: string, column: number, row: readonly string[]): string => {
    if (row === headings) return style.text('dim', cell);
    if (column === 1) return painted(style, cell);
    if (column > 1) return column === headings.length - 1 ? cell : style.text('dim', cell);
    const indent = cell.length - cell.replace(/^ *╰ /, '').length;
    return cell.slice(0, indent) + link(idOf.get(row) ?? '', style.text('bold', cell.slice(indent)));
  };
}
