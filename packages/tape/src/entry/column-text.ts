/** The most characters of the title of a session, and of the id of a call, in a row, in a line and in a bundle. */
export const columnTextMax = 4096;

/**
 * A text as each database returns it: half of a surrogate pair is no character of UTF-8, and a server keeps no U+0000. Pure.
 */
export function columnText(text: string): string {
  return text.toWellFormed().replaceAll('\0', ' ');
}

/** A title as a row has it, cut where it is too long for a bundle. Pure. */
export function titleColumn(title: string | null | undefined): string | null {
  return title == null ? null : columnText(title.slice(0, columnTextMax));
}

/** The id of a call as a row has it: another one would name no call, so what is no id in any bundle is left out. Pure. */
export function callColumn(call: string | null | undefined): string | null {
  return call != null && call.length <= columnTextMax && call === columnText(call) ? call : null;
}
