/**
 * Forks: a child tape that refers to its parent instead of copying it. `request.ts` defines a caller's
 * request, `span.ts` finds the positions that the child inherits, `marks.ts` makes its first entries. Imports
 * `session`, `view`, `lineage` and what lies below them.
 */
import { crashPoint } from '../crash-point.ts';
import { childName } from '../entry/child-name.ts';
import { type Encoded, encodeDraft } from '../entry/encode.ts';
import type { Seq } from '../entry/entry.ts';
import { parseName, quote, tapeName } from '../entry/name.ts';
import { TapeError } from '../errors.ts';
import type { GraphReceipt } from '../lineage/line.ts';
import { recordLineage } from '../lineage/outbox.ts';
import { isMasked } from '../secrets/mask.ts';
import { assertFree, isAlias } from '../session/names.ts';
import { insertTape } from '../session/session.ts';
import { type Writer, writeEncoded } from '../tape/append.ts';
import { assertHead } from '../tape/head.ts';
import { assertIdle } from '../tape/lease.ts';
import { assertKept, assertStatus, type TapeRow, tapeById, tapeByName, tasks } from '../tape/tape.ts';
import { rangeOf, settingsOf, startDrafts } from './marks.ts';
import { actOf, assertInherit, type ForkRequest, hashRequest } from './request.ts';
import { type Cut, resolveCut, resolveSince, type Since } from './span.ts';

/** The receipt of a fork. */
export interface Forked extends GraphReceipt {
  readonly session: string;
  readonly id: string;
  readonly tape: string;
  readonly parent: string;
  readonly fromAnchor: string | null;
  /** The last inherited position; the child's own entries follow it. */
  readonly base: Seq;
  /** Inherited positions, both ends included; null when nothing is inherited. */
  readonly range: readonly [Seq, Seq] | null;
  /** The requested cut, if it lay inside a batch of tool calls and was moved back to the settled point. */
  readonly snappedFrom?: Seq;
  readonly repeated: boolean;
}

/** An existing child, or what a new one is made of. */
type ForkDecision =
  | { readonly repeated: Forked }
  | {
      readonly repeated?: undefined;
      readonly requestHash: Uint8Array;
      readonly cut: Cut;
      readonly since: Since;
    };

/**
 * Creates a child by reference, in the caller's transaction: a tape row, its `fork/start` mark, its
 * intention, the entries that the request brings and its lineage line. Only reads the parent's tape, so a busy
 * parent can be forked.
 * @param brought the entries that the request brings, encoded before the lock was taken
 * @throws the errors of `decideFork` and `chooseName`, and TAPE_BAD_ENTRY
 */
export function forkTape(
  writer: Writer,
  parent: TapeRow,
  request: ForkRequest,
  brought: readonly Encoded[],
): Forked {
  const { sources } = writer;
  const ulid = sources.newId();
  const spawnKey = request.key ?? ulid;
  const decided = decideFork(writer, parent, request);
  if (decided.repeated !== undefined) return decided.repeated;
  const { requestHash, cut, since } = decided;
  const ordinal = request.key === undefined ? nextOrdinal(writer, parent) : undefined;
  const name = chooseName(writer, parent, request);
  const child = insertTape(writer, parent.realm, ulid, {
    name,
    kind: request.kind ?? 'subagent',
    parent,
    spawnKey,
    ordinal,
    requestHash,
    fromSeq: since.floor,
    ...(since.anchor !== undefined && { fromAnchor: since.anchor }),
    floor: since.floor,
    base: cut.base,
    baseHash: cut.hash,
    deliver: request.deliver,
    spawnCall: request.spawnCall,
    title: request.title,
    ephemeral: request.ephemeral,
    task: request.done?.task,
  });
  crashPoint('fork/tape');
  const range = rangeOf(child);
  const start = startDrafts(parent, child, {
    since,
    request,
    settings: { ...settingsOf(writer, parent), ...request.settings },
    now: sources.now(),
  });
  const entries = [...start.map(encodeDraft), ...brought];
  // A new tape has no entry of its own to repeat.
  const { tape } = writeEncoded(writer, child, entries, { epoch: child.epoch, repeated: [] });
  crashPoint('fork/entries');
  recordLineage(writer, tape, {
    type: 'fork',
    range,
    parentHead: child.base_hash,
    childHead: tape.head_hash,
    ...(request.intention !== undefined && { intention: request.intention }),
  });
  crashPoint('fork/lineage');
  return { ...forked(parent, tape), ...snapped(cut, request), repeated: false };
}

/**
 * Decides on a fork without writing: it returns the existing child, or the positions that a new one inherits.
 * @throws TAPE_NO_ANCHOR, TAPE_NO_SEQ, TAPE_BAD_POINT, TAPE_BAD_ENTRY, TAPE_BAD_STATUS, TAPE_KEY_CONFLICT;
 * TAPE_BUSY with `whenIdle`, TAPE_STALE_HEAD with `expectHead`
 */
export function decideFork(writer: Writer, parent: TapeRow, request: ForkRequest): ForkDecision {
  const { db } = writer;
  if (
    request.key !== undefined &&
    (request.key === '' || request.key.length > 512 || !request.key.isWellFormed())
  )
    throw new TapeError(
      'TAPE_BAD_ENTRY',
      `cannot ${actOf(request)}: a key must be well-formed text of 1 to 512 characters`,
    );
  assertInherit(parent.name, request);
  if (request.done !== undefined) assertStatus('make a child of task', request.done.task, tasks);
  const requestHash = hashRequest(request);
  const spawnKey = request.key;
  // Without a key, every request makes a new child.
  const before =
    spawnKey === undefined
      ? undefined
      : db.get<{ id: number; name: string; request_hash: Uint8Array | null }>(
          'SELECT id, name, request_hash FROM tape WHERE parent_id = @parent AND spawn_key = @spawnKey',
          { parent: parent.id, spawnKey },
        );
  if (before !== undefined && spawnKey !== undefined)
    return { repeated: repeatFork(writer, parent, before, { spawnKey, requestHash, act: actOf(request) }) };
  if (request.whenIdle === true) assertIdle(db, parent, writer.sources);
  assertHead(parent, request.expectHead, actOf(request));
  const cut = resolveCut(writer, parent, request);
  return { requestHash, cut, since: resolveSince(writer, parent, request, cut) };
}

/** The receipt's field for a cut that lay inside a batch of tool calls and was moved back. */
export function snapped(
  { requested, base }: Pick<Cut, 'requested' | 'base'>,
  { inherit }: ForkRequest,
): { readonly snappedFrom?: Seq } {
  return requested !== base && inherit !== 'nothing' ? { snappedFrom: requested } : {};
}

/** Returns the receipt of an existing child. */
function forked(parent: TapeRow, child: TapeRow): Forked {
  return {
    session: child.name,
    id: child.ulid,
    tape: tapeName(child.realm, child.name, child.incarnation),
    parent: parent.name,
    fromAnchor: child.from_anchor,
    base: child.base_seq,
    range: rangeOf(child),
    repeated: true,
  };
}

function repeatFork(
  { db }: Writer,
  parent: TapeRow,
  before: { id: number; name: string; request_hash: Uint8Array | null },
  { spawnKey, requestHash, act }: { spawnKey: string; requestHash: Buffer; act: string },
): Forked {
  if (before.request_hash === null || !requestHash.equals(before.request_hash))
    throw new TapeError(
      'TAPE_KEY_CONFLICT',
      `cannot ${act} '${parent.name}' under key ${quote(spawnKey)}: child '${before.name}' has this key, with another request`,
      { data: { parent: parent.name, key: spawnKey, session: before.name } },
    );
  const child = tapeById(db, before.id);
  assertKept(child, `${act} '${parent.name}' under key ${quote(spawnKey)}, of child`);
  return forked(parent, child);
}

/**
 * Returns the name of a child: the requested one, else a derived one, with more digits where that is taken.
 * @throws TAPE_BAD_NAME, TAPE_EXISTS
 */
export function chooseName(writer: Writer, parent: TapeRow, request: ForkRequest): string {
  const { db } = writer;
  if (request.name !== undefined) {
    parseName(request.name);
    if (isTaken(db, parent.realm, request.name))
      throw new TapeError(
        'TAPE_EXISTS',
        `cannot ${actOf(request)} into ${quote(request.name)}: the name is taken`,
        {
          data: { session: request.name },
        },
      );
    assertFree(writer, parent.realm, request.name);
    return request.name;
  }
  const by = request.key ?? nextOrdinal(writer, parent);
  const steps = request.intention?.nextSteps;
  const task = steps === undefined || isMasked(steps) ? undefined : steps;
  for (let digits = 8; digits <= 64; digits += 4) {
    const name = childName(parent, { by, task, digits });
    if (!isTaken(db, parent.realm, name) && !isAlias(db, parent.realm, name)) return name;
  }
  throw new TapeError('TAPE_EXISTS', `cannot name a child of '${parent.name}': all names are taken`);
}

/** Returns the number of the next child without a key, from 1. */
function nextOrdinal({ db }: Writer, parent: TapeRow): number {
  const last = db.get<{ ordinal: number | null }>(
    'SELECT max(ordinal) AS ordinal FROM tape WHERE parent_id = @parent AND ordinal IS NOT NULL',
    { parent: parent.id },
  );
  return (last?.ordinal ?? 0) + 1;
}

/** An unfinished import does not occupy its name. */
function isTaken(db: Writer['db'], realm: string, name: string): boolean {
  const tape = tapeByName(db, realm, name);
  return tape !== undefined && tape.lifecycle !== 'staging';
}
