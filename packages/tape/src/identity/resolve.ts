import type { Db } from '../db/db.ts';
import { quote } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import { aliasTape } from '../session/alias.ts';
import { ensureSession, type SessionInit } from '../session/session.ts';
import type { Writer } from '../tape/append.ts';
import { linkName } from '../tape/link.ts';
import { assertActive, type TapeRow } from '../tape/tape.ts';
import { groupAround } from './group.ts';
import { type ResolvedHow, type Standing, standingFor } from './identity.ts';
import { freeNameOf } from './key-name.ts';

/** A key, and the key that the same sender has without an identity. */
export interface KeyRequest {
  readonly key: string;
  readonly address?: string | undefined;
}

/** What resolving a key has to do. */
export type KeyPlan =
  | (Standing & { readonly act: 'none' })
  | (Standing & { readonly act: 'quiet'; readonly quieted: TapeRow })
  | { readonly act: 'promote'; readonly tape: TapeRow; readonly how: 'promoted' }
  | { readonly act: 'create' };

/**
 * Decides how a key is resolved. A session of the address is promoted, or becomes quiet beside that of the key, only while
 * it is joined with nothing: it can belong to another entity.
 * @throws TAPE_ARCHIVED when the session is archived
 */
export function planKey(db: Db, realm: string, { key, address }: KeyRequest): KeyPlan {
  const found = standingFor(db, realm, key);
  const beside = address === undefined || address === key ? undefined : aloneAt(db, realm, address);
  if (found !== undefined) {
    assertDeliverable(found.tape);
    return beside === undefined || beside.id === found.tape.id
      ? { ...found, act: 'none' }
      : { ...found, act: 'quiet', quieted: beside };
  }
  if (beside === undefined) return { act: 'create' };
  assertDeliverable(beside);
  return { act: 'promote', tape: beside, how: 'promoted' };
}

/** The session that has an address as its name, and is joined with nothing. */
function aloneAt(db: Db, realm: string, address: string): TapeRow | undefined {
  const found = standingFor(db, realm, address);
  if (found?.how !== 'direct') return undefined;
  const { sessions, keys } = groupAround(db, found.tape);
  return sessions.length === 1 && keys.length === 0 ? found.tape : undefined;
}

function assertDeliverable({ name, ulid, lifecycle }: TapeRow): void {
  assertActive({ session: name, id: ulid, lifecycle }, 'deliver to');
}

/**
 * Resolves a key in the caller's transaction: to its session, to one that stands for it, to the session of its address,
 * which then stands for it, or to a new one.
 * @throws TAPE_ARCHIVED; TAPE_NO_SESSION for a `worker:` key, which names a session that exists
 */
export function resolveKey(
  writer: Writer,
  realm: string,
  { init, ...request }: KeyRequest & { readonly init: SessionInit },
): { readonly tape: TapeRow; readonly how: ResolvedHow } {
  const { db } = writer;
  const { key } = request;
  const plan = planKey(db, realm, request);
  if (plan.act === 'quiet')
    aliasTape(writer, realm, plan.tape, { name: linkName(plan.quieted.name), reason: 'identity_merge' });
  if (plan.act === 'promote')
    aliasTape(writer, realm, plan.tape, { name: freeNameOf(db, realm, key), reason: 'identity_promotion' });
  if (plan.act !== 'create') return plan;
  if (key.startsWith('worker:'))
    throw new TapeError('TAPE_NO_SESSION', `cannot resolve ${quote(key)}: there is no such session`, {
      data: { session: key, near: [] },
    });
  const { tape } = ensureSession(writer, realm, freeNameOf(db, realm, key), init);
  return { tape, how: 'created' };
}
