import { encodeDraft } from '../entry/encode.js';
                                                               
import { TapeError,                    } from '../errors.js';
import { chooseName, decideFork,              snapped } from '../fork/fork.js';
import { firstDrafts, rangeOf, settingsOf } from '../fork/marks.js';
                                                      
                                                       
import { findConflicts } from '../merge/conflicts.js';
import { decideMerge, mergedBefore } from '../merge/merge.js';
import {                  planMerge } from '../merge/plan.js';
import {              receiptOf } from '../merge/receipt.js';
                                                
                                               

/** An entry that an act would write. */
                               
                    
                           
                         
                            
 

/**
 * What a merge would write to its target's tape, and return; the receipt of the earlier merge, if one covers the
 * child's head.
 */
                                                                        
                                                           
                                            
                                                                                                      
                               
 

/**
 * What a fork would write to its child's tape, and return. `session` is absent if each call derives a new
 * name.
 */
                                                                                                   
                            
                                             
                                            
 

/** The errors of a merge that its preview reports as its refusal. */
const refusals                             = new Set([
  'TAPE_BUSY',
  'TAPE_UNSETTLED',
  'TAPE_CONFLICT',
  'TAPE_ARCHIVED',
  'TAPE_BAD_ENTRY',
]);

/**
 * Returns what a merge would write and return now, or why it would be refused. Reads only.
 * @throws TAPE_NO_SESSION, TAPE_BAD_STATUS; TAPE_CONFLICT when the child was not forked from the target
 */
export function previewMerge(writer        , realm        , draft            )               {
  const { db } = writer;
  for (;;) {
    const plan = planMerge(db, realm, draft);
    const before = mergedBefore(db, plan, draft);
    if (before !== undefined)
      return {
        ...before.receipt,
        entries: [],
        ...(before.refusal !== undefined && { refusal: before.refusal }),
      };
    try {
      const decided = decideMerge(writer, plan, draft, undefined);
      if (decided === undefined || decided.repeated !== undefined) continue; // It changed after it was read.
      const { into, report, drafts } = decided;
      const receipt = receiptOf(plan, draft, { seq: into.head_seq + 1, report });
      return { ...receipt, entries: entriesAfter(into.head_seq, drafts) };
    } catch (error) {
      if (!(error instanceof TapeError) || !refusals.has(error.code)) throw error;
      const report = findConflicts(db, plan, draft);
      const receipt = receiptOf(plan, draft, { seq: plan.into.head_seq + 1, report });
      return { ...receipt, entries: [], refusal: error };
    }
  }
}

/**
 * Returns what a fork would write and return now. Reads only.
 * @throws the errors of the fork
 */
export function previewFork(writer        , parent         , request             )              {
  const decided = decideFork(writer, parent, request);
  if (decided.repeated !== undefined) {
    const { id: _id, tape: _tape, ...receipt } = decided.repeated;
    return { ...receipt, entries: [] };
  }
  const { cut, since } = decided;
  const { key, name } = request;
  const session = key === undefined && name === undefined ? undefined : chooseName(writer, parent, request);
  const child = { from_anchor: since.anchor ?? null, floor_seq: since.floor, base_seq: cut.base };
  return {
    ...(session !== undefined && { session }),
    parent: parent.name,
    fromAnchor: child.from_anchor,
    base: cut.base,
    range: rangeOf(child),
    ...snapped(cut, request),
    repeated: false,
    entries: entriesAfter(
      cut.base,
      firstDrafts(parent, child, {
        since,
        request,
        settings: { ...settingsOf(writer, parent), ...request.settings },
        now: writer.sources.now(),
      }),
    ),
  };
}

/** Gives drafts the positions that they would get, after the checks of a write. */
function entriesAfter(head     , drafts                  )                 {
  return drafts.map((draft, i) => {
    const { value } = encodeDraft(draft);
    const { kind, name } = draft;
    return { seq: head + 1 + i, kind, ...(name !== undefined && { name }), payload: value };
  });
}
