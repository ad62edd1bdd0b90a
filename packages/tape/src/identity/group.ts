import type { Db } from '../db/db.ts';
import { aliasTape, unaliasTape } from '../session/alias.ts';
import type { Writer } from '../tape/append.ts';
import { isTyped } from '../tape/info.ts';
import { linkedTo, linkName, nameInLink } from '../tape/link.ts';
import { assertActive, type TapeRow } from '../tape/tape.ts';
import { standingFor } from './identity.ts';

/** Why a key is an alias of a session. */
type IdentityReason = 'identity_promotion' | 'identity_merge' | 'manual';

const reasons = `('identity_promotion','identity_merge','manual')`;

/** The keys and sessions of one entity. */
export interface Group {
  /** The one that receives messages comes first. */
  readonly sessions: readonly TapeRow[];
  /** The keys that are aliases of it. */
  readonly keys: readonly string[];
}

/** The aliases that make a session stand for keys and other sessions. */
function identityAliases(db: Db, { id }: TapeRow): readonly string[] {
  return db
    .all<{ alias: string }>(
      `SELECT alias FROM alias WHERE tape_id = @id AND reason IN ${reasons} ORDER BY g, alias`,
      { id },
    )
    .map(({ alias }) => alias);
}

/** What a key is joined with; nothing, where no session stands for it. */
export function groupOf(db: Db, realm: string, key: string): Group {
  const standing = standingFor(db, realm, key);
  return standing === undefined ? { sessions: [], keys: [] } : groupAround(db, standing.tape);
}

/** What a session stands for. */
export function groupAround(db: Db, tape: TapeRow): Group {
  const keys = identityAliases(db, tape).filter((alias) => nameInLink(alias) === undefined);
  return { sessions: [tape, ...linkedTo(db, tape)], keys };
}

/** The ids of the sessions of a realm that stand for keys or for other sessions. */
export function primaryIds(db: Db, realm: string): readonly number[] {
  return db
    .all<{ id: number }>(
      `SELECT DISTINCT tape_id AS id FROM alias WHERE realm = @realm AND reason IN ${reasons} ORDER BY tape_id`,
      { realm },
    )
    .map(({ id }) => id);
}

/**
 * Makes the session with the most turns stand for keys and sessions, in the caller's transaction: takes away the aliases
 * that say otherwise, and gives those that are missing. The sessions that were of the entity before keep their names.
 * @param before what some of these stood for until now
 * @throws TAPE_ARCHIVED when none of the sessions is active
 * @returns whether an alias changed
 */
export function setGroup(
  writer: Writer,
  { sessions, keys }: Group,
  { before, entity }: { readonly before: readonly TapeRow[]; readonly entity: string },
): { readonly primary: TapeRow | undefined; readonly changed: boolean } {
  const { db } = writer;
  const primary = primaryAmong(db, sessions);
  const wanted = new Map<string, IdentityReason>();
  for (const { id, name } of sessions) if (id !== primary?.id) wanted.set(linkName(name), 'identity_merge');
  if (primary !== undefined)
    for (const key of keys)
      wanted.set(
        key,
        sessions.length > 1 ? 'identity_merge' : key === entity ? 'identity_promotion' : 'manual',
      );
  let changed = false;
  for (const tape of before)
    for (const alias of identityAliases(db, tape)) {
      if (tape.id === primary?.id && wanted.delete(alias)) continue;
      unaliasTape(writer, tape.realm, tape, { name: alias, reason: 'unlinked' });
      changed = true;
    }
  if (primary !== undefined)
    for (const [name, reason] of wanted) {
      aliasTape(writer, primary.realm, primary, { name, reason });
      changed = true;
    }
  return { primary, changed };
}

/** The active session with the most turns; of those with equally many the first, then the oldest. */
function primaryAmong(db: Db, sessions: readonly TapeRow[]): TapeRow | undefined {
  const [first] = sessions;
  if (first === undefined) return undefined;
  const ranked = sessions
    .filter(({ lifecycle }) => lifecycle === 'active')
    .map((tape) => ({ tape, turns: turnsOf(db, tape) }))
    .sort(
      (a, b) =>
        b.turns - a.turns || Number(b.tape === first) - Number(a.tape === first) || a.tape.id - b.tape.id,
    );
  const [best] = ranked;
  if (best === undefined)
    assertActive({ session: first.name, id: first.ulid, lifecycle: first.lifecycle }, 'link');
  return best?.tape;
}

/** How many messages a user has sent to a session. */
function turnsOf(db: Db, { id }: TapeRow): number {
  return (
    db.get<{ n: number }>(
      `SELECT count(*) AS n FROM entry WHERE tape_id = @id AND kind = 'message'
         AND substr(payload, 1, 15) = '{"role":"user",' AND ${isTyped}`,
      { id },
    )?.n ?? 0
  );
}
