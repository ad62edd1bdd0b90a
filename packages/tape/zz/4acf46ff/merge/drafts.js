                                                     
                                                    
import { hex, sha256 } from '../entry/hash.js';
                                                         
                                                        
                                            
import { mergeBlock, mergeSource } from './block.js';
import { textVersion } from './collect.js';
                                                     
                                                       

/** Makes the mark of a merge on the parent's tape. */
export function mergeMark(
  plan           ,
  draft            ,
  { key, report, gap, status }                                                                    ,
)        {
  const { child, range, childHead, collected } = plan;
  const rest = restOf(plan, draft);
  const state             = {
    child: child.ulid,
    session: child.name,
    range,
    child_head: hex(childHead),
    status,
    strategy: draft.strategy ?? 'result',
    result_digest: sha256(draft.text ?? collected.text),
    // Says that the text is the child's own, so that it can be collected again and compared.
    ...(draft.text === undefined && { text_seq: collected.textSeq ?? null, text_version: textVersion }),
    duration_ms: collected.durationMs,
    ...(collected.usage !== undefined && { usage: collected.usage }),
    ...(draft.reason !== undefined && { reason: draft.reason }),
    ...(draft.asked !== undefined && { asked: draft.asked }),
    ...(isPartial(status) && { partial: true }),
    ...(rest.length > 0 && { partial: true, rest }),
    complete: report.complete,
    conflicts: report.conflicts                   ,
    ...(artifactIn(plan)              ),
    gap,
  };
  return { kind: 'anchor', mark: 'anchor', name: `merge/${child.name}`, payload: { state }, key };
}

/** The pieces of interrupted answers that the text of a merge lacks. A given text has none. */
function restOf({ collected }           , { text, strategy }            )                 {
  return text === undefined && strategy !== 'discard' ? (collected.rest ?? []) : [];
}

/** Returns whether a child was stopped before it had finished its work. */
function isPartial(status      )          {
  return status === 'halted' || status === 'aborted' || status === 'filtered' || status === 'orphaned';
}

/**
 * Makes the inbox item that starts a run of the parent, to read a result that it did not wait for. One for each
 * merge: `mergeKey` is the key of the merge's mark.
 */
export function noticeOf({ child }           , status      , mergeKey        )                   {
  const key = mergeKey.replace(/^merge:/, 'notify:');
  const text = `Session ${child.name}, which you started, has ended (${status}). Its report is above.`;
  const payload = { role: 'user', content: [{ type: 'text', text }] };
  const drafts          = [
    { kind: 'message', payload, meta: { source: 'agent', child: child.ulid }, key: `u:${key}` },
  ];
  return { body: { type: 'input', drafts }, mode: 'followup', source: 'agent', key };
}

/** Returns the artifact that a child recorded, if any. */
export function artifactIn({ collected: { recorded } }           )                                   {
  return recorded === undefined ? {} : { artifact: recorded.artifact };
}

/** Makes the message to the parent's model; none for a discard. */
export function mergeMessage(plan           , draft            , status      )          {
  if (draft.strategy === 'discard') return [];
  const { child, range, childHead, collected } = plan;
  const place = { child: child.name, fromAnchor: child.from_anchor, range };
  const text = mergeBlock({
    ...place,
    status,
    partial: isPartial(status) || restOf(plan, draft).length > 0,
    childHead: hex(childHead),
    text: draft.text ?? collected.text,
    ...(draft.text === undefined && { textFrom: collected.textFrom, textSeq: collected.textSeq }),
    charsMax: draft.charsMax,
  });
  return [
    {
      kind: 'message',
      payload: { role: 'user', content: [{ type: 'text', text }] },
      meta: {
        source: 'merge',
        child: child.ulid,
        session: child.name,
        from: mergeSource(place),
        ...(draft.context === false && { context: false }),
        ...(draft.usage !== undefined && { usage: draft.usage }),
      },
    },
  ];
}
