import type { JsonObject } from '../entry/json.ts';
import { nameKey } from '../entry/name.ts';
import { isDeleted, type TapeRow } from '../tape/tape.ts';
import type { Beside } from './beside.ts';
import { type Problem, problemsOf } from './problem.ts';

/** Compares the aliases of a session with the lines of the lineage that gave them and took them away. */
export function* verifyAliases(tape: TapeRow, { lines, aliases }: Beside): Generator<Problem> {
  /** What is an alias of the session by its lines, and the line that says so. */
  const given = new Map<string, { readonly g: number; readonly line: JsonObject }>();
  for (const { g, type, fields: value } of lines) {
    const isAbout = type === 'alias' || type === 'unalias';
    if (!isAbout || typeof value?.alias !== 'string') continue;
    if (value.type === 'alias') given.set(value.alias, { g, line: value });
    else given.delete(value.alias);
  }
  // A deleted session has given up its names, until it is brought back.
  if (isDeleted(tape)) given.clear();
  const problem = (alias: string, why: string) =>
    problemsOf(tape.name)('row-changed', null, `the alias '${alias}' of '${tape.name}' ${why}`);
  for (const { realm, alias, name_key, reason, g } of aliases) {
    const by = given.get(alias);
    given.delete(alias);
    // Lines of schema 1 say no reason.
    const isTold = by?.g === g && (by.line.reason ?? reason) === reason;
    if (!isTold || realm !== tape.realm || name_key !== nameKey(alias))
      yield problem(alias, 'differs from the line of the lineage that gave it');
  }
  for (const [alias, { g }] of given) yield problem(alias, `is missing: line ${g} of the lineage gave it`);
}
