/**
 * Identities: keys that a program makes of who sends a message, and the sessions that stand for them. `identity.ts` finds
 * the session of a key, `resolve.ts` promotes or creates one, `group.ts` reads and writes which keys and sessions are of one
 * entity, `link.ts` joins and separates them, `key-name.ts` gives a key a name. All of it is aliases with a reason: a key
 * is an alias of its session, and a session stands for another one by the alias `link:NAME`. Imports `session` and what
 * lies below it.
 */

import type { Db } from '../db/db.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { findNamed } from '../tape/find.ts';
import { linkName } from '../tape/link.ts';
import { type TapeRow, tapeById } from '../tape/tape.ts';
import { namesOfKey } from './key-name.ts';

/** How a key led to its session. */
export type ResolvedHow = 'direct' | 'alias' | 'promoted' | 'created';

/** The session of a key. */
export interface Standing {
  readonly tape: TapeRow;
  /** `direct`: it has the key as its name; `alias`: it stands for the key. */
  readonly how: 'direct' | 'alias';
}

/** Finds the session that stands for a key; undefined when none does. */
export function standingFor(db: Db, realm: string, key: string): Standing | undefined {
  for (const name of namesOfKey(key)) {
    // A link outlives the session of its name, which can be deleted.
    const named = findKept(db, realm, name) ?? findKept(db, realm, linkName(name));
    if (named === undefined) continue;
    const tape = primaryOf(db, named);
    return { tape, how: tape.id === named.id && named.name === name ? 'direct' : 'alias' };
  }
  return undefined;
}

function findKept(db: Db, realm: string, name: string): TapeRow | undefined {
  const tape = findNamed(db, realm, name);
  return tape?.lifecycle === 'staging' ? undefined : tape;
}

/**
 * The session that stands for a session; itself, where none does.
 * @throws TAPE_CONFLICT when links lead in a circle, which only aliases that were given by hand do
 */
function primaryOf(db: Db, tape: TapeRow): TapeRow {
  const seen = new Set<number>();
  for (let at = tape; ; ) {
    if (seen.has(at.id))
      throw new TapeError(
        'TAPE_CONFLICT',
        `cannot tell which session stands for ${quote(tape.name)}: its links lead in a circle`,
        { data: { session: tape.name, circle: true } },
      );
    seen.add(at.id);
    const link = db.get<{ tape_id: number }>(
      'SELECT tape_id FROM alias WHERE realm = @realm AND alias = @alias',
      { realm: at.realm, alias: linkName(at.name) },
    );
    if (link === undefined || link.tape_id === at.id) return at;
    at = tapeById(db, link.tape_id);
  }
}
