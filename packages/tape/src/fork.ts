import { type Writer, writeEntries } from './append.ts';
import { crashPoint } from './crash-point.ts';
import type { Draft, Seq } from './entry.ts';
import { TapeError } from './errors.ts';
import { sha256 } from './hash.ts';
import { hiddenBy, segments, settledAt, visible } from './interval.ts';
import { encodeJson, isObject, type Json, type JsonObject } from './json.ts';
import { needIdle } from './lease.ts';
import { checkName, childName, derivedNameMax, quote, tapeName } from './name.ts';
import { type Intention, recordLineage } from './outbox.ts';
import { anchorNameAt, isStart, type Point, resolvePoint } from './point.ts';
import { entryAt, readEntries } from './read.ts';
import { checkFree, insertTape } from './session.ts';
import { type TapeRow, type Task, tapeById, tapeByName } from './tapes.ts';

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
  /** Inherit the last so many messages before the cut, and what lies between them (K31). */
  readonly window?: number;
  /** What the child runs with; what it leaves out is as its parent's own settings say. */
  readonly settings?: JsonObject;
  /** What holds for this child alone, and for none of its children. */
  readonly terms?: JsonObject;
  /** What else was asked for, by which a repetition is told from another request: settings and terms may follow from the moment. */
  readonly asked?: JsonObject;
  /** Recorded for whoever runs the child: the store makes no worktree. */
  readonly worktree?: WorktreeRequest;
  readonly title?: string;
  /** Left out of lists. */
  readonly ephemeral?: boolean;
  /** Refuse while somebody is writing the parent. */
  readonly whenIdle?: boolean;
  /** Refuse a cut that a rewind hides. */
  readonly whereShown?: boolean;
  /** What the child did already: it is written with it, in the same transaction, so that there is never a half of it. */
  readonly done?: DoneWork;
}

/** The work of a child that is recorded when it is over. */
export interface DoneWork {
  /** Its entries, as `append` takes them. */
  readonly drafts: readonly Draft[];
  /** How it ended. */
  readonly task: Exclude<Task, 'running'>;
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

/** A child that is there already, or what one is to be made of. */
type ForkDecision =
  | { readonly repeated: Forked }
  | {
      readonly repeated?: undefined;
      readonly requestHash: Uint8Array;
      readonly cut: Cut;
      readonly since: Since;
    };

/**
 * Makes a child by reference: a tape row, its `fork/start` mark, its intention, what it did already and its line in the
 * lineage, in the caller's transaction. The parent's tape is only read, so a busy parent can be forked.
 * @throws what `decideFork` and `chooseName` throw, and TAPE_BAD_ENTRY
 */
export function forkTape(writer: Writer, parent: TapeRow, request: ForkRequest): Forked {
  const { sources } = writer;
  const ulid = sources.newId();
  const spawnKey = request.key ?? ulid;
  const decided = decideFork(writer, parent, request);
  if (decided.repeated !== undefined) return decided.repeated;
  const { requestHash, cut, since } = decided;
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
    title: request.title,
    ephemeral: request.ephemeral,
    task: request.done?.task,
  });
  crashPoint('fork/tape');
  const range = rangeOf(child);
  const { tape } = writeEntries(
    writer,
    child,
    firstDrafts(parent, child, {
      since,
      request,
      settings: { ...settingsOf(writer, parent), ...request.settings },
      now: sources.now(),
    }),
  );
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
 * Decides on a fork, as things stand: its child is there already, or it inherits these positions. Reads only.
 * @throws TAPE_NO_ANCHOR, TAPE_NO_SEQ, TAPE_BAD_POINT, TAPE_BAD_ENTRY, TAPE_KEY_CONFLICT; TAPE_BUSY with `whenIdle`
 */
export function decideFork(writer: Writer, parent: TapeRow, request: ForkRequest): ForkDecision {
  const { db } = writer;
  if (
    request.key !== undefined &&
    (request.key === '' || request.key.length > 512 || !request.key.isWellFormed())
  )
    throw new TapeError(
      'TAPE_BAD_ENTRY',
      'cannot fork: a key must be well-formed text of 1 to 512 characters',
    );
  const requestHash = hashRequest(request);
  const spawnKey = request.key;
  // Without a key a child of its own is made each time.
  const before =
    spawnKey === undefined
      ? undefined
      : db.get<{ id: number; name: string; request_hash: Uint8Array | null }>(
          'SELECT id, name, request_hash FROM tape WHERE parent_id = @parent AND spawn_key = @spawnKey',
          { parent: parent.id, spawnKey },
        );
  if (before !== undefined && spawnKey !== undefined)
    return { repeated: repeatFork(writer, parent, before, { spawnKey, requestHash }) };
  if (request.whenIdle === true) needIdle(db, parent, writer.sources.now());
  const cut = resolveCut(writer, parent, request);
  return { requestHash, cut, since: resolveSince(writer, parent, request, cut) };
}

/** What is told of a cut that lay inside a batch of tool calls, and was moved back. */
export function snapped(
  { asked, base }: Pick<Cut, 'asked' | 'base'>,
  { fresh }: ForkRequest,
): { readonly snappedFrom?: Seq } {
  return asked !== base && fresh !== true ? { snappedFrom: asked } : {};
}

/** A child's own first entries: where it came from, what it is for, and what it did already. */
export function firstDrafts(
  parent: TapeRow,
  child: Place,
  {
    since,
    request: { intention, terms, worktree, done },
    settings,
    now,
  }: { since: Since; request: ForkRequest; settings: JsonObject; now: number },
): Draft[] {
  const more = {
    ...(since.state !== undefined && { state: since.state }),
    ...(Object.keys(settings).length > 0 && { settings }),
    ...(terms !== undefined && { terms }),
    ...(worktree !== undefined && {
      worktree: { repository: worktree.repository, git: worktree.git },
    }),
  };
  return [startMark(parent, child, more), ...intentionMark(intention, now), ...(done?.drafts ?? [])];
}

/** Where a child lies on its parent. */
type Place = Pick<TapeRow, 'from_anchor' | 'floor_seq' | 'base_seq'>;

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

export function rangeOf(child: Pick<Place, 'floor_seq' | 'base_seq'>): [Seq, Seq] | null {
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
function hashRequest({
  since,
  cut,
  fresh,
  name,
  intention,
  worktree,
  window,
  asked: more,
}: ForkRequest): Buffer {
  const asked: Json[] = [
    since ?? null,
    cut ?? null,
    fresh ?? false,
    name ?? null,
    (intention ?? null) as Json,
    ...(worktree === undefined ? [] : [[worktree.repository, worktree.git]]),
  ];
  // Requests without these have had their hash since before there were any.
  if (window !== undefined || more !== undefined) asked.push({ window: window ?? null, ...more });
  return Buffer.from(sha256(encodeJson(asked, 'a fork request')), 'hex');
}

/** The end of what is inherited: as it was asked for, and settled. */
interface Cut {
  readonly asked: Seq;
  readonly base: Seq;
  readonly hash: Uint8Array;
}

function resolveCut({ db }: Writer, parent: TapeRow, { cut, fresh, whereShown }: ForkRequest): Cut {
  const asked = cut === undefined || fresh === true ? parent.head_seq : resolvePoint(db, parent, cut);
  // At the head all is meant that is visible, whatever is there.
  const hidden = whereShown === true && asked !== parent.head_seq ? hiddenBy(db, parent, asked) : undefined;
  if (hidden !== undefined)
    throw new TapeError(
      'TAPE_BAD_POINT',
      `cannot fork '${parent.name}' at @${asked}: the rewind ${parent.name}@${hidden} hides it`,
      { data: { session: parent.name, seq: asked, hidden } },
    );
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
  { since, fresh, window }: ForkRequest,
  { asked: cut, base }: { asked: Seq; base: Seq },
): Since {
  if (fresh === true) return { floor: base, anchor: undefined, state: undefined };
  if (window !== undefined)
    return {
      floor: windowFloor(db, parent, { window, base }),
      anchor: undefined,
      state: startState(db, parent),
    };
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

/** The position before the n-th last message: no call is parted from its result there. */
function windowFloor(db: Writer['db'], tape: TapeRow, { window, base }: { window: number; base: Seq }): Seq {
  if (!Number.isInteger(window) || window < 1)
    throw new TapeError('TAPE_BAD_POINT', 'cannot fork: a window must be a whole number of messages from 1', {
      data: { window },
    });
  let left = window;
  // What a rewind hides is not among the last that were said.
  for (const { lo, hi } of visible(db, tape, base)) {
    const messages = [...readEntries(db, tape, { from: lo + 1, to: hi, kind: 'message', last: left })];
    left -= messages.length;
    if (left === 0) return (messages[0]?.seq ?? base + 1) - 1;
  }
  return Math.min(tape.floor_seq, base);
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

/**
 * The name of a child: as it was asked for, else derived.
 * @throws TAPE_BAD_NAME, TAPE_EXISTS
 */
export function chooseName(
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

/** What a fork runs with, as its start says. */
export function settingsOf({ db }: Pick<Writer, 'db'>, tape: TapeRow): JsonObject {
  if (tape.parent_id === null) return {};
  const payload = entryAt(db, tape, tape.base_seq + 1)?.payload;
  return isObject(payload) && isObject(payload.settings) ? payload.settings : {};
}

function startMark(parent: TapeRow, child: Place, more: JsonObject): Draft {
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
      ...more,
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
