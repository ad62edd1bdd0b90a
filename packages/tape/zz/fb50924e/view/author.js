                                                    

/** Who wrote a message of the user. */
                         
                                              
                      
                                          
                         
 

/** A message that became a part of a longer one. */
                        
                                      
                                    
 

const labelMax = 80;

/** The author of messages that name none. */
const unnamed         = { id: '', label: 'the user' };

/**
 * Returns the author of a message of the user: `meta.sender` in `meta.channel`, shown as `meta.sender_name`. Undefined
 * for the message of a merge, which has no author.
 */
export function authorOf({ source, channel, sender, sender_name: name }      )                     {
  if (source === 'merge') return undefined;
  if (typeof sender !== 'string') return unnamed;
  const label = lineOf(typeof name === 'string' ? name : sender) || lineOf(sender);
  if (label === '') return unnamed;
  return { id: JSON.stringify([typeof channel === 'string' ? channel : null, sender]), label };
}

/** A name is text of others: it stays on one line, and short. */
function lineOf(text        )         {
  return text
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim()
    .slice(0, labelMax)
    .toWellFormed();
}

/**
 * Joins the messages of a turn of the user. Where several people wrote them, each begins with a line that names its
 * author; messages of one author stay as they are.
 */
export function joined(pieces                  )                  {
  const authors = new Set(pieces.flatMap(({ author }) => author?.id ?? []));
  if (authors.size < 2) return pieces.flatMap(({ content }) => content);
  return pieces.flatMap(({ author, content }) =>
    author === undefined ? content : [{ type: 'text', text: `From ${author.label}:` }, ...content],
  );
}
