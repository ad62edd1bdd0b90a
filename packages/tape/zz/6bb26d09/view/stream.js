import { createHash } from 'node:crypto';
                                                    
                                           
import { FitPlan, Fitter } from './fit.js';
import { rulesOf } from './policy.js';
import { renderEntry, renderState,                    } from './render.js';
import { isStructural } from './select.js';
import { TokenCounter } from './tokens.js';
import {                   view } from './view.js';

/** The totals of a view, known once all of its messages have been emitted. */
                          
                                                               
                          
                                                                                          
                          
                                                                           
                     
                   
 

/**
 * Emits the messages of a view one by one, the same as `view` gives, and returns their totals. The full view
 * of a long history is never in memory: it is read twice, and only the entries between a call and its result
 * and the ids of calls are kept. Other views fit a model's window and are made at once.
 * @param read reads what `store.views.entries` returns for the same policy; called up to twice
 * @throws the errors of `view`
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, streamView, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), assistant('Test, tag, publish.')]);
 * const read = () => store.views.entries('main', { policy: 'full' });
 * for await (const { role } of streamView(read, { policy: 'full' })) console.log(role);
 * // user
 * // assistant
 * ```
 */
export async function* streamView(
  read                                              ,
  { policy = 'last-boundary', target = {}, countTokens }              = {},
)                                         {
  const { base, windows } = rulesOf(policy);
  const whole = base === 'full' && windows.length === 0 ? await lookThrough(read(), target) : undefined;
  if (whole === undefined) {
    const { messages, ...end } = view(await Array.fromAsync(read()), { policy, target, countTokens });
    yield* messages;
    return { digest: end.digest, tokens: end.tokens, from: end.from, to: end.to };
  }
  const hash = createHash('sha256').update('[');
  const counter = new TokenCounter(countTokens);
  let isFirst = true;
  const counted = (message               )                => {
    hash.update(`${isFirst ? '' : ','}${JSON.stringify(message)}`);
    isFirst = false;
    counter.take(message);
    return message;
  };
  const { plan, state, from, to } = whole;
  const fitter = new Fitter(plan);
  if (state !== undefined) fitter.begin(state);
  for await (const entry of read()) {
    const rendered = renderEntry(entry);
    if (rendered !== undefined) for (const message of fitter.take(rendered)) yield counted(message);
  }
  for (const message of fitter.end()) yield counted(message);
  return { digest: hash.update(']').digest('hex'), tokens: counter.tokens, from, to };
}

                 
                         
                                            
                     
                   
 

/**
 * First pass over a full view; undefined when the entries contain a rewind, since later entries then hide
 * earlier ones.
 */
async function lookThrough(
  entries                                        ,
  target        ,
)                             {
  const plan = new FitPlan(target);
  let state                           ;
  let from                 ;
  let to = 0;
  for await (const entry of entries) {
    if (entry.mark === 'rewind') return undefined;
    from ??= entry.seq;
    to = entry.seq;
    if (isStructural(entry) && entry.name === 'fork/start') state = renderState(entry);
    const rendered = renderEntry(entry);
    if (rendered !== undefined) plan.take(rendered);
  }
  plan.end();
  return { plan, state, from: from ?? 0, to };
}
