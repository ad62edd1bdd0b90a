import type { SessionInfo } from '@tapedeck/tape';
import { isDeleted, originOf } from '@tapedeck/tape/internal';
import type { SessionCounts } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { oneLine } from '../escape.ts';
import { shortNumber } from '../terminal/number.ts';
import { briefTime, relativeTime } from '../terminal/time.ts';
import { painted } from './session.ts';
import { branches, firstFitting } from './table.ts';

/** A session for people, with what its row shows beside its properties. */
export interface Listed {
  readonly info: SessionInfo;
  readonly state: string;
  /** Its title, or its first prompt. */
  readonly about: string;
  /** What a tree draws before its name. */
  readonly branch: string;
}

/** How a table looks, and how much of a name tells it from the others of the home. */
interface Look extends Pick<Context, 'io' | 'style' | 'link'> {
  readonly distinct?: ((name: string) => number) | undefined;
}

/** What a table has room for, from all of it to the least. */
interface Room {
  readonly isBrief: boolean;
  /** The columns that it has beside names, states and times. */
  readonly has: ReadonlySet<'messages' | 'children' | 'tokens' | 'about'>;
  /** Columns that names and titles keep. */
  readonly least: number;
}

const rooms: readonly [Room, ...Room[]] = [
  { isBrief: false, has: new Set(['messages', 'children', 'tokens', 'about']), least: 24 },
  { isBrief: true, has: new Set(['messages', 'children', 'tokens', 'about']), least: 16 },
  { isBrief: true, has: new Set(['messages', 'children', 'about']), least: 14 },
  { isBrief: true, has: new Set(['messages', 'about']), least: 10 },
  { isBrief: true, has: new Set(['messages']), least: 10 },
  { isBrief: true, has: new Set(), least: 10 },
];

/** Sessions as a table for a terminal: what does not fit its width is said in fewer words, or not at all. */
export function sessionsTable(sessions: readonly Listed[], context: Look): string {
  const { io } = context;
  const some = {
    children: sessions.some(({ info: { counts } }) => (counts?.children ?? 0) > 0),
    tokens: sessions.some(({ info: { counts } }) => (counts?.tokens ?? 0) > 0),
    about: sessions.some(({ about }) => about.trim() !== ''),
    ids: sessions.some(({ info }) => isDeleted(info)),
  };
  const tableIn = ({ isBrief, has, least }: Room) => {
    const timeOf = isBrief ? briefTime : relativeTime;
    const headings = [
      'session',
      'state',
      has.has('messages') ? (isBrief ? 'msgs' : 'messages') : '',
      has.has('children') && some.children ? 'children' : '',
      has.has('tokens') && some.tokens ? 'tokens' : '',
      'last',
      some.ids ? 'id' : has.has('about') && some.about ? 'about' : '',
    ];
    const rows = sessions.map(({ info, state, about, branch }) => [
      branch + info.session,
      state,
      has.has('messages') ? String(info.messageCount) : '',
      has.has('children') && info.counts !== undefined ? childrenOf(info.counts, { isBrief }) : '',
      has.has('tokens') && info.counts !== undefined && info.counts.tokens > 0
        ? shortNumber(info.counts.tokens)
        : '',
      timeOf(info.lastMessageAt ?? info.createdAt, io.now()),
      some.ids ? info.id : has.has('about') ? oneLine(about, io.columns) : '',
    ]);
    const idOf = new Map(rows.map((row, i) => [row, sessions[i]?.info.id ?? '']));
    return {
      rows: [headings, ...rows],
      right: [2, 4],
      whole: some.ids ? [1, 5, 6] : [1, 5],
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

function anchorOf(info: SessionInfo): string {
  const { fromAnchor } = originOf(info);
  return fromAnchor === undefined ? '' : `⚓ ${fromAnchor}`;
}

/** Children of a session as a table for a terminal, with the first words of their results. */
export function childrenTable(children: readonly ListedChild[], context: Look): string {
  const { io } = context;
  const tableIn = (
    isBrief: boolean,
    { least, results }: { readonly least: number; readonly results: boolean },
  ) => {
    const timeOf = isBrief ? briefTime : relativeTime;
    const others = results && children.some(({ info }) => info.kind !== 'subagent');
    const anchors = !isBrief && children.some(({ info }) => anchorOf(info) !== '');
    const headings = [
      'session',
      'state',
      others ? 'kind' : '',
      'head',
      anchors ? 'from' : '',
      'last',
      results ? 'result' : '',
    ];
    const rows = children.map(({ info, state, text }) => [
      info.session,
      state,
      others ? info.kind : '',
      `@${info.head}`,
      anchors ? anchorOf(info) : '',
      timeOf(info.lastMessageAt ?? info.createdAt, io.now()),
      results ? oneLine(text, io.columns) : '',
    ]);
    const idOf = new Map(rows.map((row, i) => [row, children[i]?.info.id ?? '']));
    return {
      rows: [headings, ...rows],
      right: [3],
      whole: [1, 5],
      names: [0],
      distinct: context.distinct,
      width: io.columns,
      least,
      paint: painter(context, { headings, idOf }),
    };
  };
  return firstFitting([
    tableIn(false, { least: 24, results: true }),
    tableIn(true, { least: 16, results: true }),
    tableIn(true, { least: 10, results: true }),
    tableIn(true, { least: 10, results: false }),
  ]);
}

/** `2 open, 5 merged`, and of how many where some are neither; in brief the first of both, as a part of all. */
export function childrenOf(
  { children, openChildren, mergedChildren }: SessionCounts,
  { isBrief }: { readonly isBrief: boolean },
): string {
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
    const indent = cell.length - cell.replace(branches, '').length;
    return cell.slice(0, indent) + link(idOf.get(row) ?? '', style.text('bold', cell.slice(indent)));
  };
}
