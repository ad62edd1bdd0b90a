import { note, type SqliteTapeStore } from '@tapedeck/tape';
import { titleEvent, titleLine } from '@tapedeck/tape/internal';
import { appendBeside } from './beside.ts';

const keyPrefix = 'import:title';

/**
 * Gives a session the title that its source has now, where it was created with another one. That of a rename, which a
 * person gave it, comes before both.
 */
export function saveTitle(store: SqliteTapeStore, session: string, title: string | undefined): void {
  const line = title === undefined ? undefined : titleLine(title);
  if (line === undefined) return;
  const own = [...store.entries.read(session, { own: true, name: titleEvent })].filter(({ key = '' }) =>
    key.replace(/^u:/, '').startsWith(keyPrefix),
  );
  const payload = { title: line, source: 'import' };
  const isSaid =
    own.length === 0
      ? titleLine(store.sessions.find(session)?.title ?? '') === line
      : JSON.stringify(own.at(-1)?.payload) === JSON.stringify(payload);
  if (!isSaid)
    appendBeside(store, session, [{ ...note(titleEvent, payload), key: `${keyPrefix}:${own.length + 1}` }]);
}
