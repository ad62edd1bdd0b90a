/** The name of the event by which an imported session says where it comes from. */
export const importedEvent = 'import/source';

/** What the key of that event begins with, as an import gives it. */
export const originKey = 'import:source:';

/**
 * Whether an entry is the one by which an import says where its session comes from. It has no content of the source, and later
 * imports, and `tape import --forget`, know the session by it.
 */
export function saysSource({
  name,
  key,
}: {
  readonly name?: string | null | undefined;
  readonly key?: string | null | undefined;
}): boolean {
  return name === importedEvent && key?.startsWith(`u:${originKey}`) === true;
}
