import type { Db } from '../db/db.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { ensureSession, type SessionInit } from '../session/session.ts';
import type { Writer } from '../tape/append.ts';
import type { TapeRow } from '../tape/tape.ts';
import { type Group, groupOf, setGroup } from './group.ts';
import { freeNameOf, namesOfKey } from './key-name.ts';

/** What a change of an identity left. */
export interface Changed {
  /** The session that stands for the entity, or did until now. */
  readonly primary: TapeRow;
  readonly changed: boolean;
  readonly created: boolean;
}

/**
 * Joins addresses with the key of an entity, in the caller's transaction. An address without a session becomes an alias.
 * Without any session, one of the key is created. Again, it changes nothing.
 * @throws TAPE_BAD_OPTION without an address, and for the key itself; TAPE_CONFLICT for an address that is joined with
 *   what the request does not name; TAPE_ARCHIVED
 */
export function linkKeys(
  writer: Writer,
  realm: string,
  {
    key,
    addresses,
    init,
  }: { readonly key: string; readonly addresses: readonly string[]; readonly init: SessionInit },
): Changed {
  const { db } = writer;
  assertAddresses('link', key, addresses);
  const own = groupOf(db, realm, key);
  const groups = [own, ...addresses.map((address) => joinable(db, realm, { key, address, own, addresses }))];
  const sessions = uniqueSessions(groups);
  const isFirst = sessions.length === 0;
  const first = isFirst ? ensureSession(writer, realm, freeNameOf(db, realm, key), init).tape : undefined;
  const all = first === undefined ? sessions : [first];
  const isNamed = (one: string) =>
    namesOfKey(one).some((name) => all.some((tape) => tape.name === name)) ||
    groupOf(db, realm, one).sessions.length > 0;
  const missing = [key, ...addresses].filter((one) => !isNamed(one));
  const keys = new Set([
    ...groups.flatMap((group) => group.keys),
    ...missing.map((one) => freeNameOf(db, realm, one)),
  ]);
  const entity = namesOfKey(key).find((name) => keys.has(name)) ?? key;
  const { primary, changed } = setGroup(
    writer,
    { sessions: all, keys: [...keys] },
    { before: sessions, entity },
  );
  if (primary === undefined) throw new TypeError('a group has a session');
  return { primary, changed: changed || isFirst, created: isFirst };
}

/** The group of an address, which the request joins as a whole. */
function joinable(
  db: Db,
  realm: string,
  {
    key,
    address,
    own,
    addresses,
  }: {
    readonly key: string;
    readonly address: string;
    readonly own: Group;
    readonly addresses: readonly string[];
  },
): Group {
  const group = groupOf(db, realm, address);
  const [primary] = group.sessions;
  if (primary === undefined || primary.id === own.sessions[0]?.id) return group;
  const named = new Set([key, ...addresses].flatMap(namesOfKey));
  const others = [...group.keys, ...group.sessions.map(({ name }) => name)].filter(
    (name) => !named.has(name),
  );
  if (others.length === 0) return group;
  throw new TapeError(
    'TAPE_CONFLICT',
    `cannot link ${quote(address)} with ${quote(key)}: it is linked with ${others.map(quote).join(', ')}`,
    { data: { key, address, linked: others } },
  );
}

/**
 * Separates addresses from an entity, in the caller's transaction; without any, all of them. What is left has the session
 * with the most turns, as after a link.
 * @throws TAPE_NO_SESSION for a key without a session; TAPE_CONFLICT for what is not linked with it
 */
export function unlinkKeys(
  writer: Writer,
  realm: string,
  { key, addresses }: { readonly key: string; readonly addresses: readonly string[] },
): Changed {
  const { db } = writer;
  const group = groupOf(db, realm, key);
  const [was] = group.sessions;
  if (was === undefined)
    throw new TapeError('TAPE_NO_SESSION', `cannot unlink ${quote(key)}: no session stands for it`, {
      data: { session: key, near: [] },
    });
  const gone = addresses.length === 0 ? undefined : new Set(addresses.flatMap(namesOfKey));
  for (const address of addresses) assertLinked(group, key, address);
  const isLeft = (name: string) => gone !== undefined && !gone.has(name);
  const left: Group = {
    sessions: group.sessions.filter(({ name }) => isLeft(name)),
    keys: group.keys.filter(isLeft),
  };
  const { primary, changed } = setGroup(writer, left, { before: group.sessions, entity: key });
  return { primary: primary ?? was, changed, created: false };
}

function assertLinked({ sessions, keys }: Group, key: string, address: string): void {
  const names = namesOfKey(address);
  const isIn = sessions.some(({ name }) => names.includes(name)) || keys.some((one) => names.includes(one));
  const isAlone = sessions.length === 1 && keys.length === 0;
  if (isIn && !isAlone) return;
  throw new TapeError(
    'TAPE_CONFLICT',
    `cannot unlink ${quote(address)} from ${quote(key)}: it is not linked with it`,
    {
      data: { key, address, keys, sessions: sessions.map(({ name }) => name) },
    },
  );
}

function assertAddresses(act: string, key: string, addresses: readonly string[]): void {
  const why =
    addresses.length === 0
      ? 'no address was given'
      : addresses.includes(key)
        ? 'it is one of the addresses itself'
        : undefined;
  if (why !== undefined)
    throw new TapeError('TAPE_BAD_OPTION', `cannot ${act} ${quote(key)}: ${why}`, { data: { near: [] } });
}

function uniqueSessions(groups: readonly Group[]): readonly TapeRow[] {
  return [...new Map(groups.flatMap(({ sessions }) => sessions).map((tape) => [tape.id, tape])).values()];
}
