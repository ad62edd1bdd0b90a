import type { SessionInfo } from '@tapedeck/tape';
import type { SessionCounts } from '@tapedeck/tape/store';
import type { Context } from '../context.ts';
import { oneLine } from '../escape.ts';
import { shortNumber } from '../terminal/number.ts';
import type { Style } from '../terminal/style.ts';
import { relativeTime } from '../terminal/time.ts';
import { table } from './table.ts';

/** A session for people, with what its row shows beside its properties. */
export interface Listed {
  readonly info: SessionInfo;
  readonly state: string;
  /** Its title, or its first prompt. */
  readonly about: string;
  /** Number of ancestors that are listed above it. */
  readonly depth: number;
}

const headings = ['session', 'state', 'messages', 'children', 'tokens', 'last', 'about'];

/** Sessions as a table for a terminal: the columns fit its width. */
export function sessionsTable(
  sessions: readonly Listed[],
  { io, style }: Pick<Context, 'io' | 'style'>,
): string {
  const rows = sessions.map(({ info, state, about, depth }) => [
    `${depth === 0 ? '' : `${'  '.repeat(depth - 1)}╰ `}${info.session}`,
    state,
    messagesOf(info),
    info.counts === undefined ? '' : childrenOf(info.counts),
    info.counts === undefined || info.counts.tokens === 0 ? '' : shortNumber(info.counts.tokens),
    relativeTime(info.lastMessageAt ?? info.createdAt, io.now()),
    oneLine(about, io.columns),
  ]);
  return table([headings, ...rows], {
    aligned: true,
    width: io.columns,
    paint: (cell, column, row) => painted(style, { cell, column, isHeading: row === headings }),
  });
}

function messagesOf({ counts, head, base }: SessionInfo): string {
  if (counts === undefined) return '';
  // More entries than are looked at: about half of them are messages, which is no number to print.
  return counts.messages === undefined ? `of ${shortNumber(head - base)}` : String(counts.messages);
}

/** `2 open, 5 merged`; a number alone where all are neither. */
function childrenOf({ children, openChildren, mergedChildren }: SessionCounts): string {
  if (children === 0) return '';
  const parts = [
    ...(openChildren > 0 ? [`${openChildren} open`] : []),
    ...(mergedChildren > 0 ? [`${mergedChildren} merged`] : []),
  ];
  return parts.length === 0 ? String(children) : parts.join(', ');
}

function painted(
  style: Style,
  {
    cell,
    column,
    isHeading,
  }: { readonly cell: string; readonly column: number; readonly isHeading: boolean },
): string {
  if (isHeading) return style.text('dim', cell);
  if (column === 0) return style.text('bold', cell);
  if (column === 1) return style.text(colorOf(cell.trim()), cell);
  return column === headings.length - 1 ? cell : style.text('dim', cell);
}

function colorOf(state: string): 'green' | 'red' | 'yellow' | 'reset' {
  if (/^(?:merged|completed)$/.test(state)) return 'green';
  if (/^(?:failed|halted|aborted|interrupted|orphaned|filtered)$/.test(state)) return 'red';
  return /^(?:running|waiting)/.test(state) ? 'yellow' : 'reset';
}
