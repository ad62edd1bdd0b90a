                                               
import { rangesOf,                   } from '../tape/interval.js';
import { isStart, resolvePoint } from '../tape/point.js';
                                           
import { viewEntries } from '../view/source.js';
                                                  
                                                 
import { assertOptions, fieldsOf,                                 } from './options.js';
                                        

/** Makes `store.views`. */
export function viewsOn(at            )                   {
  const { db } = at;
  return {
    *entries(ref     , query            = {})                  {
      assertOptions(query, fieldsOf['views.entries'], 'view', at.named(ref));
      const { policy = 'last-boundary', at: point = 'head' } = query;
      const tape = at.need(ref);
      // Anchors are resolved as of that position, like in the view itself.
      yield* viewEntries(db, { ...tape, head_seq: resolvePoint(db, tape, point) }, policy);
    },

    ranges(ref     , query             = {})                          {
      assertOptions(query, fieldsOf['views.ranges'], 'read ranges of', at.named(ref));
      const { at: point = 'head', from = 1 } = query;
      const tape = at.need(ref);
      const head = isStart(tape, point) ? tape.floor_seq : resolvePoint(db, tape, point);
      return rangesOf(db, tape, head, from);
    },
  };
}
