                                              
import {              joined,            } from './author.js';
import {               dialectOf,             } from './dialect.js';
import { callId, callInput, fitResult, isClientCall,              } from './fit-call.js';
import { asAuthored, fitAssistantPart, fitUserPart, isOwn, optionsFor, withOptions } from './fit-part.js';
import { ItemIds } from './item-ids.js';
import { ProviderRunFinder } from './provider-runs.js';
                                                           
import { legalToolName } from './tool-name.js';

/** The result of a call that has none in view: providers reject an unanswered call. */
export const noResult = 'No result of this call was recorded.';

/** The assistant message between a result and a user message, for targets that require one. */
export const noAnswer = 'No answer was recorded here.';

/** The user message before an assistant message that begins a view: a conversation begins with the user. */
export const noStart = 'The conversation before this point is not shown.';

/** The user message between two assistant messages. */
export const continueText = 'Go on.';

                
                                                   
                          
                      
                        
                                           
                           
                
 

                
                                  
                                                
                                      
                                                    
                                  
     
                                                                                                             
         
     
                              
 

/**
 * Makes messages valid for their target: the user begins, and user and assistant alternate; each client-side
 * call has exactly one result, right after its message; parts that only one provider can read return to it
 * byte for byte, and are dropped or quoted for others; no message is empty. Pure. Appending to the tape only
 * appends to the messages, except where the tape ended in an open call or message.
 */
export function fitTo(rendered                     , target         = {})                  {
  const plan = new FitPlan(target);
  for (const item of rendered) plan.take(item);
  plan.end();
  const fitter = new Fitter(plan);
  const messages                  = [];
  for (const item of rendered) messages.push(...fitter.take(item));
  messages.push(...fitter.end());
  return messages;
}

/** First pass over all rendered entries: collects what the first message already depends on. */
export class FitPlan {
           dialect         ;
           runs                   ;
  /** The indexes of calls without a result. */
           lost              = new Set();
           #open = new Map                  ();
  #messages = 0;
  #calls = 0;

  constructor(target        ) {
    this.dialect = dialectOf(target);
    this.runs = new ProviderRunFinder(this.dialect);
  }

  take(item          )       {
    if (item.type === 'result') {
      const id = String(item.part.toolCallId);
      const open = this.#open.get(id);
      open?.pop();
      if (open?.length === 0) this.#open.delete(id);
      return;
    }
    this.runs.take(item, this.#messages);
    this.#messages += 1;
    if (item.message.role !== 'assistant') return;
    const ids = item.message.content.filter(isClientCall).map((part) => String(part.toolCallId));
    // Of two calls in one message with the same id, the first gets the first result.
    for (const [i, id] of [...ids.entries()].reverse()) pushTo(this.#open, id, this.#calls + i);
    this.#calls += ids.length;
  }

  end()       {
    this.runs.end();
    for (const calls of this.#open.values()) for (const call of calls) this.lost.add(call);
    this.#open.clear();
  }
}

/**
 * Second pass over the same rendered entries: makes the messages. Each message is emitted once the results of
 * its calls have been taken, so memory is bounded by the distance between a call and its result.
 */
export class Fitter {
           #plan         ;
  /** Ids of calls that are in use. */
           #seen         ;
           #items         ;
           #turns         = [];
  /** Calls without a result, by their ids on the tape; the first call of each message is last in its list. */
           #open = new Map                ();
  /** Finished messages. The last one may still be joined with the next. */
           #made                  = [];
  /** The messages that the last one is joined from, if it is one of the user; it is joined once no more can follow. */
  #pieces          = [];
  #messages = 0;
  #calls = 0;

  constructor(plan         ) {
    this.#plan = plan;
    this.#seen = { ids: new Set(plan.runs.ids), last: new Map() };
    this.#items = new ItemIds(plan.dialect);
  }

  /** Adds the message before all others: the rendered state. */
  begin(state               )       {
    this.#made.push(state);
    this.#pieces = [{ author: undefined, content: state.content }];
  }

  take(item          )                           {
    if (item.type === 'result') this.#answer(item.part);
    else this.#turns.push(this.#turnOf(this.#items.once(item)));
    for (let turn = this.#turns[0]; turn !== undefined && isAnswered(turn); turn = this.#turns[0]) {
      this.#turns.shift();
      this.#add(turn);
    }
    return this.#made.length < 2 ? [] : this.#made.splice(0, this.#made.length - 1);
  }

  end()                           {
    this.#joinLast();
    return this.#made;
  }

  /** Assigns a result to the newest open call with its id. A result without a call in view is dropped. */
  #answer(part      )       {
    const id = String(part.toolCallId);
    const open = this.#open.get(id);
    const call = open?.pop();
    if (open?.length === 0) this.#open.delete(id);
    if (call !== undefined) call.result = fitResult(part, call, this.#plan.dialect);
  }

  /** Appends a turn to the messages, with a filler message where the target requires one between them. */
  #add({ message, author, calls, continues }      )       {
    const messages = this.#made;
    if (message.content.length === 0) return;
    const last = messages.at(-1);
    if (message.role === 'user') {
      const piece = { author, content: message.content };
      if (last?.role === 'user') {
        this.#pieces.push(piece);
        messages[messages.length - 1] = withOptionsOf(last, message);
        return;
      }
      this.#pieces = [piece];
      if (this.#plan.dialect.alternates && last?.role === 'tool')
        messages.push(textMessage('assistant', noAnswer));
    } else {
      this.#joinLast();
      if (last === undefined) messages.push(textMessage('user', noStart));
      else if (last.role === 'assistant' && !continues) messages.push(textMessage('user', continueText));
    }
    messages.push(message);
    if (calls.length > 0) messages.push({ role: 'tool', content: calls.map(resultOf) });
  }

  /** Gives the last message the content of all that it is joined from. */
  #joinLast()       {
    const last = this.#made.at(-1);
    if (last !== undefined && this.#pieces.length > 1)
      this.#made[this.#made.length - 1] = { ...last, content: joined(this.#pieces) };
    this.#pieces = [];
  }

  #turnOf(item                                )       {
    const { dialect, runs, lost } = this.#plan;
    const { message, provider: author } = item;
    const { role } = message;
    const number = this.#messages;
    this.#messages += 1;
    const calls         = [];
    const fitted = (part      , index        )                   => {
      if (role !== 'assistant') return fitUserPart(part, dialect);
      const own = isOwn(part, author, dialect);
      if (!isClientCall(part))
        return fitAssistantPart(part, { dialect, own, paired: runs.paired.get(number)?.has(index) === true });
      const free = own && !dialect.checksIds;
      const onTape = String(part.toolCallId);
      const id = callId(onTape, free, this.#seen);
      const name = legalToolName(String(part.toolName));
      calls.push({ onTape, id, name, isLost: lost.has(this.#calls) });
      this.#calls += 1;
      const shown = { ...part, toolCallId: id, toolName: name, input: callInput(part.input) };
      return own ? asAuthored(shown, dialect) : withOptions(shown, dialect);
    };
    const shown         = [];
    for (const [index, part] of message.content.entries()) {
      const one = fitted(part, index);
      if (one !== undefined) shown.push(one);
    }
    const content = withoutLooseReasoning(shown);
    // Of two calls in one message with the same id, the first gets the first result.
    for (const call of calls.toReversed()) pushTo(this.#open, call.onTape, call);
    const options = optionsFor(message.providerOptions, dialect);
    return {
      message: { role, content, ...(options !== undefined && { providerOptions: options }) },
      author: item.author,
      calls,
      continues: runs.continuing.has(number),
    };
  }
}

function isAnswered({ calls }      )          {
  return calls.every(({ isLost, result }) => isLost || result !== undefined);
}

function pushTo   (lists                  , key        , item   )       {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

/** Drops trailing reasoning: providers reject a message that ends with it. */
function withoutLooseReasoning(content                 )                  {
  const last = content.findLastIndex(({ type }) => type !== 'reasoning' && type !== 'reasoning-file');
  return last === content.length - 1 ? content : content.slice(0, last + 1);
}

function resultOf({ id, name, result }      )       {
  return (
    result ?? {
      type: 'tool-result',
      toolCallId: id,
      toolName: name,
      output: { type: 'error-text', value: noResult },
    }
  );
}

function textMessage(role                      , text        )                {
  return { role, content: [{ type: 'text', text }] };
}

/** Adds the options of a message that is joined with this one. */
function withOptionsOf(a               , b               )                {
  const options = { ...a.providerOptions, ...b.providerOptions };
  return { ...a, ...(Object.keys(options).length > 0 && { providerOptions: options }) };
}
