/** A name of a field that is not taken: two names that are secrets of one kind stay two names. */
export function nameOf(name: string, taken: Set<string>): string {
  let own = name;
  for (let i = 2; taken.has(own); i += 1) own = `${name} ${i}`;
  taken.add(own);
  return own;
}
