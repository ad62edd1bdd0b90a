import type { Draft, HomeStore, Seq, SessionInfo, TapeError } from '@tapedeck/tape';
import { emptyMainOf } from '../copies/empty-main.ts';
import { giveWay } from '../edges/returned.ts';
import { commonOf, spineOf } from '../imported/change.ts';
import { importedIn, type Shown } from '../imported/imported.ts';
import { originOf } from '../imported/origins.ts';
import { type Beside, OwnSessions } from '../imported/own-sessions.ts';
import type { ImportError } from '../lines/errors.ts';
import { hasBase } from './base.ts';
import { isCode } from './overtaken.ts';
import type { Writing } from './writing.ts';

/**
 * The session to which a conversation is written. It has several where one of them was continued here, or where files of it
 * differ: then the one that shows most of it. A new one gets another name where its own looks like that of another session.
 */
export class WrittenSession {
  readonly #store: HomeStore;
  readonly #writing: Writing;
  readonly #own: OwnSessions;
  /** The names of the sessions that the conversation had before this import. */
  readonly #there: readonly string[];
  /** Its number among those of the conversation, from 1. */
  #n: number;
  #name: string;
  #beside: Beside | undefined;
  #shown: readonly Shown[];
  /** The session that stands for a conversation of which nothing was here, until it is known whether that is a fork. */
  readonly #empty: SessionInfo | undefined;

  constructor(store: HomeStore, writing: Writing) {
    [this.#store, this.#writing] = [store, writing];
    this.#own = new OwnSessions(store, writing);
    const sessions = this.#own.all();
    this.#there = sessions;
    const { base, kind } = writing.conversation;
    // What a branch showed before is read where it has changed.
    const isPlain = kind === 'branch' && base === undefined && sessions.length === 1;
    const shown = isPlain ? [] : sessions.map((one) => importedIn(store, one, base).shown);
    const best = sessions.length < 2 ? 0 : mostOf(store, writing, { sessions, shown });
    // Where the source continues from a place in the exported session that none of them has.
    const isExport = writing.plan.exportOf !== undefined && base !== undefined;
    const isNew = isExport && !sessions.some((one) => hasBase(store, one, base));
    this.#n = isNew ? this.#next : best + 1;
    const known = isNew ? undefined : sessions[best];
    this.#name = known ?? this.#own.freeName(this.#n);
    if (known === undefined) this.#beside = this.#own.besideOf(this.#n, sessions[best]);
    this.#shown = (isNew ? undefined : shown[best]) ?? [];
    const mayBeFork = kind === 'main' && writing.as === undefined && sessions.length === 1;
    this.#empty = mayBeFork ? emptyMainOf(store, writing.plan, writing.origins) : undefined;
  }

  get name(): string {
    return this.#name;
  }

  get n(): number {
    return this.#n;
  }

  /** The session beside which it is made; undefined where it has the name of the conversation. */
  get beside(): Beside | undefined {
    return this.#beside;
  }

  /** What it showed before it is written: of one that is made beside another, what it was forked from. */
  get shown(): readonly Shown[] {
    return this.#shown;
  }

  get exists(): boolean {
    return this.#store.sessions.find(this.#name) !== undefined;
  }

  /** Whether it has nothing of the conversation, which can be a fork then. */
  get isEmpty(): boolean {
    return this.#empty !== undefined;
  }

  /**
   * Deletes the one that has nothing of the conversation, before that is forked from another session.
   * @throws TAPE_ARCHIVED, TAPE_BUSY when it takes nothing
   */
  giveWayTo(parent: string): void {
    const { origins } = this.#writing;
    const { id = '', lifecycle } = this.#store.sessions.find(this.#empty?.id ?? '') ?? {};
    if (lifecycle !== 'active') return;
    const origin = originOf(this.#store, id);
    giveWay(this.#store, id, this.#store.sessions.find(parent)?.id ?? parent);
    if (origin !== undefined) origins.noteReturned(origin, id);
  }

  /** The names of the other sessions that the conversation had before this import. */
  get others(): readonly string[] {
    return this.#there.filter((one) => one !== this.#name);
  }

  /** Whether another import has made a session of the conversation since this one looked for it. */
  get isOvertaken(): boolean {
    return this.#own.all().length >= this.#next;
  }

  /** Where it comes from, as an event, with the time of what it inherits of its own conversation. */
  origin(timestamp?: string): Draft {
    return this.#own.origin(this.#n, timestamp);
  }

  /** Why nothing is written: it was deleted, or it is part of a session that was. */
  refusal(): TapeError | ImportError | undefined {
    const above = this.exists ? undefined : this.#writing.from?.refused;
    return this.#own.refusal(this.#there, above);
  }

  /** Another import made it, under some name. */
  isAt(name: string): void {
    this.#name = name;
  }

  /** Takes the next one in place of one that was continued here, or differs, behind a position. */
  goBeside(cut: Seq): void {
    const session = this.#name;
    this.#n = this.#next;
    this.#name = this.#own.freeName(this.#n);
    this.#beside = { session, why: 'parted' };
    this.#shown = this.#shown.filter(({ seq }) => seq <= cut);
  }

  /** Gives it the next name where its own was refused, since it looks like that of another one. */
  isRenamed(error: unknown): boolean {
    if (!isCode(error, 'TAPE_EXISTS') || error.data.near === undefined || this.#writing.as !== undefined)
      return false;
    this.#beside ??= { session: String(error.data.session), why: 'alike' };
    this.#name = this.#own.freeName(this.#n, this.#name);
    return true;
  }

  get #next(): number {
    return this.#there.length + 1;
  }
}

/** The place of the session that shows most of a conversation, the last one of several. */
function mostOf(
  store: HomeStore,
  { conversation }: Writing,
  {
    sessions,
    shown,
  }: { readonly sessions: readonly string[]; readonly shown: readonly (readonly Shown[])[] },
): number {
  const { base } = conversation;
  const common = sessions.map((one, i) => {
    // Of a session without the base, all positions say something else.
    if (base !== undefined && !hasBase(store, one, base)) return -1;
    return commonOf(conversation, spineOf(shown[i] ?? []));
  });
  return common.lastIndexOf(Math.max(...common));
}
