import type { Entry } from '../entry/entry.ts';
import { rangesOf, type SessionRange } from '../tape/interval.ts';
import { isStart, resolvePoint } from '../tape/point.ts';
import type { Ref } from '../tape/tape.ts';
import { type Needed, needed, neededEntries } from '../view/source.ts';
import type { Connection } from './connection.ts';
import type { InProcess } from './in-process.ts';
import { assertOptions, fieldsOf, type RangeQuery, type ViewQuery } from './options.ts';
import type { Views } from './store.ts';

/**
 * Finds what is to be read for a view.
 * @throws TAPE_NO_SESSION, TAPE_BAD_OPTION, TAPE_BAD_POLICY, TAPE_NO_ANCHOR
 */
export function neededFor(at: Connection, ref: Ref, query: ViewQuery = {}): Needed {
  assertOptions(query, fieldsOf['views.entries'], 'view', at.named(ref));
  const { policy = 'last-boundary', at: point = 'head' } = query;
  const tape = at.need(ref);
  // Anchors are resolved as of that position, like in the view itself.
  return needed(at.db, { ...tape, head_seq: resolvePoint(at.db, tape, point) }, policy);
}

/** Makes `store.views`. */
export function viewsOn(at: Connection): InProcess<Views> {
  const { db } = at;
  return {
    *entries(ref: Ref, query: ViewQuery = {}): Iterable<Entry> {
      yield* neededEntries(db, neededFor(at, ref, query));
    },

    ranges(ref: Ref, query: RangeQuery = {}): readonly SessionRange[] {
      assertOptions(query, fieldsOf['views.ranges'], 'read ranges of', at.named(ref));
      const { at: point = 'head', from = 1 } = query;
      const tape = at.need(ref);
      const head = isStart(tape, point) ? tape.floor_seq : resolvePoint(db, tape, point);
      return rangesOf(db, tape, head, from);
    },
  };
}
