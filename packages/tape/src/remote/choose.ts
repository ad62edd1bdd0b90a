import type { BundlePart, SessionHead } from '../bundle/part.ts';
import type { Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';

/** A position of a session that another side has, and the hash there. */
export interface Point {
  readonly head: Seq;
  readonly hash: string;
}

/** What another side has. */
export interface There {
  /** The positions up to which it got a session, at one time or another. */
  points(id: string): readonly Point[];
  /** Whether it has the line of an event. */
  knows(event: string): boolean;
}

/** A session that goes to the other side. */
export interface SentSession {
  readonly session: string;
  readonly id: string;
  /** Entries and lines of the lineage that are new there. */
  readonly entries: number;
  readonly lines: number;
}

/** A session that cannot be sent. */
export interface NotSent {
  readonly session: string;
  readonly id: string;
  /** TAPE_DIVERGED: the other side has entries of it that are not here. */
  readonly error: TapeError;
}

/** What a push sends, and what it cannot send. */
export interface Choice {
  readonly parts: readonly BundlePart[];
  readonly sent: readonly SentSession[];
  readonly refused: readonly NotSent[];
  /** Sessions that have nothing new, while the other side has more of them. */
  readonly behind: readonly string[];
}

/** What becomes of a session: where the other side has it up to now, and where it then does. */
interface Way {
  readonly base: Seq;
  readonly after: Seq;
  readonly to: Seq;
  readonly refusal?: TapeError;
}

/**
 * Chooses what of some sessions, parents first and each with its ancestors, the other side lacks. A session of which it
 * has entries that are not here is refused, and so is one that inherits what the other side has otherwise.
 * @param isHere whether the session here has the hash at the position
 */
export function choose(
  heads: readonly SessionHead[],
  there: There,
  isHere: (id: string, point: Point) => boolean,
): Choice {
  const byId = new Map(heads.map((head) => [head.id, head]));
  const ways = new Map<string, Way>();
  const parts = new Map<string, BundlePart>();
  const sent: SentSession[] = [];
  const behind: string[] = [];
  for (const head of heads)
    ways.set(head.id, wayOf(head, there, { isHere, parent: ways.get(head.parent ?? '') }));
  const goes = (id: string) => ways.has(id) && ways.get(id)?.refusal === undefined;
  // A link to a session that the other side lacks would stay away there: it waits here for that.
  const waits = (above: string | undefined) =>
    above !== undefined && there.points(above).length === 0 && !goes(above);
  for (const head of heads) {
    const way = ways.get(head.id);
    if (way === undefined || way.refusal !== undefined) continue;
    if (there.points(head.id).some((point) => point.head > way.to)) behind.push(head.session);
    const lines = head.events.filter((one) => !there.knows(one) && !waits(head.above.get(one))).length;
    const entries = way.to - way.after;
    if (entries === 0 && lines === 0) continue;
    sent.push({ session: head.session, id: head.id, entries, lines });
    for (let at: SessionHead | undefined = head; at !== undefined && !parts.has(at.id); ) {
      const { after, to } = ways.get(at.id) ?? way;
      parts.set(at.id, { session: at.id, after, to });
      at = at.parent === null ? undefined : byId.get(at.parent);
    }
  }
  // Of a session that was archived or deleted here nothing more is to come.
  const refused = heads.flatMap(({ session, id, lifecycle }) => {
    const error = lifecycle === 'active' ? ways.get(id)?.refusal : undefined;
    return error === undefined ? [] : [{ session, id, error }];
  });
  return { parts: [...parts.values()], sent, refused, behind };
}

function wayOf(
  head: SessionHead,
  there: There,
  {
    isHere,
    parent,
  }: { readonly isHere: (id: string, point: Point) => boolean; readonly parent: Way | undefined },
): Way {
  const { id, base } = head;
  const points = there.points(id).toSorted((a, b) => b.head - a.head);
  // Entries before one that both have are the same: each hash covers those before it.
  const shared = points.find((point) =>
    point.head === head.head ? point.hash === head.hash : point.head < head.head && isHere(id, point),
  );
  const after = shared?.head ?? base;
  const hasMore = (points[0]?.head ?? 0) > after;
  if (parent?.refusal !== undefined && (parent.to < base || parent.to === parent.base))
    return refused(
      head,
      after,
      `it descends from '${parent.refusal.data.session}', of which the remote has entries that are not here`,
    );
  if (hasMore && after < head.head)
    return refused(head, after, 'the remote has entries of it that are not here');
  return { base, after, to: head.head };
}

function refused({ session, base }: SessionHead, after: Seq, why: string): Way {
  const refusal = new TapeError('TAPE_DIVERGED', `cannot push '${session}': ${why}`, {
    data: { session, seq: after + 1, remote: true },
  });
  return { base, after, to: after, refusal };
}
