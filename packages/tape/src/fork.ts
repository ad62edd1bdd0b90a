import { type Writer, writeEntries } from './append.ts';
import { crashPoint } from './crash-point.ts';
import type { Draft, Seq } from './entry.ts';
import { TapeError } from './errors.ts';
import { sha256 } from './hash.ts';
import { segments, settledAt } from './interval.ts';
import { encodeJson, isObject, type JsonObject } from './json.ts';
import { checkName, childName, derivedNameMax, quote, tapeName } from './name.ts';
import { type Intention, recordLineage } from './outbox.ts';
import { anchorNameAt, isStart, type Point, resolvePoint } from './point.ts';
import { entryAt } from './read.ts';
import { checkFree, insertTape } from './session.ts';
import { type TapeRow, tapeById, tapeByName } from './tapes.ts';

/** Part of a session: positions `(since, cut]`. By default from the start to the settled head. */
export interface Span {
  readonly since?: Point;
  readonly cut?: Point;
}

/** How a child's result is to come back (K32). */
export type Deliver = 'merge' | 'merge+turn' | 'tool-result';

/** A worktree that a child is to work in: of which repository, and where that has its git directory. */
export interface WorktreeRequest {
  /** The top of the working tree whose state it begins with. */
  readonly repository: string;
  /** The git directory that all worktrees of the repository share. */
  readonly git: string;
}

export interface ForkRequest extends Span {
  /** Inherit nothing. */
  readonly fresh?: boolean;
  readonly name?: string;
  /** The same key on the same parent is the same child. */
  readonly key?: string;
  readonly intention?: Intention;
  readonly kind?: string;
  readonly deliver?: Deliver;
  /** The tool call that asked for the child. */
  readonly spawnCall?: string;
  /** Recorded for whoever runs the child: the store makes no worktree. */
  readonly worktree?: WorktreeRequest;
}

/** The receipt of a fork. */
export interface Forked {
  readonly session: string;
  readonly id: string;
  readonly tape: string;
  readonly parent: string;
  readonly fromAnchor: string | null;
  /** The last inherited position; the child's own entries follow it. */
  readonly base: Seq;
  /** Inherited positions, both ends included; null when there are none. */
  readonly range: readonly [Seq, Seq] | null;
  /** The cut that was asked for, when it lay inside a batch of tool calls and was moved back. */
  readonly snappedFrom?: Seq;
  readonly repeated: boolean;
  /** The act is done, and the graph file could not be written yet: the next open writes it. */
  readonly graphLagging?: true;
}

/**
 * Makes a child by reference: a tape row, its `fork/start` mark, its intention and its line in the lineage, in
 * the caller's transaction. The parent's tape is only read, so a busy parent can be forked.
 * @throws TAPE_NO_ANCHOR, TAPE_NO_SEQ, TAPE_BAD_NAME, TAPE_EXISTS, TAPE_KEY_CONFLICT
 */
export function forkTape(writer: Writer, parent: TapeRow, request: ForkRequest): Forked {
  const { db, sources } = writer;
  const ulid = sources.newId();
  if (
    request.key !== undefined &&
    (request.key === '' || request.key.length > 512 || !request.key.isWellFormed())
  )
    throw new TapeError(
      'TAPE_BAD_ENTRY',
      'cannot fork: a key must be well-formed text of 1 to 512 characters',
    );
  const spawnKey = request.key ?? ulid;
  const requestHash = hashRequest(request);
  const before = db.get<{ id: number; name: string; request_hash: Uint8Array | null }>(
    'SELECT id, name, request_hash FROM tape WHERE parent_id = @parent AND spawn_key = @spawnKey',
    { parent: parent.id, spawnKey },
  );
  if (before !== undefined) return repeatFork(writer, parent, before, { spawnKey, requestHash });

  const cut = resolveCut(writer, parent, request);
  const since = resolveSince(writer, parent, request, cut);
  const name = chooseName(writer, parent, request, spawnKey);
  const child = insertTape(writer, parent.realm, ulid, {
    name,
    kind: request.kind ?? 'subagent',
    parent,
    spawnKey,
    requestHash,
    fromSeq: since.floor,
    ...(since.anchor !== undefined && { fromAnchor: since.anchor }),
    floor: since.floor,
    base: cut.base,
    baseHash: cut.hash,
    deliver: request.deliver,
    spawnCall: request.spawnCall,
  });
  crashPoint('fork/tape');
  const range = rangeOf(child);
  const { tape } = writeEntries(writer, child, [
    startMark(parent, child, since.state, request.worktree),
    ...intentionMark(request.intention, sources.now()),
  ]);
  crashPoint('fork/entries');
  recordLineage(writer, tape, {
    type: 'fork',
    range,
    parentHead: child.base_hash,
    childHead: tape.head_hash,
    ...(request.intention !== undefined && { intention: request.intention }),
  });
  crashPoint('fork/lineage');
  return {
    ...forked(parent, tape),
    ...(cut.asked !== cut.base && !request.fresh && { snappedFrom: cut.asked }),
    repeated: false,
  };
}

/** The receipt for a child that exists; used for a repetition too. */
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

function rangeOf(child: TapeRow): [Seq, Seq] | null {
  return child.floor_seq === child.base_seq ? null : [child.floor_seq + 1, child.base_seq];
}

function repeatFork(
  { db }: Writer,
  parent: TapeRow,
  before: { id: number; name: string; request_hash: Uint8Array | null },
  { spawnKey, requestHash }: { spawnKey: string; requestHash: Buffer },
): Forked {
  if (before.request_hash === null || !requestHash.equals(before.request_hash))
    throw new TapeError(
      'TAPE_KEY_CONFLICT',
      `cannot fork '${parent.name}' under key ${quote(spawnKey)}: child '${before.name}' has it, for another request`,
      { data: { parent: parent.name, key: spawnKey, session: before.name } },
    );
  return forked(parent, tapeById(db, before.id));
}

/** What was asked, not what it resolved to: the same request repeats after the parent grew. */
function hashRequest({ since, cut, fresh, name, intention, worktree }: ForkRequest): Buffer {
  const inWorktree = worktree === undefined ? [] : [[worktree.repository, worktree.git]];
  const asked = [since ?? null, cut ?? null, fresh ?? false, name ?? null, intention ?? null, ...inWorktree];
  return Buffer.from(sha256(encodeJson(asked, 'a fork request')), 'hex');
}

function resolveCut(
  { db }: Writer,
  parent: TapeRow,
  { cut, fresh }: ForkRequest,
): { asked: Seq; base: Seq; hash: Uint8Array } {
  const asked = cut === undefined || fresh === true ? parent.head_seq : resolvePoint(db, parent, cut);
  const base = asked === parent.head_seq ? parent.settled_seq : settledAt(db, parent, asked);
  return { asked, base, hash: hashAt(db, parent, base) };
}

function hashAt(db: Writer['db'], tape: TapeRow, seq: Seq): Uint8Array {
  if (seq === tape.head_seq) return tape.head_hash;
  const [owner] = segments(db, { id: tape.id, floor_seq: 0 }, seq - 1, seq);
  const row =
    owner === undefined
      ? undefined
      : db.get<{ hash: Uint8Array }>('SELECT hash FROM entry WHERE tape_id = @tape AND seq = @seq', {
          tape: owner.tapeId,
          seq,
        });
  if (row !== undefined) return row.hash;
  if (seq === tape.base_seq) return tape.base_hash;
  throw new TapeError('TAPE_CORRUPT', `cannot find ${tape.name}@${seq}: the entry is missing`, {
    data: { session: tape.name, seq },
  });
}

interface Since {
  readonly floor: Seq;
  readonly anchor: string | undefined;
  readonly state: JsonObject | undefined;
}

/** Where the inherited part begins, and the state that stands for what lies before it. */
function resolveSince(
  { db }: Writer,
  parent: TapeRow,
  { since, fresh }: ForkRequest,
  { asked: cut, base }: { asked: Seq; base: Seq },
): Since {
  if (fresh === true) return { floor: base, anchor: undefined, state: undefined };
  if (since === undefined || isStart(parent, since))
    return { floor: Math.min(parent.floor_seq, base), anchor: undefined, state: startState(db, parent) };
  const asked = resolvePoint(db, parent, since);
  if (asked > cut)
    throw new TapeError(
      'TAPE_BAD_POINT',
      `cannot fork '${parent.name}' since ${quote(String(since))}: it is at @${asked}, after the cut @${cut}`,
      { data: { session: parent.name, since: asked, cut } },
    );
  const anchor = anchorNameAt(db, parent, asked) ?? `@${asked}`;
  return { floor: Math.min(asked, base), anchor, state: stateAt(db, parent, asked) };
}

function startState(db: Writer['db'], tape: TapeRow): JsonObject | undefined {
  return tape.parent_id === null ? undefined : stateAt(db, tape, tape.base_seq + 1);
}

function stateAt(db: Writer['db'], tape: TapeRow, seq: Seq): JsonObject | undefined {
  const entry = entryAt(db, tape, seq);
  if (entry?.mark !== 'anchor' && entry?.mark !== 'boundary') return undefined;
  const { payload } = entry;
  return isObject(payload) && isObject(payload.state) ? payload.state : undefined;
}

function chooseName(
  { db, sources }: Writer,
  parent: TapeRow,
  request: ForkRequest,
  spawnKey: string,
): string {
  if (request.name !== undefined) {
    checkName(request.name);
    if (isTaken(db, parent.realm, request.name))
      throw new TapeError('TAPE_EXISTS', `cannot fork into ${quote(request.name)}: the name is taken`, {
        data: { session: request.name },
      });
    checkFree({ db, sources }, parent.realm, request.name);
    return request.name;
  }
  for (let digits = 8; digits <= 64; digits += 4) {
    const name = childName({ name: parent.name, id: parent.ulid }, spawnKey, digits);
    if (name.length <= derivedNameMax && !isTaken(db, parent.realm, name)) return name;
  }
  throw new TapeError('TAPE_EXISTS', `cannot name a child of '${parent.name}': all names are taken`);
}

/** An import that was not finished holds no name. */
function isTaken(db: Writer['db'], realm: string, name: string): boolean {
  const tape = tapeByName(db, realm, name);
  return tape !== undefined && tape.lifecycle !== 'staging';
}

function startMark(
  parent: TapeRow,
  child: TapeRow,
  state: JsonObject | undefined,
  worktree: WorktreeRequest | undefined,
): Draft {
  return {
    kind: 'anchor',
    mark: 'anchor',
    name: 'fork/start',
    payload: {
      parent: parent.ulid,
      parent_name: parent.name,
      from_anchor: child.from_anchor,
      range: rangeOf(child),
      base: child.base_seq,
      ...(state !== undefined && { state }),
      ...(worktree !== undefined && { worktree: { repository: worktree.repository, git: worktree.git } }),
    },
  };
}

function intentionMark(intention: Intention | undefined, now: number): Draft[] {
  if (intention === undefined) return [];
  const { nextSteps, contextSummary, triggerOnComplete } = intention;
  const state = {
    ...(nextSteps !== undefined && { next_steps: nextSteps }),
    ...(contextSummary !== undefined && { context_summary: contextSummary }),
    ...(triggerOnComplete !== undefined && { trigger_on_complete: triggerOnComplete }),
    created_at: new Date(now).toISOString(),
  };
  return [{ kind: 'anchor', mark: 'anchor', name: 'intention', payload: { state } }];
}
