/**
 * Sessions: `session.ts` creates one, `state.ts` sets its lifecycle and task, `names.ts` knows which names are free and
 * takes those of a deleted session, `alias.ts` and `rename.ts` give it another name, `purge.ts` decides what is purged,
 * `stage.ts` keeps an import invisible until it is whole, `discard.ts` lists and discards those that were not finished,
 * `import-process.ts` says which process writes one, `erase.ts` erases the content of what is purged or discarded, and
 * `notify.ts` notifies the parent of a child's end. Imports `lineage` and `history`, and what lies below these.
 */
import { crashPoint } from '../crash-point.ts';
import { callColumn, titleColumn } from '../entry/column-text.ts';
import type { Draft } from '../entry/entry.ts';
import { genesisHash } from '../entry/hash.ts';
import type { JsonObject } from '../entry/json.ts';
import { nameKey, parseName } from '../entry/name.ts';
import { recordLineage } from '../lineage/outbox.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { type Lifecycle, type TapeRow, type Task, tapeByName } from '../tape/tape.ts';
import { assertFree } from './names.ts';

/** Properties of a new session. */
export interface SessionInit {
  readonly kind?: string;
  readonly title?: string;
  readonly ephemeral?: boolean;
  /** Settings that its runs use. They are on its first entry, and never change. */
  readonly settings?: JsonObject;
}

/** Another name of a session. */
export interface Alias {
  readonly name: string;
  /** Why it is given or taken away, for readers of the lineage. */
  readonly reason: string;
}

/** What to change of a session. Everything that it names changes in one transaction. */
export interface SessionChange {
  /**
   * `archived` refuses new work; `destroyed` deletes: its names are free, and its ULID alone finds it. `active` brings it
   * back, if its names are still free. Only a purge sets `purged`.
   */
  readonly lifecycle?: Lifecycle;
  /** Task state of a child. Only its runs set it. */
  readonly task?: Task;
  /** A further name for the session. */
  readonly alias?: Alias;
  /** A further name to take away. */
  readonly unalias?: Alias;
  /**
   * A new name: an alias, and the title. The alias of an earlier rename by which the session is referred to is taken away;
   * its own name takes the title away.
   */
  readonly name?: string;
}

interface Identity {
  readonly name: string;
  readonly kind: string;
  readonly parent?: TapeRow;
  readonly spawnKey?: string;
  /** Counts the children of the parent that have no key, from 1. */
  readonly ordinal?: number | undefined;
  readonly requestHash?: Uint8Array;
  readonly fromSeq?: number;
  readonly fromAnchor?: string;
  readonly floor: number;
  readonly base: number;
  readonly baseHash: Uint8Array;
  readonly lifecycle?: Lifecycle | 'staging';
  readonly title?: string | undefined;
  readonly ephemeral?: boolean | undefined;
  readonly deliver?: string | undefined;
  readonly spawnCall?: string | undefined;
  readonly task?: Task | undefined;
}

/** Inserts a tape without own entries. A name that was used before gets its next incarnation. */
export function insertTape(
  { db, sources }: Writer,
  realm: string,
  ulid: string,
  { parent, ...tape }: Identity,
): TapeRow {
  const now = sources.now();
  const before = db.get<{ last: number }>(
    `SELECT incarnation AS last FROM tape WHERE realm = @realm AND name = @name
       ORDER BY incarnation DESC LIMIT 1`,
    { realm, name: tape.name },
  );
  const row = {
    ulid,
    realm,
    name: tape.name,
    incarnation: (before?.last ?? 0) + 1,
    kind: tape.kind,
    parent_id: parent?.id ?? null,
    spawn_key: stored(tape.spawnKey),
    request_hash: tape.requestHash ?? null,
    from_seq: tape.fromSeq ?? null,
    from_anchor: tape.fromAnchor ?? null,
    floor_seq: tape.floor,
    base_seq: tape.base,
    base_hash: tape.baseHash,
    head_seq: tape.base,
    head_hash: tape.baseHash,
    settled_seq: tape.base,
    lifecycle: tape.lifecycle ?? ('active' as const),
    task: tape.task ?? null,
    title: titleColumn(tape.title),
    ephemeral: tape.ephemeral === true ? 1 : 0,
    deliver: tape.deliver ?? null,
    spawn_call: callColumn(tape.spawnCall),
    created_at: now,
    updated_at: now,
    ordinal: tape.ordinal ?? null,
    name_key: nameKey(tape.name),
  };
  const columns = Object.keys(row);
  const id = db.insert(
    `INSERT INTO tape (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})`,
    row,
  );
  return {
    ...row,
    id,
    epoch: 0,
    delivery: null,
    merged_at: null,
    last_message_at: null,
    message_count: 0,
    last_speaker: null,
    parent_name: parent?.name ?? null,
    parent_ulid: parent?.ulid ?? null,
  };
}

/** A text as a database returns it: half of a surrogate pair is no character of UTF-8. */
function stored(text: string | undefined): string | null {
  return text?.toWellFormed() ?? null;
}

/** The first entry of every root tape. */
function sessionStart(settings: JsonObject | undefined): Draft {
  const payload = { state: {}, ...(settings !== undefined && { settings }) };
  return { kind: 'anchor', mark: 'anchor', name: 'session/start', payload };
}

/**
 * Creates a root tape with its first entry, but without a lineage line: a staged tape gets that when it is
 * published.
 */
export function createRoot(
  writer: Writer,
  realm: string,
  name: string,
  { kind = 'session', title, ephemeral, settings }: SessionInit = {},
  lifecycle?: 'staging',
): TapeRow {
  const ulid = writer.sources.newId();
  const tape = insertTape(writer, realm, ulid, {
    name,
    kind,
    floor: 0,
    base: 0,
    baseHash: genesisHash(ulid),
    title,
    ephemeral,
    ...(lifecycle !== undefined && { lifecycle }),
  });
  crashPoint('session/tape');
  const written = writeEntries(writer, tape, [sessionStart(settings)]);
  crashPoint('session/entries');
  return written.tape;
}

/**
 * Returns the session of a name, and creates it if it does not exist.
 * @throws TAPE_BAD_NAME; TAPE_EXISTS when the name is an alias, looks like another, or is a point of a session
 */
export function ensureSession(
  writer: Writer,
  realm: string,
  name: string,
  init: SessionInit = {},
): { tape: TapeRow; created: boolean } {
  parseName(name);
  const existing = tapeByName(writer.db, realm, name);
  // An unfinished import does not occupy its name: the new session is the next incarnation.
  if (existing !== undefined && existing.lifecycle !== 'staging') return { tape: existing, created: false };
  assertFree(writer, realm, name);
  const tape = createRoot(writer, realm, name, init);
  recordLineage(writer, tape, { type: 'session', childHead: tape.head_hash });
  crashPoint('session/lineage');
  return { tape, created: true };
}
