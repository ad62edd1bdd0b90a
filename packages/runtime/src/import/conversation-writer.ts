import {
  type Draft,
  type ForkRequest,
  type HomeStore,
  type Seq,
  type SessionInfo,
  TapeError,
} from '@tapedeck/tape';
import type { ForkPreview } from '@tapedeck/tape/store';
import { copiedIn, isAsItWas } from '../copies/copied.ts';
import { copiesIn } from '../copies/copies.ts';
import { countedElsewhere } from '../copies/counted-elsewhere.ts';
import { forkOf, placeAt, sharedWith } from '../edges/fork-of.ts';
import { isRefusal } from '../edges/refusal.ts';
import { changeOf, commonOf, saysNothingNew, spineOf } from '../imported/change.ts';
import { firstKeyIn } from '../imported/first-said.ts';
import { refusalOf } from '../imported/forgotten.ts';
import { importedIn, nothingImported, rewindMode, type Shown } from '../imported/imported.ts';
import { originOf, sourceOf } from '../imported/origins.ts';
import { type Beside, OwnSessions } from '../imported/own-sessions.ts';
import { withRefs } from '../imported/refs.ts';
import { ImportError } from '../lines/errors.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { Base } from '../plan/plan.ts';
import { appendDrafts, bothOf, type Wrote, wroteOf } from './append-drafts.ts';
import { hasBase } from './base.ts';
import { beginningOf, continuationNotes, exportNotes } from './beginning.ts';
import { createInPieces } from './in-pieces.ts';
import { isParted } from './parted.ts';
import { type ComingFork, headOf, readCopy, readFork } from './read-fork.ts';
import { beforeRewind, knownIn, type ReadTape, readTape } from './read-tape.ts';
import { nothing, type Reconciled } from './reconciled.ts';
import type { Writing } from './writing.ts';

/** How long another import may need to finish a session that it has begun. */
const patienceMs = 2_000;

/** How often a session is read anew after another writer was faster. */
const triesMax = 10;

/**
 * Writes one conversation. It has several sessions where one of them went on here, or where files of it differ: then to the
 * one that shows most of it.
 */
export class ConversationWriter {
  #shown: readonly Shown[];
  readonly #store: HomeStore;
  readonly #writing: Writing;
  readonly #own: OwnSessions;
  /** The sessions that it had before this import. */
  readonly #there: readonly string[];
  /** The number of its session, from 1, and of its next one. */
  #n = 1;
  #next = 1;
  #session: string;
  #beside: Beside | undefined;

  constructor(store: HomeStore, writing: Writing) {
    this.#store = store;
    this.#writing = writing;
    this.#own = new OwnSessions(store, writing);
    const sessions = this.#own.all();
    this.#there = sessions;
    const { base } = writing.conversation;
    // What a branch showed before is read where it has changed.
    const { kind } = writing.conversation;
    const isPlain = kind === 'branch' && base === undefined && sessions.length === 1;
    const shown = isPlain ? [] : sessions.map((one) => importedIn(store, one, base).shown);
    const common =
      sessions.length < 2
        ? [0]
        : sessions.map((one, i) => {
            // Of a session without the base, all positions say something else.
            if (base !== undefined && !hasBase(store, one, base)) return -1;
            return commonOf(writing.conversation, spineOf(shown[i] ?? []));
          });
    const best = common.lastIndexOf(Math.max(...common));
    this.#next = sessions.length + 1;
    // Where the source went on from a place in the exported session that none of them has.
    const isExport = writing.plan.exportOf !== undefined && base !== undefined;
    const isNew = isExport && !sessions.some((one) => hasBase(store, one, base));
    this.#n = isNew ? this.#next : best + 1;
    const known = isNew ? undefined : sessions[best];
    this.#session = known ?? this.#own.freeName(this.#n);
    if (known === undefined) this.#beside = this.#own.besideOf(this.#n, sessions[best]);
    this.#shown = (isNew ? undefined : shown[best]) ?? [];
  }

  /** What its session showed before it is written: of one that is made beside another, what it was forked from. */
  get shown(): readonly Shown[] {
    return this.#shown;
  }

  /** The sessions that the conversation had before this import. */
  get there(): readonly SessionInfo[] {
    return this.#there.flatMap((one) => this.#store.sessions.find(one) ?? []);
  }

  write(): Reconciled {
    const refused = this.#refusal();
    if (refused !== undefined) return this.#receipt({ ...nothing, refused });
    try {
      return this.#written();
    } catch (error) {
      if (!isRefusal(error) && !isForgotten(error)) throw error;
      return this.#receipt({ ...nothing, refused: error });
    }
  }

  /**
   * Asked before each writing: a source can be forgotten while an import reads it. A session that is forgotten behind the head
   * that was read of it has another head.
   * @throws IMPORT_FORGOTTEN
   */
  #assertNotForgotten(): void {
    const { plan, as, origins } = this.#writing;
    const forgotten = refusalOf(this.#store, plan, { as, origins });
    if (forgotten !== undefined) throw forgotten.refused;
  }

  #written(): Reconciled {
    const { plan, from, conversation } = this.#writing;
    const { base } = conversation;
    const isNothing =
      plan.exportOf !== undefined &&
      base !== undefined &&
      conversation.spine.length === 0 &&
      conversation.asides.length === 0;
    if (isNothing) return this.#nothing(base);
    if (this.#exists(this.#session))
      return isAsItWas(this.#store, this.#session, this.#writing) ? this.#receipt(nothing) : this.#update();
    if (base !== undefined && !this.#isShared())
      return this.#fork(base.session, { cut: base.cut, kind: 'session' }, this.#begun(base.session));
    const written = base === undefined ? this.#copied() : undefined;
    if (written !== undefined) return written;
    if (from === undefined) return this.#overtaken() ?? this.#create();
    const request = forkOf(this.#store, { ...from, conversation });
    return this.#fork(from.session, request, this.#begun(from.session));
  }

  /** What a fork of a session begins with. */
  #begun(parent: string): Forking {
    const parentId = this.#store.sessions.find(parent)?.id;
    const notes = continuationNotes(parentId, this.#writing);
    return { begin: (...its) => [...this.#beginning(...its), ...notes] };
  }

  /** A new conversation of which the home has a part already, or all. */
  #copied(): Reconciled | undefined {
    const copied = copiedIn(this.#store, this.#writing);
    if (copied === undefined) return undefined;
    // What is taken for its source may be its own session.
    const written = this.#overtaken();
    if (written !== undefined) return written;
    const { at, cut } = copied;
    return this.#fork(
      at,
      { cut, kind: 'session' },
      {
        begin: (...its) => this.#beginning(...its),
        read: (fork) => readCopy(this.#store, this.#writing, fork, copied),
      },
    );
  }

  /** Writes to the session that another import has made since this one looked for it; undefined where there is no such. */
  #overtaken(): Reconciled | undefined {
    if (this.#own.all().length < this.#next) return undefined;
    const anew = new ConversationWriter(this.#store, this.#writing);
    const written = anew.write();
    this.#shown = anew.shown;
    return written;
  }

  /** Why nothing is written: it was deleted, or it is part of a session that was. */
  #refusal(): TapeError | ImportError | undefined {
    const { from, as } = this.#writing;
    if (this.#next > 1 || as !== undefined) return undefined;
    if (from?.refused !== undefined && !this.#exists(from.session)) return from.refused;
    return this.#own.refusal();
  }

  /** An export that no program went on with: its session has all of it. */
  #nothing({ session: id }: Base): Reconciled {
    const session = this.#exists(this.#session) ? this.#session : this.#store.sessions.find(id)?.session;
    return this.#receipt({ ...nothing, session: session ?? id });
  }

  /** Whether the session from which a conversation is forked has more of it than its base. */
  #isShared(): boolean {
    const { from, conversation } = this.#writing;
    return from !== undefined && sharedWith(this.#store, { ...from, conversation }).length > 0;
  }

  /**
   * Writes what an existing session lacks; to a new one beside it, if the two part. `begin` makes what a fork begins with that
   * has nothing of its own.
   */
  #update(begin?: Forking['begin']): Reconciled {
    for (let tries = 1; ; tries += 1) {
      // Another import of the same source may have begun the fork, which is then compared like any other session.
      const isNew = begin !== undefined && originOf(this.#store, this.#session) === undefined;
      const tape = this.#read(isNew);
      if (!isNew && isParted(this.#store, this.#writing, { ...tape, session: this.#session }))
        return this.#goOnBeside(tape);
      const left = isNew ? new Set<string>() : leftOf(tape);
      if (left.size > 0) this.#writing.onLeaving(this.#session, left);
      try {
        const first = isNew ? begin(tape.change.same, tape.imported.erased) : [];
        const wrote = this.#append(tape, first);
        return this.#receipt({ created: isNew && wrote.added > 0, ...wrote });
      } catch (error) {
        if (!isOvertaken(error) || tries >= triesMax) throw error;
      }
    }
  }

  #goOnBeside(tape: ReadTape): Reconciled {
    const { conversation } = this.#writing;
    const { imported } = tape;
    const before = beforeRewind(this.#store, this.#writing, { ...tape, session: this.#session });
    const same = before?.same ?? tape.change.same;
    // A source that only has less than before, such as an older copy of it.
    if (same === conversation.spine.length || saysNothingNew(conversation, imported) || this.#isInBranch())
      return this.#receipt({ ...nothing, isBehind: true });
    const parent = this.#session;
    this.#n = this.#next;
    this.#session = this.#own.freeName(this.#n);
    this.#beside = { session: parent, why: 'parted' };
    const last = before?.rewindTo ?? spineOf(imported.shown)[same - 1]?.seq;
    const cut = last ?? conversation.base?.cut;
    this.#shown = this.#shown.filter(({ seq }) => seq <= (cut ?? 1));
    return this.#fork(
      parent,
      { ...placeAt(this.#store, parent, cut), kind: 'session' },
      { begin: (...its) => [...this.#beginning(...its), ...exportNotes(this.#writing)] },
    );
  }

  /**
   * Whether a branch of the source, deleted or not, or of what it is a copy of, has all of the conversation: the source is an
   * older copy of one in which a prompt was typed anew since.
   */
  #isInBranch(): boolean {
    const { plan, conversation } = this.#writing;
    const copies = copiesIn(this.#store);
    const branches = copies.branchesOf(sourceOf(plan.format, plan.session)).map(([id]) => id);
    const settled = { ...conversation, spine: conversation.spine.slice(0, conversation.settled) };
    const other = copies.family(firstKeyIn(conversation))?.showing(settled);
    const ids = [this.#session, ...branches, ...(other === undefined ? [] : [other.id])];
    const all = ids.map((id) => importedIn(this.#store, id));
    const known = new Set(all.flatMap((one) => [...one.known]));
    const beside = knownIn(this.#store, this.#others());
    return all.some((one) => saysNothingNew(conversation, { ...one, known, beside }));
  }

  /** A new session without a parent, which appears when all of it is written. */
  #create(): Reconciled {
    const { conversation, erasedElsewhere } = this.#writing;
    const elsewhere = countedElsewhere(this.#store, this.#writing);
    const nothingYet = { ...nothingImported, elsewhere, erasedElsewhere };
    const batch = [this.#own.origin(this.#n), ...changeOf(conversation, nothingYet).drafts];
    // The first entry of a session says that it begins.
    const drafts = withRefs(batch, { plan: conversation, next: 2, shown: [] });
    for (let tries = 1; ; tries += 1) {
      this.#assertNotForgotten();
      const { title } = conversation;
      const { onAdded } = this.#writing;
      const { id, wrote, error } = createInPieces(this.#store, this.#session, { drafts, title, onAdded });
      if (error === undefined) return this.#receipt({ created: wrote.added > 0, ...wrote });
      const codes = ['TAPE_EXISTS', 'TAPE_NO_SESSION', 'TAPE_KEY_CONFLICT'] as const;
      if (!codes.some((code) => isCode(error, code))) throw error;
      if (this.#isRenamed(error)) continue;
      // What was written of a source that is forgotten meanwhile is discarded.
      this.#assertNotForgotten();
      // Another import of the same source was faster: the session is there, to be compared like any other.
      if (this.#appears()) {
        const rest = this.#update();
        const isShared = this.#store.sessions.find(rest.session)?.id === id;
        return isShared ? { ...rest, ...bothOf(wrote, rest) } : rest;
      }
      if (tries >= triesMax) throw error;
    }
  }

  /** Whether the session that another import began becomes visible: it does not if that was killed. */
  #appears(): boolean {
    const from = performance.now();
    while (!this.#exists(this.#session)) {
      if (performance.now() - from > patienceMs) return false;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
    return true;
  }

  /** Forks a session with all that the new one has of its own, so that no reader sees it without that. */
  #fork(parent: string, asked: ForkRequest, { begin, read }: Forking): Reconciled {
    const request = this.#keyed(parent, asked);
    let tape: ReadTape | undefined;
    let first: readonly Draft[] = [];
    for (let tries = 1; ; tries += 1) {
      // The head first: a source that is forgotten behind it is noticed, and so is what moves the place of the fork.
      const { id = parent, headHash = '' } = this.#store.sessions.find(parent) ?? {};
      const seen = this.#previewed(parent, request);
      if (typeof seen === 'string') {
        this.#session = seen;
        return this.#update(begin);
      }
      const fork = { ...seen, from: id };
      if (tape?.head !== headOf(fork)) {
        tape = read?.(fork) ?? readFork(this.#store, this.#writing, fork, this.#others());
        first = this.#batch(tape, begin(tape.change.same, tape.imported.erased));
      }
      this.#assertNotForgotten();
      try {
        const whole = { ...request, name: this.#session, expectHead: headHash, first };
        const { session, repeated } = this.#store.lineage.fork(parent, whole);
        if (repeated) continue;
        this.#session = session;
        return this.#receipt({ created: true, ...wroteOf(first) });
      } catch (error) {
        const isAgain = isOvertaken(error) || this.#isRenamed(error);
        if (!isAgain || tries >= triesMax) throw error;
      }
    }
  }

  /** What is asked of the store to fork a session: under the title of its source, and a key by which it is made once. */
  #keyed(parent: string, request: ForkRequest): ForkRequest {
    const { title, key: own } = this.#writing.conversation;
    const wanted = this.#n === 1 ? own : `${own}#${this.#n}`;
    let key = wanted;
    // The conversation had a session before, of which nothing was left when the user returned to where it began.
    for (let n = 2; this.#store.sessions.list({ parent, key, deleted: true }).length > 0; n += 1)
      key = `${wanted}~${n}`;
    return { ...(title !== undefined && { title }), ...request, key };
  }

  /** A fork that is not made yet, or the name of the session that was forked under its key before. */
  #previewed(parent: string, request: ForkRequest): ForkPreview | string {
    for (;;)
      try {
        const seen = this.#store.lineage.previewFork(parent, { ...request, name: this.#session });
        return seen.repeated && seen.session !== undefined ? seen.session : seen;
      } catch (error) {
        if (this.#isRenamed(error)) continue;
        if (!isCode(error, 'TAPE_KEY_CONFLICT') || typeof error.data.session !== 'string') throw error;
        return error.data.session;
      }
  }

  /** Gives the session the next name where its own was refused, since it looks like that of another one. */
  #isRenamed(error: unknown): boolean {
    if (!isCode(error, 'TAPE_EXISTS') || error.data.near === undefined || this.#writing.as !== undefined)
      return false;
    this.#beside ??= { session: String(error.data.session), why: 'alike' };
    this.#session = this.#own.freeName(this.#n, this.#session);
    return true;
  }

  #beginning(same: number, erased: ReadonlySet<string>): readonly Draft[] {
    const originOf = (timestamp: string | undefined) => this.#own.origin(this.#n, timestamp);
    return beginningOf(this.#writing, { same, erased, originOf });
  }

  #read(isNew: boolean): ReadTape {
    const others = this.#others();
    return readTape(this.#store, this.#writing, { session: this.#session, others, isNew });
  }

  /** The other sessions that the conversation had before this import. */
  #others(): readonly string[] {
    return this.#there.filter((one) => one !== this.#session);
  }

  /** Appends what a session lacks, `first` before it, in one transaction with the rewind that makes room for it. */
  #append(tape: ReadTape, first: readonly Draft[]): Wrote {
    const batch = this.#batch(tape, first);
    if (batch.length > 0) this.#assertNotForgotten();
    return appendDrafts(this.#store, this.#session, batch, tape.hash);
  }

  /** What is written at once: the rewind that makes room, what a new session begins with, and what it lacks. */
  #batch(
    { head, imported, change: { rewindTo, drafts }, back }: ReadTape,
    first: readonly Draft[],
  ): readonly Draft[] {
    const rewind = rewindTo === undefined ? [] : [rewindDraft(rewindTo)];
    const whole = [...rewind, ...first, ...drafts].map(wholeDraft);
    const shown =
      back?.shown ?? imported.shown.filter(({ seq }) => rewindTo === undefined || seq <= rewindTo);
    return withRefs(whole, { plan: this.#writing.conversation, next: head + 1, shown });
  }

  #receipt(wrote: Omit<Reconciled, 'conversation' | 'session'> & { readonly session?: string }): Reconciled {
    const beside = wrote.created && this.#beside;
    return {
      ...{ conversation: this.#writing.conversation.key, session: this.#session, ...wrote },
      ...(beside && { beside }),
    };
  }

  #exists(session: string): boolean {
    return this.#store.sessions.find(session) !== undefined;
  }
}

/** How a session is forked. */
interface Forking {
  /** Makes what it begins with, of the number of drafts that it inherits and the keys of what was erased. */
  readonly begin: (same: number, erased: ReadonlySet<string>) => readonly Draft[];
  /** Reads what it inherits; undefined where all of that has to be read. */
  readonly read?: (fork: ComingFork) => ReadTape | undefined;
}

/** The entry behind which readers see nothing of what is behind a position before it. */
export function rewindDraft(to: Seq): Draft {
  return { kind: 'rewind', mark: 'rewind', ref: to, payload: { to, mode: rewindMode } };
}

/** The keys of what a session shows no more once it is written. */
function leftOf({
  imported,
  change: { rewindTo = Number.POSITIVE_INFINITY },
}: ReadTape): ReadonlySet<string> {
  return new Set(spineOf(imported.shown).flatMap(({ seq, key }) => (seq > rewindTo ? key : [])));
}

function isForgotten(error: unknown): error is ImportError {
  return error instanceof ImportError && error.code === 'IMPORT_FORGOTTEN';
}

/** Whether another import was faster: a key that it used meanwhile is noticed before the head. */
function isOvertaken(error: unknown): boolean {
  return isCode(error, 'TAPE_STALE_HEAD') || isCode(error, 'TAPE_KEY_CONFLICT');
}

function isCode(error: unknown, code: TapeError['code']): error is TapeError {
  return error instanceof TapeError && error.code === code;
}
