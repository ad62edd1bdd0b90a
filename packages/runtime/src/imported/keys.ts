/** The key of a draft, of which an entry of a tape may be a later writing. */
export function keyOf({ key = '' }: { readonly key?: string | undefined }): string {
  return key.replace(/^u:/, '').replace(/~again\d+$/, '');
}

/** The key of a draft that was written under its own one before, so often. */
export function keyAgain(key: string, again: number): string {
  return again === 0 ? key : `${key}~again${again}`;
}

/** Whether a key says the line of its record, as that of one without an id does: in another file another one can be there. */
export function saysLine(key: string): boolean {
  return /\bline:\d+/.test(key);
}

/** Ids that tools give to records, and digests of what has no id. */
const ownId = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|:[0-9a-f]{12,64}$/;

/** Whether a key has the id of its record, or a digest of it, which no other record has. */
export function hasOwnId(key: string): boolean {
  return ownId.test(key);
}
