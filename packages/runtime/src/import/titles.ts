import { note, type SqliteTapeStore } from '@tapedeck/tape';
import { titleEvent, titleLine } from '@tapedeck/tape/internal';
import { appendBeside } from './beside.ts';

const keyPrefix = 'import:title';

/**
 * Gives a session the title that its source has now. That of a rename, which a person gave it, comes before it; so does
 * that of its creation. Writes nothing where the source has the same title as before.
 */
export function saveTitle(store: SqliteTapeStore, session: string, title: string | undefined): void {
  const line = title === undefined ? undefined : titleLine(title);
  if (line === undefined) return;
  const own = [...store.entries.read(session, { own: true, name: titleEvent })].filter(({ key = '' }) =>
    key.replace(/^u:/, '').startsWith(keyPrefix),
  );
  const last = own.at(-1)?.payload;
  if (JSON.stringify(last) === JSON.stringify({ title: line })) return;
  const key = own.length === 0 ? keyPrefix : `${keyPrefix}:${own.length + 1}`;
  appendBeside(store, session, [{ ...note(titleEvent, { title: line }), key }]);
}
