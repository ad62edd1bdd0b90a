import { isoTime } from '@tapedeck/tape/internal';
import { toneOf } from '../output/session.ts';
import type { Stated } from '../session/stated.ts';
import type { SessionRow } from './data.ts';
import { ownRefOf, parentRefOf, withName } from './source.ts';
import { flat } from './texts.ts';

/** Characters of a title that a list shows. */
export const aboutMax = 200;

/** A session in a list. It has its counts and its title where the query selects them. */
export function sessionRow({ info, state }: Pick<Stated, 'info' | 'state'>, depth = 0): SessionRow {
  const { id, kind, title = '', base, head, messageCount, counts, lastMessageAt, createdAt } = info;
  const parent = parentRefOf(info);
  return {
    ...withName(ownRefOf(info), info),
    id,
    kind,
    state,
    tone: toneOf(state),
    about: flat(title, aboutMax),
    ...(parent !== undefined && { parent }),
    base,
    head,
    messages: messageCount,
    tokens: counts?.tokens ?? 0,
    children: counts?.children ?? 0,
    ...(lastMessageAt !== undefined && { lastMessageAt: isoTime(lastMessageAt) }),
    createdAt: isoTime(createdAt),
    depth,
  };
}
