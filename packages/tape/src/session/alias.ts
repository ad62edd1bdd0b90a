import { crashPoint } from '../crash-point.ts';
import { parseName, quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { lastLine, recordLineage } from '../lineage/outbox.ts';
import type { Writer } from '../tape/append.ts';
import { findNamed, findTape } from '../tape/find.ts';
import type { TapeRow } from '../tape/tape.ts';
import { insertAlias, isAlias, lookAlike, readsAsPoint } from './names.ts';
import type { Alias } from './session.ts';

/**
 * Adds an alias of a session, with its lineage line, in the caller's transaction. Adding it again, with the same reason
 * or none, changes nothing.
 * @throws TAPE_BAD_NAME; TAPE_EXISTS when the alias names another session, is the session's own name or id, looks like
 * another name, reads as a point of a session, or was given with another reason
 */
export function aliasTape(
  writer: Writer,
  realm: string,
  tape: TapeRow,
  { name: alias, reason }: Alias,
): void {
  parseName(alias);
  const taken = findTape(writer.db, realm, alias);
  if (taken?.id === tape.id) {
    assertSame(writer, realm, tape, { name: alias, reason });
    return;
  }
  if (taken !== undefined)
    throw new TapeError(
      'TAPE_EXISTS',
      `cannot alias '${alias}' to '${tape.name}': it already names '${taken.name}'`,
      { data: { alias, session: taken.name } },
    );
  const near = lookAlike(writer.db, realm, alias);
  if (near !== undefined)
    throw new TapeError(
      'TAPE_EXISTS',
      `cannot alias '${alias}' to '${tape.name}': it differs from '${near}' only by case or Unicode form`,
      { data: { alias, session: near, near: [near] } },
    );
  const point = readsAsPoint(writer.db, realm, alias);
  if (point !== undefined)
    throw new TapeError('TAPE_EXISTS', `cannot alias '${alias}' to '${tape.name}': ${point}`, {
      data: { alias, session: tape.name },
    });
  recordLineage(writer, tape, { type: 'alias', alias, reason });
  const g = lastLine(writer.db);
  crashPoint('alias/lineage');
  insertAlias(writer, { id: tape.id, realm }, { alias, reason, g });
  crashPoint('alias/row');
}

/** Refuses what would record nothing of what the caller says about a name that the session has already. */
function assertSame({ db }: Writer, realm: string, tape: TapeRow, { name, reason }: Alias): void {
  const given = db.get<{ reason: string }>(
    'SELECT reason FROM alias WHERE realm = @realm AND alias = @name',
    { realm, name },
  );
  const fault =
    given === undefined
      ? 'it is its name or id'
      : reason === '' || reason === given.reason
        ? undefined
        : `it is its alias already, with another reason (${quote(given.reason)}): take it away first`;
  if (fault !== undefined)
    throw new TapeError('TAPE_EXISTS', `cannot alias ${quote(name)} to '${tape.name}': ${fault}`, {
      data: { alias: name, session: tape.name },
    });
}

/**
 * Takes an alias away from a session, with its lineage line, in the caller's transaction. The name is free then. Taking
 * away what is no name at all changes nothing.
 * @throws TAPE_EXISTS when it names another session, or is the session's own name
 */
export function unaliasTape(
  writer: Writer,
  realm: string,
  tape: TapeRow,
  { name: alias, reason }: Alias,
): void {
  const { db } = writer;
  const taken = findNamed(db, realm, alias);
  if (taken === undefined) return;
  if (taken.id !== tape.id || !isAlias(db, realm, alias))
    throw new TapeError(
      'TAPE_EXISTS',
      `cannot take the alias ${quote(alias)} from '${tape.name}': it ${taken.id === tape.id ? 'is its name or id' : `names '${taken.name}'`}`,
      { data: { alias, session: taken.name } },
    );
  recordLineage(writer, tape, { type: 'unalias', alias, reason });
  crashPoint('unalias/lineage');
  db.run('DELETE FROM alias WHERE realm = @realm AND alias = @alias', { realm, alias });
  crashPoint('unalias/row');
}
