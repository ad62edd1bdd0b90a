import { type Draft, type Entry, type HomeStore, note } from '@tapedeck/tape';
import { isObject, titleEvent, titleLine } from '@tapedeck/tape/internal';
import { text } from '../plan/text.ts';
import { appendBeside } from './beside.ts';

const keyPrefix = 'import:title';

/**
 * Gives a session the title that its source has now, where it was created with another one. That of a rename, which a
 * person gave it, comes before both.
 * @param isEarlier whether the source gave the session its present title later. Called where the two differ
 */
export function saveTitle(
  store: HomeStore,
  session: string,
  title: string | undefined,
  isEarlier: () => boolean,
): void {
  const line = title === undefined ? undefined : titleLine(title);
  if (line === undefined) return;
  const own = importedTitles(store, session);
  // What was redacted stays so.
  const last = own.at(-1) ?? [...store.entries.read(session, { own: true, limit: 1 })][0];
  if (last?.payload === null) return;
  const draft = titleDraft(line, own.length + 1);
  const isSaid =
    own.length === 0
      ? titleLine(store.sessions.find(session)?.title ?? '') === line
      : JSON.stringify(last?.payload) === JSON.stringify(draft.payload);
  if (!isSaid && !isEarlier()) appendBeside(store, session, [draft]);
}

/** The titles that a session got from its source, in order. */
export function importedTitles(store: HomeStore, session: string): readonly Entry[] {
  return [...store.entries.read(session, { own: true, name: titleEvent })].filter(({ key = '' }) =>
    key.replace(/^u:/, '').startsWith(keyPrefix),
  );
}

/** The title that an event gives; undefined where it was erased. */
export function titleIn({ payload }: Pick<Entry, 'payload'>): string | undefined {
  return isObject(payload) ? text(payload.title) : undefined;
}

/** The event of the nth title that a session got from its source. */
export function titleDraft(title: string, n = 1): Draft {
  return { ...note(titleEvent, { title, source: 'import' }), key: `${keyPrefix}:${n}` };
}

/** That of a title which an import concluded: the source gives none, and what it says gives way to one. */
export function concludedTitle(title: string, n: number): Draft {
  return { ...note(titleEvent, { title, source: 'import', derived: true }), key: `${keyPrefix}:${n}` };
}

/** Whether an import concluded the title that an event gives. */
export function isConcluded({ payload }: Pick<Entry, 'payload'>): boolean {
  return isObject(payload) && payload.derived === true;
}
