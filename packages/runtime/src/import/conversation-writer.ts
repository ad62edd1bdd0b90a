import type { ForkRequest, HomeStore } from '@tapedeck/tape';
import { copiedIn, isAsItWas } from '../copies/copied.ts';
import { countedElsewhere } from '../copies/counted-elsewhere.ts';
import type { Back } from '../copies/walk.ts';
import { forkOf, placeAt, sharedWith } from '../edges/fork-of.ts';
import { isRefusal } from '../edges/refusal.ts';
import { changeOf, spineOf } from '../imported/change.ts';
import { firstPromptIn } from '../imported/first-prompt.ts';
import { nothingImported, type Shown } from '../imported/imported.ts';
import { originOf } from '../imported/origins.ts';
import { withRefs } from '../imported/refs.ts';
import type { Base } from '../plan/plan.ts';
import { appendDrafts, bothOf } from './append-drafts.ts';
import { batchOf, countingIn } from './batch.ts';
import { beginningOf, continuationNotes, exportNotes } from './beginning.ts';
import { type Forking, forkSession } from './fork-session.ts';
import { createInPieces } from './in-pieces.ts';
import { asOlderCopy } from './older-copy.ts';
import { isCode, isOvertaken, triesMax } from './overtaken.ts';
import { isParted } from './parted.ts';
import { readCopy } from './read-fork.ts';
import { beforeRewind, type ReadTape, readTape } from './read-tape.ts';
import { nothing, type Reconciled } from './reconciled.ts';
import type { Writing } from './writing.ts';
import { WrittenSession } from './written-session.ts';

/** How long another import may need to finish a session that it has begun. */
const patienceMs = 2_000;

/**
 * Writes one conversation: makes its session, anew or of one that has a part of it, or writes what that lacks, or continues in
 * another one beside it.
 */
export class ConversationWriter {
  readonly #store: HomeStore;
  readonly #writing: Writing;
  #session: WrittenSession;

  constructor(store: HomeStore, writing: Writing) {
    this.#store = store;
    this.#writing = writing;
    this.#session = new WrittenSession(store, writing);
  }

  /** What its session showed before it is written: of one that is made beside another, what it was forked from. */
  get shown(): readonly Shown[] {
    return this.#session.shown;
  }

  write(): Reconciled {
    const refused = this.#session.refusal();
    if (refused !== undefined) return this.#receipt({ ...nothing, refused });
    try {
      return this.#written();
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return this.#receipt({ ...nothing, refused: error });
    }
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
    if (this.#session.exists && !this.#session.isEmpty)
      return isAsItWas(this.#store, this.#session.name, this.#writing)
        ? this.#receipt(nothing)
        : this.#update();
    if (base !== undefined && !this.#isShared())
      return this.#fork(base.session, { cut: base.cut, kind: 'session' }, this.#begun(base.session));
    const written = base === undefined ? this.#copied() : undefined;
    if (written !== undefined) return written;
    if (from === undefined && this.#session.isEmpty) return this.#update();
    if (from === undefined) return this.#overtaken() ?? this.#create();
    const request = forkOf(this.#store, { ...from, conversation });
    return this.#fork(from.session, request, this.#begun(from.session));
  }

  /** An export that no program continued: its session has all of it. */
  #nothing({ session: id }: Base): Reconciled {
    const { name, exists } = this.#session;
    const session = exists ? name : this.#store.sessions.find(id)?.session;
    return this.#receipt({ ...nothing, session: session ?? id });
  }

  /** Whether the session from which a conversation is forked has more of it than its base, or is the parent of a subagent. */
  #isShared(): boolean {
    const { from, conversation } = this.#writing;
    if (from === undefined || conversation.kind === 'subagent') return from !== undefined;
    return sharedWith(this.#store, { ...from, conversation }).length > 0;
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
    if (!this.#session.isOvertaken) return undefined;
    const anew = new ConversationWriter(this.#store, this.#writing);
    const written = anew.write();
    this.#session = anew.#session;
    return written;
  }

  /**
   * Writes what an existing session lacks; to a new one beside it, if the two part. `begin` makes what a fork begins with that
   * has nothing of its own.
   */
  #update(begin?: Forking['begin']): Reconciled {
    for (let tries = 1; ; ) {
      const session = this.#session.name;
      // Another import of the same source may have begun the fork, which is then compared like any other session.
      const isNew = begin !== undefined && originOf(this.#store, session) === undefined;
      const { others } = this.#session;
      const read = readTape(this.#store, this.#writing, { session, others, isNew });
      const isPart = !isNew && isParted(this.#store, this.#writing, { ...read, session });
      const before = isPart ? beforeRewind(this.#store, this.#writing, { ...read, session }) : undefined;
      const { same } = before ?? read.change;
      const tape = isPart ? asOlderCopy(this.#store, this.#writing, { ...read, session }, same) : read;
      if (tape === undefined) return this.#goOnBeside(read, before);
      const left = isNew ? new Set<string>() : leftOf(tape);
      // What a branch counts by now of what comes counts there.
      if (left.size > 0 && this.#writing.onLeaving(session, left)) continue;
      const first = isNew ? begin(tape.change.same, tape.imported.erased) : [];
      const batch = batchOf(this.#writing.conversation, tape, first);
      try {
        const wrote = appendDrafts(this.#store, session, batch, tape.hash);
        const created = isNew && wrote.added > 0;
        return this.#receipt({ created, ...wrote, ...(isPart && { isBehind: true as const }) });
      } catch (error) {
        if (!isOvertaken(error) || tries >= triesMax) throw error;
        tries += 1;
      }
    }
  }

  #goOnBeside({ imported, change }: ReadTape, before: Back | undefined): Reconciled {
    const { conversation } = this.#writing;
    const parent = this.#session.name;
    const last = before?.rewindTo ?? spineOf(imported.shown)[change.same - 1]?.seq;
    const cut = last ?? conversation.base?.cut;
    this.#session.goBeside(cut ?? 1);
    return this.#fork(
      parent,
      { ...placeAt(this.#store, parent, cut), kind: 'session' },
      { begin: (...its) => [...this.#beginning(...its), ...exportNotes(this.#writing)] },
    );
  }

  /** A new session without a parent, which appears when all of it is written. */
  #create(): Reconciled {
    const { conversation, erasedElsewhere, onAdded } = this.#writing;
    const elsewhere = countedElsewhere(this.#store, this.#writing);
    const nothingYet = { ...nothingImported, elsewhere, erasedElsewhere };
    const change = changeOf(conversation, nothingYet);
    // The first entry of a session says that it begins.
    const begun = [this.#session.origin(), ...countingIn(change, 2)];
    const next = begun.length + 2;
    const drafts = [...begun, ...withRefs(change.drafts, { plan: conversation, next, shown: [] })];
    for (let tries = 1; ; tries += 1) {
      const { title } = conversation;
      const { name } = this.#session;
      const { id, wrote, error } = createInPieces(this.#store, name, { drafts, title, onAdded });
      if (error === undefined) return this.#receipt({ created: wrote.added > 0, ...wrote });
      const codes = ['TAPE_EXISTS', 'TAPE_NO_SESSION', 'TAPE_KEY_CONFLICT'] as const;
      if (!codes.some((code) => isCode(error, code))) throw error;
      if (this.#session.isRenamed(error)) continue;
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
    while (!this.#session.exists) {
      if (performance.now() - from > patienceMs) return false;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
    return true;
  }

  #fork(parent: string, place: ForkRequest, forking: Forking): Reconciled {
    const session = this.#session;
    session.giveWayTo(parent);
    const wrote = forkSession(this.#store, this.#writing, { session, parent, place, ...forking });
    return wrote === undefined ? this.#update(forking.begin) : this.#receipt({ created: true, ...wrote });
  }

  /** What a fork of a session begins with. */
  #begun(parent: string): Forking {
    const parentId = this.#store.sessions.find(parent)?.id;
    const notes = continuationNotes(parentId, this.#writing);
    return { begin: (...its) => [...this.#beginning(...its), ...notes] };
  }

  #beginning(...[same, erased]: Parameters<Forking['begin']>): ReturnType<Forking['begin']> {
    const originOf = (timestamp: string | undefined) => this.#session.origin(timestamp);
    const saidInBase = () => this.#saidInBase();
    const { base } = this.#writing.conversation;
    const promptInBase = () =>
      base && firstPromptIn(this.#store.entries.read(base.session, { kind: 'message', to: base.cut }));
    return beginningOf(this.#writing, { same, erased, originOf, saidInBase, promptInBase });
  }

  /** When the last message was said that the conversation has in another session alone. */
  #saidInBase(): string | undefined {
    const { base } = this.#writing.conversation;
    if (base === undefined) return undefined;
    const [last] = this.#store.entries.read(base.session, { kind: 'message', to: base.cut, last: 1 });
    const { timestamp } = last?.meta ?? {};
    return typeof timestamp === 'string' ? timestamp : undefined;
  }

  #receipt(wrote: Omit<Reconciled, 'conversation' | 'session'> & { readonly session?: string }): Reconciled {
    const beside = wrote.created && this.#session.beside;
    return {
      ...{ conversation: this.#writing.conversation.key, session: this.#session.name, ...wrote },
      ...(beside && { beside }),
    };
  }
}

/** The keys of what a session shows no more once it is written. */
function leftOf({
  imported,
  change: { rewindTo = Number.POSITIVE_INFINITY },
}: ReadTape): ReadonlySet<string> {
  return new Set(spineOf(imported.shown).flatMap(({ seq, key }) => (seq > rewindTo ? key : [])));
}
