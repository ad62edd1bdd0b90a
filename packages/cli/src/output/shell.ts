/** A text as one word of a shell: names of directories may be made to do harm when a hint is pasted. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
