/**
 * Sessions: `session.ts` creates one, `state.ts` sets its lifecycle and task, `names.ts` knows which names are free and
 * takes those of a deleted session, `alias.ts` and `rename.ts` give it another name, `purge.ts` erases its content,
 * `stage.ts` keeps an import invisible until it is whole, and `notify.ts` notifies the parent of a child's end. Imports
 * `lineage` and what lies below it.
 */
import { crashPoint } from '../crash-point.ts';
import type { Draft } from '../entry/entry.ts';
import { genesisHash } from '../entry/hash.ts';
import type { JsonObject } from '../entry/json.ts';
import { nameKey, parseName } from '../entry/name.ts';
import { recordLineage } from '../lineage/outbox.ts';
import { type Writer, writeEntries } from '../tape/append.ts';
import { type Lifecycle, type TapeRow, type Task, tapeById, tapeByName } from '../tape/tape.ts';
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
export function insertTape({ db, sources }: Writer, realm: string, ulid: string, tape: Identity): TapeRow {
  const now = sources.now();
  const id = db.insert(
    `INSERT INTO tape (ulid, realm, name, incarnation, kind, parent_id, spawn_key, request_hash, from_seq, from_anchor,
         floor_seq, base_seq, base_hash, head_seq, head_hash, settled_seq, lifecycle, task, title, ephemeral, deliver,
         spawn_call, created_at, updated_at, ordinal, name_key)
       VALUES (@ulid, @realm, @name,
         (SELECT coalesce(max(incarnation), 0) + 1 FROM tape WHERE realm = @realm AND name = @name), @kind, @parent, @spawnKey, @requestHash, @fromSeq, @fromAnchor,
         @floor, @base, @baseHash, @base, @baseHash, @base, @lifecycle, @task, @title, @ephemeral, @deliver,
         @spawnCall, @now, @now, @ordinal, @nameKey)`,
    {
      ulid,
      realm,
      name: tape.name,
      kind: tape.kind,
      parent: tape.parent?.id ?? null,
      spawnKey: tape.spawnKey ?? null,
      requestHash: tape.requestHash ?? null,
      fromSeq: tape.fromSeq ?? null,
      fromAnchor: tape.fromAnchor ?? null,
      floor: tape.floor,
      base: tape.base,
      baseHash: tape.baseHash,
      lifecycle: tape.lifecycle ?? 'active',
      task: tape.task ?? null,
      title: tape.title ?? null,
      ephemeral: tape.ephemeral === true ? 1 : 0,
      deliver: tape.deliver ?? null,
      spawnCall: tape.spawnCall ?? null,
      now,
      ordinal: tape.ordinal ?? null,
      nameKey: nameKey(tape.name),
    },
  );
  return tapeById(db, id);
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
