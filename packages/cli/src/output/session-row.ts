import type { SessionInfo } from '@tapedeck/tape';
import { isDeleted, isoTime, originOf, treeParentOf } from '@tapedeck/tape/internal';
import { oneLine } from '../escape.ts';
import type { Style } from '../terminal/style.ts';
import { painted } from './session.ts';
import { childrenOf } from './sessions.ts';
import { tabbed } from './table.ts';

/** A listed session, with what it is in as people read it. */
interface Listed {
  readonly info: SessionInfo;
  readonly state: string;
}

/**
 * A session as a row with tabs, for a pipe: name, kind, state, head, parent with the anchor, and time of the last message.
 * Then what its table has beside them, each whole: messages, children, tokens, and what it is about; of a child with `textOf`
 * its result; of a deleted one its ULID, which alone finds it.
 */
export function sessionRow(
  { info, state }: Listed,
  { style, textOf }: { readonly style: Style; readonly textOf?: ((info: SessionInfo) => string) | undefined },
): string {
  const { session, kind, head, lastMessageAt, createdAt } = info;
  const { parent } = treeParentOf(info);
  const { fromAnchor } = originOf(info);
  const paint = (cell: string, column: number) =>
    column === 0 ? style.text('bold', cell) : column === 2 ? painted(style, cell) : cell;
  const row = [
    session,
    kind,
    state,
    `@${head}`,
    parent === undefined ? '' : `${parent}${fromAnchor === undefined ? '' : ` ⚓ ${fromAnchor}`}`,
    `${isoTime(lastMessageAt ?? createdAt).slice(0, 19)}Z`,
    ...(textOf === undefined ? countsOf(info) : [whole(textOf(info))]),
    ...(isDeleted(info) ? [info.id] : []),
  ];
  return tabbed([row], paint);
}

function countsOf({ messageCount, counts, title = '' }: SessionInfo): readonly string[] {
  return [
    String(messageCount),
    counts === undefined ? '' : childrenOf(counts, { isBrief: false }),
    counts === undefined ? '' : String(counts.tokens),
    whole(title),
  ];
}

/** A text on one line. */
function whole(text: string): string {
  return oneLine(text, Number.POSITIVE_INFINITY);
}
