import type { Db } from '../db/db.ts';
import { note } from '../entry/entry.ts';
import { parsed } from '../entry/parsed.ts';
import { renamedEvent, titleIn } from '../entry/title.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import type { TapeRow } from '../tape/tape.ts';
import { aliasTape, unaliasTape } from './alias.ts';

/** The reason of an alias that a rename gave: the next rename of this name takes it away. */
const renamed = 'renamed';

/**
 * Gives a session a new name, in the caller's transaction: an alias, and the title that an event records. The name that
 * an earlier rename gave, and by which the caller refers to the session, is taken away. Renaming a session to its own name
 * takes the title away. Nothing is written for what is so already.
 * @param by how the caller refers to the session
 * @throws TAPE_BAD_NAME; TAPE_EXISTS as `aliasTape`
 */
export function renameTape(
  writer: Writer,
  realm: string,
  tape: TapeRow,
  { name, by, epoch }: { readonly name: string; readonly by: string; readonly epoch: number },
): TapeRow {
  const { db } = writer;
  const isOwn = name === tape.name;
  const given = reasonsOf(db, tape);
  if (!isOwn && !given.has(name)) aliasTape(writer, realm, tape, { name, reason: renamed });
  if (by !== name && given.get(by) === renamed)
    unaliasTape(writer, realm, tape, { name: by, reason: renamed });
  const title = isOwn ? undefined : name;
  if (title === shownAs(db, tape)) return tape;
  return writeEntries(writer, tape, [note(renamedEvent, { title: title ?? '' })], epoch).tape;
}

/** The aliases of a session, each with its reason. */
function reasonsOf(db: Db, { id }: TapeRow): ReadonlyMap<string, string> {
  const rows = db.all<{ alias: string; reason: string }>(
    'SELECT alias, reason FROM alias WHERE tape_id = @id',
    { id },
  );
  return new Map(rows.map(({ alias, reason }) => [alias, reason]));
}

/** The title that the last rename gave. */
function shownAs(db: Db, { id }: TapeRow): string | undefined {
  const row = db.get<{ payload: string | null }>(
    `SELECT payload FROM entry WHERE tape_id = @id AND name = '${renamedEvent}' AND kind = 'event' ORDER BY seq DESC LIMIT 1`,
    { id },
  );
  return titleIn(parsed(row?.payload ?? null));
}
