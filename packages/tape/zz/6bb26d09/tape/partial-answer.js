import { assistant,                                  } from '../entry/entry.js';
                                                         

/** A chunk of the AI SDK's UI message stream, as far as an answer consists of it. */
                 
                        
                      
                         
                              
                            
                                  
                        
                        
                                      
                                         
 

/** How many characters are kept of arguments that were incomplete. */
const rawMax = 100_000;

                                                                      

/**
 * The entry of an interrupted answer: its parts, and in `raw_input` what had arrived of arguments that were
 * incomplete. Undefined when nothing had arrived. Pure.
 */
export function partialAnswer(given                                      , meta      )                    {
  const chunks = given                    ;
  const content = partialContent(chunks);
  if (content.length === 0) return undefined;
  const raw = Object.fromEntries(
    [...incompleteCalls(chunks)].map(([id, { inputText }]) => [
      id,
      inputText.slice(0, rawMax).toWellFormed(),
    ]),
  );
  return assistant(content, {
    ...meta,
    ...(Object.keys(raw).length > 0 && { raw_input: raw }),
    partial: true,
  });
}

/** A client-side call whose arguments had not all arrived. */
                          
                            
                    
 

/** The client-side calls without complete arguments, by id. */
function incompleteCalls(chunks                 )                                      {
  const calls = new Map                        ();
  for (const chunk of chunks)
    if (chunk.type === 'tool-input-start') {
      if (chunk.providerExecuted !== true)
        calls.set(chunk.toolCallId, { toolName: chunk.toolName, inputText: '' });
    } else if (chunk.type === 'tool-input-delta') {
      const call = calls.get(chunk.toolCallId);
      if (call !== undefined) call.inputText += chunk.inputTextDelta;
    } else if (chunk.type === 'tool-input-available' || chunk.type === 'tool-input-error')
      calls.delete(chunk.toolCallId);
  return calls;
}

/**
 * The parts of an interrupted answer: the texts received so far, and the calls. A call whose arguments are
 * incomplete has an empty input; a provider's own call without a result is dropped. Pure.
 */
function partialContent(chunks                  )                  {
  const parts         = [];
  const open = new Map              ();
  const begin = (kind        , id        , metadata         ) => {
    const part       = { type: kind, text: '', ...(metadata !== undefined && { providerOptions: metadata }) };
    open.set(`${kind} ${id}`, part);
    parts.push(part                   );
  };
  const grow = (kind        , id        , text        , metadata         ) => {
    const part = open.get(`${kind} ${id}`);
    if (part === undefined) return;
    part.text += text;
    if (metadata !== undefined) part.providerOptions = metadata;
  };
  const incomplete = incompleteCalls(chunks);
  for (const chunk of chunks) {
    switch (chunk.type) {
      case 'tool-input-start':
        if (incomplete.has(chunk.toolCallId)) parts.push(callPart({ ...chunk, input: {} }));
        break;
      case 'text-start':
      case 'reasoning-start':
        begin(chunk.type.slice(0, -6), chunk.id, chunk.providerMetadata);
        break;
      case 'text-delta':
      case 'reasoning-delta':
        grow(chunk.type.slice(0, -6), chunk.id, chunk.delta, chunk.providerMetadata);
        break;
      case 'text-end':
      case 'reasoning-end':
        grow(chunk.type.slice(0, -4), chunk.id, '', chunk.providerMetadata);
        break;
      case 'tool-input-available':
      case 'tool-input-error':
        parts.push(callPart(chunk));
        break;
      case 'tool-output-available':
        parts.push({
          type: 'tool-result',
          toolCallId: chunk.toolCallId,
          toolName: nameOf(parts, chunk.toolCallId),
          output: { type: 'json', value: chunk.output },
        });
        break;
    }
  }
  // A provider refuses a prompt with a provider-executed call that has no result.
  const answered = new Set(parts.filter((p) => p.type === 'tool-result').map((p) => p.toolCallId));
  return parts.filter(
    (part) => part.text !== '' && (part.providerExecuted !== true || answered.has(part.toolCallId)),
  );
}

function callPart({ toolCallId, toolName, input, providerExecuted, providerMetadata }       )       {
  return {
    type: 'tool-call',
    toolCallId,
    toolName,
    input: input ?? {},
    ...(providerExecuted === true && { providerExecuted }),
    ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
  };
}

function nameOf(parts                 , toolCallId        )         {
  return String(parts.find((p) => p.type === 'tool-call' && p.toolCallId === toolCallId)?.toolName ?? '');
}
