/** A name as a word of a shell: names come from other people, and a command that is copied must mean the same. */
export function shellWord(name: string): string {
  return /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
