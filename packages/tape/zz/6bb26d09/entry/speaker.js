import { isObject,           } from './json.js';

/** Who says a message of a conversation. */
                                           

/** How many messages a conversation has, and who said the last of them. */
                               
                                 
                                        
 

export const silence               = { message_count: 0, last_speaker: null };

/** Whose message an entry is; undefined for one that no reader of the conversation sees as a message. Pure. */
export function speakerOf({
  kind,
  payload,
  meta,
}   
                        
                            
                                                               
 )                      {
  if (kind !== 'message' || !isObject(payload) || meta?.context === false) return undefined;
  return payload.role === 'user' || payload.role === 'assistant' ? payload.role : undefined;
}

/** Counts a message. What a model says with its calls and after their results, until a user says more, is one answer. Pure. */
export function heard({ message_count, last_speaker }              , speaker         )               {
  const isMore = speaker === 'assistant' && last_speaker === 'assistant';
  return { message_count: message_count + (isMore ? 0 : 1), last_speaker: speaker };
}
