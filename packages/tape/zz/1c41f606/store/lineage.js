                                             
import {              forkTape } from '../fork/fork.js';
                                                      
                                                      
import {                    readLineage } from '../lineage/read.js';
                                                     
import { mergeTapes } from '../merge/merge.js';
import { collect,                                     planMerge } from '../merge/plan.js';
                                                  
                                           
                                                  
                                                 
import { keyedDrafts } from './keys.js';
import { assertArgument, assertOptions, fieldsOf,                   } from './options.js';
import {                                      previewFork, previewMerge } from './preview.js';
                                          

/** `store.lineage` of a store in this process. */
                                                                             
                             
                   
                                                                   
                                                                         
    
 

/** Makes `store.lineage`. */
export function lineageOn(at            )                   {
  const { db, realm, writer } = at;

  function mergeAll(drafts                       , o              )                    {
    for (const draft of drafts)
      assertOptions(draft, fieldsOf['lineage.merge'], 'merge', at.named(draft.child));
    assertOptions(o, fieldsOf.write, 'merge');
    for (;;) {
      const planned = drafts.map((draft) => ({ draft, plan: planMerge(db, realm, draft) }));
      const merged = db.writeThrough(() => mergeTapes(writer, planned, o.lease));
      if (merged === undefined) continue; // A child changed after it was read.
      const graph = at.drainOutbox();
      return merged.map((receipt) => ({ ...receipt, ...graph }));
    }
  }

                                                                               
                                                                                     
  function merge(
    what                             ,
    second                              = {},
    third               = {},
  )                             {
    if (typeof what !== 'string') {
      assertArgument(what, 'list', 'merge', 'the children');
      return mergeAll(what, second                );
    }
    const [merged] = mergeAll([{ ...(second                ), child: what }], third);
    if (merged === undefined) throw new TypeError('a merge of one child has one receipt');
    return merged;
  }

  return {
    *read(query               = {})                        {
      assertOptions(query, fieldsOf['lineage.read'], 'read the lineage');
      const { session, ...rest } = query;
      const tape = session === undefined ? undefined : at.need(session).id;
      yield* readLineage(db, { ...rest, tape });
    },

    fork(parent     , request              = {})         {
      const asked = checked(at.named(parent), request);
      const forked = db.writeThrough(() => forkTape(writer, at.need(parent), asked));
      return { ...forked, ...at.drainOutbox() };
    },

    previewFork(parent     , request              = {})              {
      const asked = checked(at.named(parent), request);
      return db.read(() => previewFork(writer, at.need(parent), asked));
    },

    merge,

    previewMerge(child     , request               = {})               {
      assertOptions(request, fieldsOf['lineage.merge'], 'merge', at.named(child));
      return db.read(() => previewMerge(writer, realm, { ...request, child }));
    },

    collect(child     , range                      )            {
      return collect(db, at.need(child), range);
    },
  };
}

/** Checks the fields of a request, normalises its finished work and sets the keys, like `append`. */
function checked(parent              , request             )              {
  assertOptions(request, fieldsOf['lineage.fork'], 'fork', parent);
  const { done, intention } = request;
  if (intention !== undefined) assertOptions(intention, fieldsOf.intention, 'fork', parent);
  if (done === undefined) return request;
  assertOptions(done, fieldsOf.done, 'fork', parent);
  return { ...request, done: { ...done, drafts: keyedDrafts(done.drafts) } };
}
