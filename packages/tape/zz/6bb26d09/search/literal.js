/** A place in a text, in UTF-16 code units. */
                        
                      
                          
 

/** The longest part of a text that one expression matches: V8 refuses much longer expressions. */
const partChars = 4_096;

/** Returns a function that finds the first place of a text in another, ignoring case. */
export function literal(text        )                                         {
  const letters = [...text];
  const parts           = [];
  for (let i = 0; i < letters.length; i += partChars)
    parts.push(new RegExp(RegExp.escape(letters.slice(i, i + partChars).join('')), i === 0 ? 'giu' : 'yiu'));
  const [first = /^(?!)/g, ...rest] = parts;
  return (content) => {
    first.lastIndex = 0;
    for (let found = first.exec(content); found !== null; found = first.exec(content)) {
      let end = first.lastIndex;
      const isWhole = rest.every((part) => {
        part.lastIndex = end;
        const matches = part.test(content);
        end = part.lastIndex;
        return matches;
      });
      if (isWhole) return { at: found.index, length: end - found.index };
      first.lastIndex = found.index + 1;
    }
    return undefined;
  };
}

/** The text around a place, on one line. */
export function snippetOf(content        , { at, length }       )         {
  const from = Math.max(0, at - 40);
  return content
    .slice(from, at + length + 80)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
}
