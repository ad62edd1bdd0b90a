import type { Entry } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The id that a chat gave to a message which it sent. */
export function chatIdOf(meta: Entry['meta'] | undefined): string | undefined {
  const ui = meta?.ui;
  return isObject(ui) && typeof ui.id === 'string' ? ui.id : undefined;
}
