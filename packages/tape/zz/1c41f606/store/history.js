import {               rewindTape, unrewindTape } from '../history/rewind.js';
                                              
import { settleDead } from '../tape/leftovers.js';
                                              
                                                    
                                                  
                                                 
import { assertOptions, fieldsOf,                                          } from './options.js';
                                          

/** Makes `store.history`. */
export function historyOn(at            )                     {
  const { db, writer } = at;

  /** The tape with what a run that died had saved, and the epoch to write it under. */
  function settled(tape         , lease                   )                                   {
    const epoch = at.epoch(tape, lease);
    return { tape: lease === undefined ? settleDead(writer, tape, { epoch }) : tape, epoch };
  }

  return {
    rewind(ref     , to       , o                = {})          {
      assertOptions(o, fieldsOf['history.rewind'], 'rewind', at.named(ref));
      return db.write(() => {
        const { tape, epoch } = settled(at.need(ref), o.lease);
        return rewindTape(writer, tape, { to, epoch, mode: o.mode });
      });
    },

    unrewind(ref     , o                  = {})          {
      assertOptions(o, fieldsOf['history.unrewind'], 'unrewind', at.named(ref));
      return db.write(() => {
        const { tape, epoch } = settled(at.need(ref), o.lease);
        return unrewindTape(writer, tape, { epoch, rewind: o.rewind });
      });
    },
  };
}
