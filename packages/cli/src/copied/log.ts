/**
 * Copies what `tape log --jsonl` printed to another tape, for `tape append`: `draft-line.ts` reads a line, `log.ts` plans an entry
 * for each, and `placed.ts` says where they come. What refers to positions refers to those of the copy (`references.ts`), what a
 * rewind hides stays hidden (`places.ts`), and calls keep their results (`calls.ts`). Imports `input` and what lies below.
 */
import type { Draft, Json, Seq } from '@tapedeck/tape';
import { isObject, isOmission, isPrune, omit, renderEntry } from '@tapedeck/tape/internal';
import { CopiedCalls } from './calls.ts';
import type { LoggedLine } from './draft-line.ts';
import { CopiedPlaces } from './places.ts';
import { omittedOf, prunedIn, statedIn, viewedIn } from './references.ts';
import { CopiedTask } from './task.ts';

/**
 * An entry of a copy, once it is known where the entries before it are: `at` tells the position of each by its number, from
 * 0, and of -1 the one before all of them.
 */
export type Planned = (at: (entry: number) => Seq) => Draft;

/** What begins a fork, which no rewind hides. */
interface Start {
  readonly seq: Seq;
  readonly state: Draft | undefined;
}

/**
 * Plans the entries of a copy from the lines of a log. References to positions become those of the copy. What only an act
 * writes is left out, and what was erased has no content: where a view shows something of it, the copy gets an entry that
 * gives the same view.
 */
export class CopiedLog {
  /** Number of entries that only an act writes. */
  acts = 0;
  /** Number of entries without content. */
  erased = 0;
  readonly #places = new CopiedPlaces();
  #planned: Planned[] = [];
  readonly #calls = new CopiedCalls();
  #start: Start | undefined;
  #task: CopiedTask | undefined;

  /** Plans an entry that is of no log. */
  plain(draft: Draft): readonly Planned[] {
    this.#add(() => draft);
    this.#begin();
    return this.#planned.splice(0);
  }

  /** Plans what a line of a log becomes: in most cases one entry. */
  logged(line: LoggedLine): readonly Planned[] {
    if (line.seq <= this.#places.last) this.#begin();
    this.#take(line);
    this.#places.keep(line.seq, line.draft.kind === 'message' && line.draft.payload !== null);
    return this.#planned.splice(0);
  }

  /** Plans what is missing after the last line. */
  end(): readonly Planned[] {
    this.#close();
    return this.#planned.splice(0);
  }

  #begin(): void {
    this.#close();
    this.#places.begin();
    this.#calls.clear();
    [this.#start, this.#task] = [undefined, undefined];
  }

  #add(planned: Planned): void {
    this.#planned.push(planned);
    this.#places.count += 1;
  }

  #take({ seq, ref, draft, isOwn, isAct }: LoggedLine): void {
    const { kind, mark, name, payload } = draft;
    const isIntention = kind === 'anchor' && name === 'intention';
    // Events and entries of applications can have null as their content.
    const isErased = payload === null && !/^(?:event$|ui$|x-)/.test(kind);
    if (isIntention) this.#intend(seq, draft, isOwn);
    else if (isAct) this.acts += 1;
    else if (isErased) this.erased += 1;
    if (isAct) {
      if (kind === 'anchor' && name === 'fork/start' && isOwn) this.#fork(seq, payload);
    } else if (kind === 'rewind') this.#rewind(seq, ref ?? 0, draft);
    else if (mark === 'boundary') this.#bound(seq, ref ?? seq, draft);
    else if (!isErased) this.#copy(seq, draft);
    else if (kind === 'anchor') this.#add(() => ({ ...draft, payload: { state: {} } }));
    else if (kind === 'tool-result') this.#calls.lose();
    if (kind === 'tool-result' && this.#calls.areLost) this.#close();
  }

  #copy(seq: Seq, draft: Draft): void {
    const { kind, payload } = draft;
    if (isObject(payload) && isPrune(draft)) {
      const pruned = prunedIn(payload, this.#places);
      this.#add((at) => ({ ...draft, payload: pruned(at) }));
      return;
    }
    if (isObject(payload) && isOmission(draft)) {
      const omitted = omittedOf(payload, this.#places);
      this.#add((at) => ({ ...draft, payload: omitted(at) }));
      return;
    }
    if (kind === 'message') this.#calls.call(payload);
    if (kind === 'tool-result') {
      this.#calls.answer(payload);
      this.#places.keepResult(seq);
    }
    const inMeta = viewedIn(draft.meta, this.#places);
    const inPayload = kind === 'event' && isObject(payload) ? viewedIn(payload, this.#places) : undefined;
    this.#add((at) => ({
      ...draft,
      ...(inMeta !== undefined && { meta: inMeta(at) }),
      ...(inPayload !== undefined && { payload: inPayload(at) }),
    }));
  }

  /** Answers the calls whose results were erased. */
  #close(): void {
    for (const draft of this.#calls.close()) this.#add(() => draft);
  }

  #fork(seq: Seq, payload: unknown): void {
    const { state, from_anchor: from } = isObject(payload) ? payload : {};
    const isName = typeof from === 'string' && /^[a-z][\w-]*$/i.test(from);
    const name = isName && from !== 'intention' && from !== 'head' ? from : 'start';
    const hasState = isObject(state) && Object.keys(state).length > 0;
    this.#start = {
      seq,
      state: hasState ? { kind: 'anchor', mark: 'boundary', name, payload: { state } } : undefined,
    };
    this.#begins(seq);
  }

  /** What a session was asked becomes a message with what its views say. */
  #intend(seq: Seq, draft: Draft, isOwn: boolean): void {
    const rendered = renderEntry({ ...draft, payload: draft.payload as Json, meta: {} });
    if (rendered?.type !== 'message') return;
    const { role, content } = rendered.message;
    const message: Draft = { kind: 'message', payload: { role, content } };
    if (isOwn) this.#task = new CopiedTask(seq, message);
    this.#add(() => message);
  }

  /** Begins the view at a position with the state of a fork, unless a boundary does. */
  #begins(seq: Seq): void {
    const { state } = this.#start ?? {};
    const { first, count: own } = this.#places;
    if (state !== undefined && !this.#places.isBounded(seq))
      this.#add((at) => (first < own ? { ...state, ref: at(first) } : state));
  }

  #rewind(seq: Seq, to: Seq, draft: Draft): void {
    const last = this.#places.upTo(to);
    const payload = isObject(draft.payload) ? draft.payload : {};
    this.#add((at) => ({ ...draft, ref: at(last), payload: { ...payload, to: at(last) } }));
    this.#places.rewind(seq, to);
    this.#calls.clear();
    if (to < (this.#start?.seq ?? 0)) this.#begins(seq);
    if (this.#task?.rewind(seq, to) === true) this.#say(this.#task);
  }

  #bound(seq: Seq, ref: Seq, draft: Draft): void {
    const keep = Math.min(ref, seq);
    const own = this.#places.count;
    const { kept, omitted, hides } = this.#task?.bound(seq, keep, this.#places) ?? {
      kept: this.#places.before(keep),
      omitted: [],
      hides: false,
    };
    const payload = statedIn(draft, this.#places);
    this.#add((at) => ({ ...draft, payload: payload(at), ...(kept < own && { ref: at(kept) }) }));
    this.#places.bound(seq);
    if (omitted.length > 0) this.#add((at) => omit(omitted.map(at)));
    if (hides && this.#task !== undefined) this.#say(this.#task);
  }

  #say({ message }: CopiedTask): void {
    this.#add(() => message);
  }
}
