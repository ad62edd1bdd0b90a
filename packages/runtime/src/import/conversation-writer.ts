import { type Draft, type ForkRequest, type HomeStore, type Seq, TapeError } from '@tapedeck/tape';
import { type CopiedPart, copiedIn, isAsItWas, knownAsides } from '../copies/copied.ts';
import { copiesIn } from '../copies/copies.ts';
import { countedElsewhere } from '../copies/counted-elsewhere.ts';
import { firstKeyIn } from '../copies/first-said.ts';
import { forkOf, placeAt, sharedWith } from '../edges/fork-of.ts';
import { isRefusal } from '../edges/refusal.ts';
import { changeOf, commonOf, saysNothingNew, spineOf } from '../imported/change.ts';
import { refusalOf } from '../imported/forgotten.ts';
import { importedIn, nothingImported, rewindMode, type Shown } from '../imported/imported.ts';
import { originOf, sourceOf } from '../imported/origins.ts';
import { type Beside, OwnSessions } from '../imported/own-sessions.ts';
import { withRefs } from '../imported/refs.ts';
import { ImportError } from '../lines/errors.ts';
import { wholeDraft } from '../plan/later-draft.ts';
import type { Base } from '../plan/plan.ts';
import { appendDrafts, type Wrote } from './append-drafts.ts';
import { hasBase } from './base.ts';
import { beginningOf, continuationNotes, exportNotes } from './beginning.ts';
import { createInPieces } from './in-pieces.ts';
import { isParted } from './parted.ts';
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
    if (base !== undefined && !this.#isShared()) {
      this.#session = this.#fork(base.session, { cut: base.cut, kind: 'session' });
      return this.#update((...its) => [
        ...this.#beginning(...its),
        ...continuationNotes(this.#store, this.#session, this.#writing),
      ]);
    }
    const written = base === undefined ? this.#copied() : undefined;
    if (written !== undefined) return written;
    if (from === undefined) return this.#overtaken() ?? this.#create();
    this.#session = this.#fork(from.session, forkOf(this.#store, { ...from, conversation }));
    return this.#update((...its) => [
      ...this.#beginning(...its),
      ...continuationNotes(this.#store, this.#session, this.#writing),
    ]);
  }

  /** A new conversation of which the home has a part already, or all. */
  #copied(): Reconciled | undefined {
    const copied = copiedIn(this.#store, this.#writing);
    if (copied === undefined) return undefined;
    // What is taken for its source may be its own session.
    const written = this.#overtaken();
    if (written !== undefined) return written;
    const { at, cut } = copied;
    this.#session = this.#fork(at, { cut, kind: 'session' });
    return this.#goOnFrom(copied) ?? this.#update((...its) => this.#beginning(...its));
  }

  /** Writes to the session that another import has made since this one looked for it; undefined where there is no such. */
  #overtaken(): Reconciled | undefined {
    if (this.#own.all().length < this.#next) return undefined;
    const anew = new ConversationWriter(this.#store, this.#writing);
    const written = anew.write();
    this.#shown = anew.shown;
    return written;
  }

  /**
   * Writes to a new fork what follows the place where it begins, without reading what it inherits. Undefined where it is not as
   * it was made, or needs the positions of what it inherits.
   */
  #goOnFrom({ cut, count, erased }: CopiedPart): Reconciled | undefined {
    const { conversation, erasedElsewhere } = this.#writing;
    const info = this.#store.sessions.find(this.#session);
    const isFresh = info?.base === cut && info.head === cut + 1;
    if (info === undefined || !isFresh || conversation.keeps.size > 0) return undefined;
    const known = knownAsides(this.#store, info.id, conversation);
    const elsewhere = countedElsewhere(this.#store, this.#writing, info);
    const { drafts } = changeOf(
      conversation,
      { ...nothingImported, known, erased, elsewhere, erasedElsewhere },
      { same: count },
    );
    const whole = [...this.#beginning(count, erased), ...drafts].map(wholeDraft);
    this.#assertNotForgotten();
    try {
      const wrote = appendDrafts(this.#store, this.#session, whole, info.headHash);
      return this.#receipt({ created: wrote.added > 0, ...wrote });
    } catch (error) {
      // Another import of the same source was faster: the session is compared like any other.
      if (isCode(error, 'TAPE_STALE_HEAD') || isCode(error, 'TAPE_KEY_CONFLICT')) return undefined;
      throw error;
    }
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
   * Writes what an existing session lacks; to a new one beside it, if the two part. `begin` makes what a session begins with
   * that was forked just now, of the number of drafts that it shows and the keys of what was erased.
   */
  #update(begin?: (same: number, erased: ReadonlySet<string>) => readonly Draft[]): Reconciled {
    for (let tries = 1; ; tries += 1) {
      // Another import of the same source may have begun the fork, which is then compared like any other session.
      const isNew = begin !== undefined && originOf(this.#store, this.#session) === undefined;
      const tape = this.#read(isNew);
      if (!isNew && isParted(this.#store, this.#writing, { ...tape, session: this.#session }))
        return this.#goOnBeside(tape);
      try {
        const first = isNew ? begin(tape.change.same, tape.imported.erased) : [];
        const wrote = this.#append(tape, first);
        return this.#receipt({ created: isNew && wrote.added > 0, ...wrote });
      } catch (error) {
        // A key that another import used meanwhile is noticed before the head.
        const isOvertaken = isCode(error, 'TAPE_STALE_HEAD') || isCode(error, 'TAPE_KEY_CONFLICT');
        if (!isOvertaken || tries >= triesMax) throw error;
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
    this.#session = this.#fork(parent, { ...placeAt(this.#store, parent, cut), kind: 'session' });
    return this.#update((...its) => [...this.#beginning(...its), ...exportNotes(this.#writing)]);
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
      try {
        const { title } = conversation;
        const { onAdded } = this.#writing;
        return this.#receipt(createInPieces(this.#store, this.#session, { drafts, title, onAdded }));
      } catch (error) {
        const codes = ['TAPE_EXISTS', 'TAPE_NO_SESSION', 'TAPE_KEY_CONFLICT'] as const;
        if (!codes.some((code) => isCode(error, code))) throw error;
        if (this.#isRenamed(error)) continue;
        // Another import of the same source was faster: the session is there, to be compared like any other.
        if (this.#appears()) return this.#update();
        if (tries >= triesMax) throw error;
      }
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

  /** Forks a session, and returns the name of the child: that of an earlier fork, if one was killed behind it. */
  #fork(parent: string, request: ForkRequest): string {
    // The session gets the title of its source.
    this.#assertNotForgotten();
    const { title, key: own } = this.#writing.conversation;
    const wanted = this.#n === 1 ? own : `${own}#${this.#n}`;
    let key = wanted;
    // The conversation had a session before, of which nothing was left when the user returned to where it began.
    for (let n = 2; this.#store.sessions.list({ parent, key, deleted: true }).length > 0; n += 1)
      key = `${wanted}~${n}`;
    for (;;)
      try {
        return this.#store.lineage.fork(parent, {
          name: this.#session,
          ...(title !== undefined && { title }),
          ...request,
          key,
        }).session;
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
  #append(
    { head, hash, imported, change: { rewindTo, drafts }, back }: ReadTape,
    first: readonly Draft[],
  ): Wrote {
    const rewind = rewindTo === undefined ? [] : [rewindDraft(rewindTo)];
    const whole = [...rewind, ...first, ...drafts].map(wholeDraft);
    const { conversation: plan } = this.#writing;
    const shown =
      back?.shown ?? imported.shown.filter(({ seq }) => rewindTo === undefined || seq <= rewindTo);
    if (whole.length > 0) this.#assertNotForgotten();
    const batch = withRefs(whole, { plan, next: head + 1, shown });
    return appendDrafts(this.#store, this.#session, batch, hash);
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

/** The entry behind which readers see nothing of what is behind a position before it. */
export function rewindDraft(to: Seq): Draft {
  return { kind: 'rewind', mark: 'rewind', ref: to, payload: { to, mode: rewindMode } };
}

function isForgotten(error: unknown): error is ImportError {
  return error instanceof ImportError && error.code === 'IMPORT_FORGOTTEN';
}

function isCode(error: unknown, code: TapeError['code']): error is TapeError {
  return error instanceof TapeError && error.code === code;
}
