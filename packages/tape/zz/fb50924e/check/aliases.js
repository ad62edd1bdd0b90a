import { hex } from '../entry/hash.js';
                                                   
import { nameKey } from '../entry/name.js';
import { parsed } from '../entry/parsed.js';
import { hashLine } from '../lineage/line.js';
                                              
                                               
import {               problemsOf } from './problem.js';

/** Compares the aliases of a session with the lines of the lineage that gave them and took them away. */
export function* verifyAliases(db    , tape         )                     {
  const lines = db
    .all                                               (
      `SELECT g, line, hash FROM lineage WHERE tape_id = @id AND type IN ('alias', 'unalias') ORDER BY g`,
      { id: tape.id },
    )
    .filter(({ line, hash }) => hashLine(line) === hex(hash));
  /** What is an alias of the session by its lines, and the line that says so. */
  const given = new Map                                                           ();
  for (const { g, line } of lines) {
    const value = parsed(line);
    if (typeof value.alias !== 'string') continue;
    if (value.type === 'alias') given.set(value.alias, { g, line: value });
    else given.delete(value.alias);
  }
  const rows = db.all                                                                               (
    'SELECT realm, alias, name_key, reason, g FROM alias WHERE tape_id = @id ORDER BY alias',
    { id: tape.id },
  );
  const problem = (alias        , why        ) =>
    problemsOf(tape.name)('row-changed', null, `the alias '${alias}' of '${tape.name}' ${why}`);
  for (const { realm, alias, name_key, reason, g } of rows) {
    const by = given.get(alias);
    given.delete(alias);
    // Lines of schema 1 say no reason.
    const isTold = by?.g === g && (by.line.reason ?? reason) === reason;
    if (!isTold || realm !== tape.realm || name_key !== nameKey(alias))
      yield problem(alias, 'differs from the line of the lineage that gave it');
  }
  for (const [alias, { g }] of given) yield problem(alias, `is missing: line ${g} of the lineage gave it`);
}
