import {
  type Draft,
  type ForkRequest,
  type JsonObject,
  type Seq,
  type SessionInfo,
  type SqliteTapeStore,
  TapeError,
} from '@tapedeck/tape';
import type { OnProgress } from '@tapedeck/tape/store';
import { hasBase } from './base.ts';
import { type Change, changeOf, commonOf, losesMore, sameOf, saysNothingNew, spineOf } from './change.ts';
import { copiesIn, countsElsewhere } from './copies.ts';
import { continuedNote, resumedNote } from './copy-notes.ts';
import type { ImportError } from './errors.ts';
import type { Back } from './family.ts';
import { firstKeyIn } from './first-said.ts';
import { originDraft } from './forgotten.ts';
import { forkOf } from './fork-of.ts';
import { type Counted, type Imported, importedIn, nothingImported, type Shown } from './imported.ts';
import { LaterDraft, wholeDraft } from './later-draft.ts';
import { countsOf, type SharedCounts, together } from './ledger.ts';
import { type Origins, originOf, sessionOf, sourceOf } from './origins.ts';
import { type Base, type ConversationPlan, type ImportPlan, isAside } from './plan.ts';
import { withRefs } from './refs.ts';
import { isRefusal } from './refusal.ts';

/** What an import wrote of one conversation. */
export interface Reconciled {
  readonly conversation: string;
  readonly session: string;
  /** Whether the session is new. */
  readonly created: boolean;
  /** Entries, without rewinds. */
  readonly added: number;
  readonly rewound: boolean;
  /** Whether the source has less than the session, as one that was shortened, or an older copy. */
  readonly isBehind?: true;
  /** Whether the session is one of another source, which shows all of the conversation: a copy of an abandoned branch. */
  readonly isElsewhere?: true;
  /** Secrets that were replaced in these entries. */
  readonly redacted: number;
  /** Those of them that were too large, and say how large. */
  readonly omitted: number;
  /** Why the session takes nothing: it was archived or deleted, its source was forgotten, or it is in use. */
  readonly refused?: TapeError | ImportError;
}

/** What is written, and how. */
export interface Writing {
  readonly plan: ImportPlan;
  readonly conversation: ConversationPlan;
  /** The session from which it is forked, and what that showed before this import. */
  readonly from:
    | {
        readonly session: string;
        readonly refused?: TapeError | ImportError;
        readonly earlier: readonly Shown[];
      }
    | undefined;
  /** The tokens that the session counted that a transcript was exported of, by the keys of drafts. */
  readonly counted: ReadonlyMap<string, JsonObject>;
  /** What the conversations of the source have counted here. */
  readonly tree: SharedCounts | undefined;
  readonly rewritten: boolean;
  readonly as: string | undefined;
  readonly origins: Origins;
  readonly onAdded: OnProgress | undefined;
}

/** What a session has, and the head at which it was read. */
interface ReadTape {
  readonly head: Seq;
  readonly hash: string | undefined;
  readonly imported: Imported;
  /** What has to be written so that it reads as its plan. */
  readonly change: Change;
  readonly back: Back | undefined;
}

/** How often a session is read anew after another writer was faster. */
const triesMax = 10;

/** Drafts of a new session, and their bytes, that are written in one transaction, before all of them become visible. */
const chunkMax = { drafts: 500, bytes: 4 * 1024 * 1024 };

/** Drafts in pieces of which each is in memory alone. */
function* chunksOf(drafts: readonly Draft[]): Generator<readonly Draft[]> {
  let chunk: Draft[] = [];
  let bytes = 0;
  for (const draft of drafts) {
    chunk.push(wholeDraft(draft));
    bytes += draft instanceof LaterDraft ? draft.bytes : 0;
    if (chunk.length < chunkMax.drafts && bytes < chunkMax.bytes) continue;
    yield chunk;
    [chunk, bytes] = [[], 0];
  }
  if (chunk.length > 0) yield chunk;
}

/**
 * Writes one conversation. It has several sessions where one of them went on here, or where files of it differ: then to the
 * one that shows most of it.
 */
export class ConversationWriter {
  /** What its session shows before it is written. */
  readonly shown: readonly Shown[];
  readonly #store: SqliteTapeStore;
  readonly #writing: Writing;
  /** The number of its session, from 1, and of its next one. */
  #n = 1;
  #next = 1;
  #session: string;

  constructor(store: SqliteTapeStore, writing: Writing) {
    this.#store = store;
    this.#writing = writing;
    const sessions: string[] = [];
    for (let one = this.#find(1); one !== undefined; one = this.#find(sessions.length + 1))
      sessions.push(one);
    const { base } = writing.conversation;
    const shown = sessions.map((one) => importedIn(store, one, base).shown);
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
    this.#n = best + 1;
    this.#session = sessions[best] ?? this.#freeName(1);
    this.shown = shown[best] ?? [];
  }

  write(): Reconciled {
    const refused = this.#refusal();
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
    if (this.#exists(this.#session)) return this.#update();
    if (base !== undefined && !this.#isShared()) {
      this.#session = this.#fork(base.session, { cut: base.cut, kind: 'session' });
      return this.#update([this.#origin(), ...this.#continued()]);
    }
    const copied = base === undefined ? this.#copied() : undefined;
    if (copied !== undefined) return copied;
    if (from === undefined) return this.#create();
    this.#session = this.#fork(from.session, forkOf(this.#store, { ...from, conversation }));
    return this.#update([this.#origin(), ...this.#continued()]);
  }

  /**
   * Forks a new conversation from where the home has most of it already, which may be another session than its parent: that of
   * which the source is a copy, or a branch of that. A branch all of which another source's session shows gets none.
   */
  #copied(): Reconciled | undefined {
    const { plan, conversation, from, as } = this.#writing;
    const isBranch = conversation.kind === 'branch';
    if (as !== undefined || (conversation.kind !== 'main' && !isBranch)) return undefined;
    const copies = copiesIn(this.#store);
    const family = copies.family(firstKeyIn(conversation))?.family;
    if (family === undefined) return undefined;
    const own = sourceOf(plan.format, plan.session);
    const whole = isBranch
      ? family.showing(conversation, ({ id }) => copies.sourceOf(id) !== own)
      : undefined;
    if (whole !== undefined && this.#hasAsides(whole.id))
      return this.#receipt({ ...nothing, session: whole.session, isElsewhere: true });
    const { format, copyOf } = plan;
    const preferred =
      from?.session ??
      (copyOf === undefined ? undefined : sessionOf(this.#store, { format, session: copyOf }));
    const at = family.branching(conversation, preferred && this.#store.sessions.find(preferred)?.id);
    if (at === undefined) return undefined;
    this.#session = this.#fork(at.id, { cut: at.cut, kind: 'session' });
    return this.#update([this.#origin()]);
  }

  /** Whether a session has all records that are no part of the conversation. */
  #hasAsides(id: string): boolean {
    const { asides } = this.#writing.conversation;
    if (asides.length === 0) return true;
    const { known } = importedIn(this.#store, id);
    return asides.every(({ draft }) => known.has(draft.key ?? ''));
  }

  /** What says of which session it is the continuation, where that was exported, or resumed under new ids. */
  #continued(): readonly Draft[] {
    const { plan, conversation } = this.#writing;
    const { base } = conversation;
    if (base?.isResumed === true && conversation.kind === 'main') return [resumedNote(base.session)];
    return plan.exportOf !== undefined && base !== undefined ? [continuedNote(base.session)] : [];
  }

  /** Why nothing is written: it was deleted, or it is part of a session that was. */
  #refusal(): TapeError | ImportError | undefined {
    const { conversation, from, origins, as } = this.#writing;
    if (this.#next > 1 || as !== undefined) return undefined;
    if (from?.refused !== undefined && !this.#exists(from.session)) return from.refused;
    const origin = JSON.stringify(this.#origin(1).payload);
    const deleted = origins.findDeleted(origin);
    if (deleted === undefined) return undefined;
    const { id, lifecycle } = deleted;
    const what = lifecycle === 'purged' ? 'purged' : 'deleted';
    return new TapeError('TAPE_ARCHIVED', `cannot import into '${conversation.name}': it was ${what} here`, {
      data: { session: conversation.name, id, lifecycle },
    });
  }

  /** An export that no program went on with: its session has all of it. */
  #nothing({ session: id }: Base): Reconciled {
    const session = this.#exists(this.#session) ? this.#session : this.#store.sessions.find(id)?.session;
    return this.#receipt({ ...nothing, session: session ?? id });
  }

  /** Whether the session from which a conversation is forked has more of it than its base. */
  #isShared(): boolean {
    const { from, conversation } = this.#writing;
    if (from === undefined) return false;
    const now = importedIn(this.#store, from.session, conversation.base).shown;
    return [from.earlier, now].some((shown) => commonOf(conversation, spineOf(shown)) > 0);
  }

  /**
   * Writes what an existing session lacks; to a new one beside it, if the two part. `first` begins what a session has that
   * was forked just now.
   */
  #update(first: readonly Draft[] = []): Reconciled {
    for (let tries = 1; ; tries += 1) {
      const tape = this.#tape();
      if (first.length === 0 && this.#parts(tape)) return this.#goOnBeside(tape);
      try {
        return this.#receipt({ created: first.length > 0, ...this.#append(tape, first) });
      } catch (error) {
        // A key that another import used meanwhile is noticed before the head.
        const isOvertaken = isCode(error, 'TAPE_STALE_HEAD') || isCode(error, 'TAPE_KEY_CONFLICT');
        if (!isOvertaken || tries >= triesMax) throw error;
      }
    }
  }

  #goOnBeside({ imported, change: { same } }: ReadTape): Reconciled {
    const { conversation } = this.#writing;
    // A source that only has less than before, such as an older copy of it.
    if (same === conversation.spine.length || saysNothingNew(conversation, imported))
      return this.#receipt({ ...nothing, isBehind: true });
    const parent = this.#session;
    this.#n = this.#next;
    this.#session = this.#freeName(this.#n);
    const cut = spineOf(imported.shown)[same - 1]?.seq ?? conversation.base?.cut ?? 1;
    this.#session = this.#fork(parent, { key: `${conversation.key}#${this.#n}`, kind: 'session', cut });
    return this.#update([this.#origin()]);
  }

  /**
   * Whether what the source has is no continuation of what the session shows: the session went on here, the source was
   * rewritten, or it is a transcript that was exported of this session, which nothing of it rewinds. Entries that no view shows can always be added.
   */
  #parts({ imported, change: { same, rewindTo, drafts } }: ReadTape): boolean {
    const { plan, rewritten, conversation } = this.#writing;
    if (rewindTo === undefined && drafts.every(isAside)) return false;
    const { base } = conversation;
    const isExported = this.#store.sessions.find(this.#session)?.id === plan.exportOf;
    if ((rewritten || isExported) && rewindTo !== undefined) return true;
    if (plan.isNamed === true && rewindTo !== undefined && losesMore(conversation, imported, rewindTo))
      return true;
    const last = spineOf(imported.shown)[same - 1]?.seq ?? base?.cut ?? 0;
    return imported.ownWork !== undefined && imported.ownWork > last;
  }

  /** A new session without a parent, which appears when all of it is written. */
  #create(): Reconciled {
    const { conversation } = this.#writing;
    const nothingYet = { ...nothingImported, elsewhere: this.#elsewhere() };
    const batch = [this.#origin(), ...changeOf(conversation, nothingYet).drafts];
    // The first entry of a session says that it begins.
    const drafts = withRefs(batch, { plan: conversation, next: 2, shown: [] });
    try {
      // Nothing of an import that was killed is continued: its source may have changed since.
      const { title } = conversation;
      const init = { keys: [], ...(title !== undefined && { title }) };
      const staged = this.#store.imports.stage(this.#session, init);
      let [added, redacted, omitted] = [0, 0, 0];
      for (const chunk of chunksOf(drafts)) {
        this.#store.imports.append(staged.id, chunk);
        const repairs = repairsIn(chunk);
        redacted += repairs.redacted;
        omitted += repairs.omitted;
        added += chunk.length;
        this.#writing.onAdded?.({ done: added, total: drafts.length });
      }
      this.#store.imports.publish([staged.id]);
      return this.#receipt({ created: true, added: drafts.length, rewound: false, redacted, omitted });
    } catch (error) {
      // Another import of the same source was faster: the session is there, to be compared like any other.
      const codes = ['TAPE_EXISTS', 'TAPE_NO_SESSION', 'TAPE_KEY_CONFLICT'] as const;
      if (!codes.some((code) => isCode(error, code)) || !this.#exists(this.#session)) throw error;
      return this.#update();
    }
  }

  /** Forks a session, and returns the name of the child: that of an earlier fork, if one was killed behind it. */
  #fork(parent: string, request: ForkRequest): string {
    const { title, key: own } = this.#writing.conversation;
    const wanted = request.key ?? own;
    let key = wanted;
    // The conversation had a session before, of which nothing was left when the user returned to where it began.
    for (let n = 2; this.#store.sessions.list({ parent, key, deleted: true }).length > 0; n += 1)
      key = `${wanted}~${n}`;
    try {
      return this.#store.lineage.fork(parent, {
        name: this.#session,
        ...(title !== undefined && { title }),
        ...request,
        key,
      }).session;
    } catch (error) {
      if (!isCode(error, 'TAPE_KEY_CONFLICT') || typeof error.data.session !== 'string') throw error;
      return error.data.session;
    }
  }

  #tape(): ReadTape {
    // The head first: what is appended while the tape is read is then not overlooked.
    const info = this.#store.sessions.find(this.#session);
    const { head = 0, headHash } = info ?? {};
    const own = importedIn(this.#store, this.#session, this.#writing.conversation.base);
    const imported = { ...own, elsewhere: this.#elsewhere(info) };
    const back = this.#back(info?.id, imported);
    return {
      head,
      hash: headHash,
      imported,
      change: changeOf(this.#writing.conversation, imported, back),
      back,
    };
  }

  /** Where the session showed more of the conversation before a rewind: a prompt that was left is gone on from. */
  #back(id: string | undefined, imported: Imported): Back | undefined {
    const { plan, conversation, rewritten, as } = this.#writing;
    const { kind, base, spine } = conversation;
    const isTree = (kind === 'main' || kind === 'branch') && base === undefined && as === undefined;
    const isOther = rewritten || plan.isNamed === true || plan.exportOf !== undefined;
    if (id === undefined || !isTree || isOther || imported.ownWork !== undefined) return undefined;
    const { same, rewindTo } = sameOf(conversation, imported);
    // What follows has to have been written, and rewound, before.
    if (rewindTo === undefined || !imported.known.has(spine[same]?.key ?? '')) return undefined;
    const back = copiesIn(this.#store).family(firstKeyIn(conversation))?.family.backIn(id, conversation);
    return back !== undefined && back.same > same ? back : undefined;
  }

  /**
   * The tokens that count no more: those of the exported session, of the other conversations of the source, since a prompt that
   * was left may be gone on from later, and of copies.
   */
  #elsewhere({ id, parentId, link }: Partial<SessionInfo> = {}): Counted | undefined {
    const { plan, conversation, counted, tree } = this.#writing;
    const all: Counted[] = [];
    if (counted.size > 0) all.push({ counted: (key) => counted.get(key), answered: () => undefined });
    if (conversation.kind !== 'main' && conversation.kind !== 'branch') return together(all);
    if (tree !== undefined) all.push({ ...tree.elsewhere(id), answered: () => undefined });
    const { ledger } = copiesIn(this.#store);
    for (const one of new Set([parentId, link?.parentId]))
      if (one !== undefined) all.push(countsOf(ledger, one));
    return together([...all, ...countsElsewhere(this.#store, plan, conversation, id)]);
  }

  /** Appends what a session lacks, `first` before it, in one transaction with the rewind that makes room for it. */
  #append(
    { head, hash, imported, change: { rewindTo, drafts }, back }: ReadTape,
    first: readonly Draft[],
  ): Omit<Reconciled, 'conversation' | 'session' | 'created'> {
    const rewind = rewindTo === undefined ? [] : [rewindDraft(rewindTo)];
    const whole = [...rewind, ...first, ...drafts].map(wholeDraft);
    const { conversation: plan } = this.#writing;
    const shown =
      back?.shown ?? imported.shown.filter(({ seq }) => rewindTo === undefined || seq <= rewindTo);
    if (whole.length > 0)
      this.#store.entries.append(this.#session, withRefs(whole, { plan, next: head + 1, shown }), {
        expectHead: hash,
      });
    const added = first.length + drafts.length;
    return { added, rewound: rewindTo !== undefined, ...repairsIn(whole) };
  }

  #receipt(wrote: Omit<Reconciled, 'conversation' | 'session'> & { readonly session?: string }): Reconciled {
    return { conversation: this.#writing.conversation.key, session: this.#session, ...wrote };
  }

  #exists(session: string): boolean {
    return this.#store.sessions.find(session) !== undefined;
  }

  /** Its nth session, by its name or, if that was changed, by where it comes from. */
  #find(n: number): string | undefined {
    const { as, origins } = this.#writing;
    const expected = JSON.stringify(this.#origin(n).payload);
    for (let i = n; this.#exists(this.#nameAt(i)); i += 1) {
      const name = this.#nameAt(i);
      if (originOf(this.#store, name) === expected) return name;
      if (name === as)
        throw new TapeError(
          'TAPE_EXISTS',
          `cannot import into '${name}': it is not an import of this transcript`,
          {
            data: { session: name, transcript: true },
          },
        );
    }
    return as === undefined ? origins.find(expected)?.session : undefined;
  }

  /** The first name from the nth on that is free. */
  #freeName(n: number): string {
    let i = n;
    while (this.#exists(this.#nameAt(i))) i += 1;
    return this.#nameAt(i);
  }

  #nameAt(i: number): string {
    const { plan, conversation, as } = this.#writing;
    const isOfMain = as !== undefined && conversation.name.startsWith(plan.session);
    const base = isOfMain ? `${as}${conversation.name.slice(plan.session.length)}` : conversation.name;
    return i === 1 ? base : `${base}-${i}`;
  }

  /** Where its nth session comes from, as an event. */
  #origin(n: number = this.#n): Draft {
    const { plan, conversation } = this.#writing;
    const { key, kind, parent } = conversation;
    const { format, session } = plan;
    const more = {
      ...((kind !== 'main' || n > 1) && { conversation: n === 1 ? key : `${key}#${n}` }),
      // The lineage has the parent of any other conversation.
      ...(kind === 'cleared' && parent !== undefined && { from: parent.key }),
    };
    return originDraft({ format, session, ...more });
  }
}

/** What is said of a conversation of which nothing was written. */
export const nothing = { created: false, added: 0, rewound: false, redacted: 0, omitted: 0 };

/** How many drafts tell of secrets that were replaced in them, or of a size that no entry has. */
export function repairsIn(drafts: readonly Draft[]): Pick<Reconciled, 'redacted' | 'omitted'> {
  return {
    redacted: drafts.reduce((sum, { meta }) => sum + Number(meta?.redacted ?? 0), 0),
    omitted: drafts.filter(({ meta }) => meta?.omittedBytes !== undefined).length,
  };
}

/** The entry behind which readers see nothing of what is behind a position before it. */
export function rewindDraft(to: Seq): Draft {
  return { kind: 'rewind', mark: 'rewind', ref: to, payload: { to, mode: 'import' } };
}

function isCode(error: unknown, code: TapeError['code']): error is TapeError {
  return error instanceof TapeError && error.code === code;
}
