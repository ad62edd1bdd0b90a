import {                                                liveRuns, saveChunks } from '../tape/chunks.js';
                                           
                                                  
                                                 
import { assertOptions, fieldsOf } from './options.js';
                                       

/** Makes `store.live`. */
export function liveOn(at            )                  {
  const { db } = at;
  return {
    save(streams                       )       {
      db.writeBehind(() => {
        for (const stream of streams) saveChunks(db, at.need(stream.session), stream);
      });
    },

    read(ref     , query            = {})                     {
      assertOptions(query, fieldsOf['live.read'], 'read live answers of', at.named(ref));
      return liveRuns(db, at.need(ref), query);
    },
  };
}
