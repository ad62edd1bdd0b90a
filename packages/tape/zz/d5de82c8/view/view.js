/**
 * Views: the messages of a tape that a model receives. `source.ts` reads the entries that a policy needs. All
 * else is pure: `select.ts` selects among them, `render.ts` renders them as messages, `fit.ts` makes these
 * valid for a provider, and `manifest.ts` records what a view was made of. Imports `tape` and what lies below
 * it.
 */
                                                    
import { sha256 } from '../entry/hash.js';
                                           
import { fitTo } from './fit.js';
import {                manifestOf } from './manifest.js';
                                              
import { renderEntry, renderState,                    } from './render.js';
import {                 select } from './select.js';
import {                   estimateTokens, usedSinceStep } from './tokens.js';

/** How to render a view. */
                              
                               
                           
                                                                          
                                                 
 

/**
 * The messages of a session for one target. The same entries and options give the same bytes.
 *
 * @example
 * ```ts
 * import { openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * for (const { seq, in: shown, why } of view(store.views.entries('main')).explain())
 *   if (shown) console.log(seq, why); // 2 in view
 * ```
 */
                       
                                              
                                                                                               
                          
     
                                                                                                         
                                                                                                            
                                 
     
                          
                                                                                           
                               
                                                                           
                     
                   
                                                       
                                                                                          
                                                       
                       
 

/**
 * Renders the entries of a session for a target. Pure: no store, no clock.
 * @param entries all entries of a session, or those that `store.views.entries` reads for the same policy
 * @throws TAPE_BAD_POLICY; TAPE_NO_ANCHOR when the policy names an anchor that is not visible
 *
 * @example
 * ```ts
 * import { openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * const { messages } = view(store.views.entries('main'));
 * console.log(messages[0]?.role, messages[0]?.content[0]?.text); // user Plan the release.
 * ```
 */
export function view(
  entries                 ,
  { policy = 'last-boundary', target = {}, countTokens }              = {},
)       {
  const all = [...entries];
  const selection = select(all, policy);
  const { start, entries: selected, pruned, reasons } = selection;
  const state = renderState(start);
  const rendered = selected.flatMap((entry) => renderEntry(entry, pruned.get(entry.seq)) ?? []);
  const messages = fitTo(
    state === undefined ? rendered : [{ type: 'message', message: state, provider: undefined }, ...rendered],
    target,
  );
  const shown = inOrder(selection);
  let made                    ;
  const digest = () => {
    made ??= sha256(JSON.stringify(messages));
    return made;
  };
  const used = usedSinceStep(shown, { policy, count: countTokens });
  const tokens = used ?? estimateTokens(messages, countTokens);
  return {
    messages,
    get digest() {
      return digest();
    },
    tokens,
    isEstimate: used === undefined,
    from: shown[0]?.seq ?? 0,
    to: shown.at(-1)?.seq ?? 0,
    explain: () =>
      all.map((entry) => {
        const reason = reasons.get(entry.seq) ?? { in: false, why: 'not visible' };
        const skipped = reason.in && entry !== start && renderEntry(entry) === undefined;
        return {
          seq: entry.seq,
          ...(skipped ? { in: false, why: `views skip ${entry.kind} entries` } : reason),
        };
      }),
    manifest: () =>
      manifestOf(all, selection, { policy, provider: target.provider, tokens, digest: digest() }),
  };
}

/** The shown entries and the one whose state begins the view, in order of position. */
function inOrder({ start, entries }           )                   {
  return (start === undefined ? [...entries] : [start, ...entries]).sort((a, b) => a.seq - b.seq);
}
