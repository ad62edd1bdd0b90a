import { clientCalls } from '../entry/client-calls.js';
                                                    
import { isObject,           } from '../entry/json.js';

/** A text of a child, and the position of its last piece. */
                            
                    
                        
 

/** The last answer of a child: the text of all its pieces. */
                                                
                                                                                   
                     
                                                                                                   
                                
 

/** What is known of the answers of a child up to an entry. */
                          
                              
                                                                         
                                        
                                                               
                                  
                                                                                               
                                
 

/** The state before the first entry. */
export const noAnswers          = { pieces: [], merged: [], rest: [] };

/**
 * Returns the answers up to and including an entry. An answer with `meta.partial` was interrupted: the next
 * answer continues it, and the two are one text, unless a message, a call or a result stands between. An
 * answer that begins with the pieces before it has started again, and stands for them. Pure.
 */
export function afterEntry(answers         , { kind, payload, meta, seq }       )          {
  if (kind !== 'message' && kind !== 'tool-result') return answers;
  const { last, pieces, merged, rest } = answers;
  if (!isObject(payload) || payload.role !== 'assistant')
    return { ...answers, pieces: [], merged: [], rest: [...rest, ...seqsOf(pieces)] };
  const isPartial = meta.partial === true;
  const said = assistantText(payload);
  if (said.trim() === '') return isPartial ? answers : { ...noAnswers, ...(last !== undefined && { last }) };
  const before = pieces.map(({ text }) => text).join('');
  const joined = said.startsWith(before) ? [] : pieces;
  const text = said.startsWith(before) ? said : before + said;
  const answer = { seq, text, from: joined[0]?.seq ?? seq, rest: [...merged, ...rest] };
  if (!isPartial) return { ...noAnswers, last: answer };
  const held = [...joined, { seq, text: said }];
  if (clientCalls(payload).length === 0) return { last: answer, pieces: held, merged, rest };
  return { last: answer, pieces: [], merged: [], rest: [...rest, ...seqsOf(held)] };
}

/**
 * The state at the beginning of a range, from the state at the end of the entries before it. An answer that
 * was interrupted there goes on in the range; its pieces were delivered before. Pure.
 */
export function atRangeStart({ pieces }         )          {
  return { ...noAnswers, merged: seqsOf(pieces) };
}

function seqsOf(pieces                      )                 {
  return pieces.map(({ seq }) => seq);
}

/** The text parts of an assistant message, joined; empty for any other payload. */
export function assistantText(payload      )         {
  if (!isObject(payload) || payload.role !== 'assistant' || !Array.isArray(payload.content)) return '';
  return payload.content
    .flatMap((part) => (isObject(part) && part.type === 'text' ? [String(part.text)] : []))
    .join('');
}
