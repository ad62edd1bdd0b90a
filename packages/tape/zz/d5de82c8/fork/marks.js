                                                    
import { isObject,                 } from '../entry/json.js';
                                                      
                                                
import { entryAt } from '../tape/read.js';
                                               
                                                
                                       

/** The position of a child on its parent's tape. */
                                                                         

/** Returns a child's first entries: `fork/start`, its intention and its finished work. */
export function firstDrafts(
  parent         ,
  child           ,
  {
    since,
    request: { intention, terms, worktree, done },
    settings,
    now,
  }                                                                           ,
)          {
  const more = {
    ...(since.state !== undefined && { state: since.state }),
    ...(Object.keys(settings).length > 0 && { settings }),
    ...(terms !== undefined && { terms }),
    ...(worktree !== undefined && {
      worktree: { repository: worktree.repository, git: worktree.git },
    }),
  };
  return [startMark(parent, child, more), ...intentionMark(intention, now), ...(done?.drafts ?? [])];
}

export function rangeOf(child                                           )                    {
  return child.floor_seq === child.base_seq ? null : [child.floor_seq + 1, child.base_seq];
}

/** Returns the settings that a fork's start records. */
export function settingsOf({ db }                    , tape         )             {
  if (tape.parent_id === null) return {};
  const payload = entryAt(db, tape, tape.base_seq + 1)?.payload;
  return isObject(payload) && isObject(payload.settings) ? payload.settings : {};
}

function startMark(parent         , child           , more            )        {
  return {
    kind: 'anchor',
    mark: 'anchor',
    name: 'fork/start',
    payload: {
      parent: parent.ulid,
      parent_name: parent.name,
      from_anchor: child.from_anchor,
      range: rangeOf(child),
      base: child.base_seq,
      ...more,
    },
  };
}

function intentionMark(intention                       , now        )          {
  if (intention === undefined) return [];
  const { nextSteps, contextSummary, triggerOnComplete } = intention;
  const state = {
    ...(nextSteps !== undefined && { next_steps: nextSteps }),
    ...(contextSummary !== undefined && { context_summary: contextSummary }),
    ...(triggerOnComplete !== undefined && { trigger_on_complete: triggerOnComplete }),
    created_at: new Date(now).toISOString(),
  };
  return [{ kind: 'anchor', mark: 'anchor', name: 'intention', payload: { state } }];
}
