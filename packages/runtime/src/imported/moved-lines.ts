import type { Draft } from '@tapedeck/tape';
import { type ConversationPlan, isAside } from '../plan/plan.ts';
import { type Change, hasAside, isSame, markOf } from './change.ts';
import type { Imported, Shown } from './imported.ts';
import { keyOf, saysLine } from './keys.ts';

/**
 * A change of a source that was written anew, without the records that a tape has of another line: a record without an id is known
 * by its line, and where one before it was added or removed, all that follow it are in other lines. Each that the tape has stands
 * for one of the source. Pure.
 */
export function withoutMoved(change: Change, { asides }: ConversationPlan, tape: Imported): Change {
  const isOfLine = (draft: Draft) => isAside(draft) && saysLine(keyOf(draft));
  if (!change.drafts.some(isOfLine)) return change;
  const given = new Map(asides.map(({ draft }) => [keyOf(draft), draft]));
  const free = new Map<string, Shown[]>();
  for (const [key, all] of tape.byLine) {
    const draft = given.get(key);
    // What the source has in this line is no other one.
    const own = draft && hasAside(tape, draft) ? all.find((one) => isSame(draft, one)) : undefined;
    for (const one of all)
      if (one !== own && one.content !== undefined)
        free.set(one.content, [...(free.get(one.content) ?? []), one]);
  }
  const isTaken = (draft: Draft): boolean => {
    const left = free.get(markOf(draft) ?? '') ?? [];
    const at = left.findIndex(({ kind, name }) => kind === draft.kind && name === draft.name);
    if (at === -1) return false;
    left.splice(at, 1);
    return true;
  };
  const drafts = change.drafts.filter(
    (draft) => !isOfLine(draft) || !isTaken(given.get(keyOf(draft)) ?? draft),
  );
  return { ...change, drafts };
}
