import { sha256 } from './hash.js';
import { derivedNameMax } from './name.js';

const slugMax = 24;

/** What the name of a child depends on. */
                              
                                                                                                          
                               
                                                                                                    
                                     
                                                                                      
                           
 

/**
 * Returns the name of a forked child: `{parent}-{words of its task}-{hex}`, or `{parent}-fork-{hex}` without
 * words. The hex is a hash of the parent's name and incarnation and the key or number, so it is the same
 * in every home. The parent's name is cut where the whole would have over 200 characters.
 */
export function childName(
  parent                                                         ,
  { by, task, digits = 8 }             ,
)         {
  const hex = sha256(JSON.stringify(['tape.child.v1', parent.name, parent.incarnation, by])).slice(0, digits);
  const words = task === undefined ? '' : taskSlug(task);
  const suffix = `-${words === '' ? 'fork' : words}-${hex}`;
  return parent.name.slice(0, derivedNameMax - suffix.length) + suffix;
}

/**
 * Returns the first words of a task for a name: at most 24 of `a-z 0-9 -`, cut after a word if there is one. Accents
 * are dropped; empty without a letter or digit of ASCII.
 */
export function taskSlug(task        )         {
  // Enough for 24 characters, and bounded for a task of megabytes.
  const plain = task.slice(0, 1_000).normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const words = plain.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '');
  if (words.length <= slugMax) return words;
  const end = words.lastIndexOf('-', slugMax);
  return words.slice(0, end === -1 ? slugMax : end);
}
