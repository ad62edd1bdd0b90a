                                               
import { appendStaged, publishTapes,                 stageTape } from '../session/stage.js';
import {                receipt } from '../tape/append.js';
import { infoOf,                  } from '../tape/info.js';
                                                  
                                                 
import { keyedDrafts } from './keys.js';
import { assertOptions, fieldsOf } from './options.js';
                                          

/** Makes `store.imports`. */
export function importsOn(at            )                     {
  const { db, realm, writer } = at;
  return {
    stage(name        , init            = {})              {
      assertOptions(init, fieldsOf['imports.stage'], 'stage session', name);
      return db.write(() => infoOf(db, stageTape(writer, realm, name, init)));
    },

    append(id        , batch                  )           {
      const drafts = keyedDrafts(batch);
      return db.write(() => receipt(appendStaged(writer, id, drafts)));
    },

    publish(ids                   )                         {
      // The receipt is read before the commit: once that is done, nothing may refuse the act.
      const published = db.writeThrough(() => publishTapes(writer, ids).map((tape) => infoOf(db, tape)));
      at.drainOutbox();
      return published;
    },
  };
}
