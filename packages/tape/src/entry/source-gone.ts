import { isObject } from './json.ts';

/** The name of the event that says that the file from which a session was imported is gone, or is back. */
export const sourceGoneEvent = 'import/gone';

/** The file that is gone, by the payload of the last such event; undefined where it is back. Pure. */
export function goneFileIn(payload: unknown): string | undefined {
  if (!isObject(payload) || payload.back === true) return undefined;
  return typeof payload.file === 'string' ? payload.file : undefined;
}
