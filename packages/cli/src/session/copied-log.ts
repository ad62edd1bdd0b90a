import type { Draft, Json, JsonObject, Seq } from '@tapedeck/tape';
import { clientCalls, isObject, isPrune, noResult, renderEntry } from '@tapedeck/tape/internal';
import type { LoggedLine } from './draft-line.ts';

/**
 * An entry of a copy, once it is known where the entries before it are: `at` tells the position of each by its number, from
 * 0, and of -1 the one before all of them.
 */
export type Planned = (at: (entry: number) => Seq) => Draft;

/** What begins a fork: no rewind hides it, and what it was asked is shown after each boundary, too. */
interface Start {
  readonly seq: Seq;
  readonly state: Draft | undefined;
  intention?: Draft;
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
  /** Number of entries that were planned, and of those before this log. */
  #count = 0;
  #first = 0;
  #planned: Planned[] = [];
  /** The positions of the log, each with the number of entries that were planned up to it. */
  #lines: { readonly seq: Seq; readonly count: number }[] = [];
  /** Its boundaries and rewinds, each with whether a boundary begins the view after it. */
  #marks: { readonly seq: Seq; readonly isBounded: boolean }[] = [];
  #calls: Call[] = [];
  /** Number of erased results: whose they are is known when no other call is open. */
  #lost = 0;
  #start: Start | undefined;

  /** Plans an entry that is of no log. */
  plain(draft: Draft): readonly Planned[] {
    this.#add(() => draft);
    this.#begin();
    return this.#planned.splice(0);
  }

  /** Plans what a line of a log becomes: in most cases one entry. */
  logged(line: LoggedLine): readonly Planned[] {
    if (line.seq <= (this.#lines.at(-1)?.seq ?? 0)) this.#begin();
    this.#take(line);
    this.#lines.push({ seq: line.seq, count: this.#count });
    return this.#planned.splice(0);
  }

  /** Plans what is missing after the last line. */
  end(): readonly Planned[] {
    this.#answer(this.#lost);
    return this.#planned.splice(0);
  }

  #begin(): void {
    this.#answer(this.#lost);
    [this.#first, this.#lost, this.#start] = [this.#count, 0, undefined];
    [this.#lines, this.#marks, this.#calls] = [[], [], []];
  }

  #add(planned: Planned): void {
    this.#planned.push(planned);
    this.#count += 1;
  }

  #take({ seq, ref, draft, isOwn, isAct }: LoggedLine): void {
    const { kind, mark, name, payload } = draft;
    const isIntention = kind === 'anchor' && name === 'intention';
    // Events and entries of applications can have null as their content.
    const isErased = payload === null && !/^(?:event$|ui$|x-)/.test(kind);
    if (isIntention) this.#intend(draft, isOwn);
    else if (isAct) this.acts += 1;
    else if (isErased) this.erased += 1;
    if (isAct) {
      if (kind === 'anchor' && name === 'fork/start' && isOwn) this.#fork(seq, payload);
    } else if (kind === 'rewind') this.#rewind(seq, ref ?? 0, draft);
    else if (mark === 'boundary') this.#bound(seq, ref ?? seq, draft);
    else if (!isErased) this.#copy(draft);
    else if (kind === 'anchor') this.#add(() => ({ ...draft, payload: { state: {} } }));
    else if (kind === 'tool-result') this.#lost += 1;
    if (kind === 'tool-result' && this.#lost >= this.#calls.length) this.#answer(this.#lost);
  }

  #copy(draft: Draft): void {
    const { kind, payload } = draft;
    if (isObject(payload) && isPrune(draft)) {
      this.#prune(draft, payload);
      return;
    }
    if (kind === 'message') this.#calls.push(...callsIn(payload));
    if (kind === 'tool-result' && isObject(payload)) {
      const at = this.#calls.findIndex(({ toolCallId }) => toolCallId === payload.toolCallId);
      if (at !== -1) this.#calls.splice(at, 1);
    }
    const inMeta = this.#viewed(draft.meta);
    const inPayload = kind === 'event' && isObject(payload) ? this.#viewed(payload) : undefined;
    this.#add((at) => ({
      ...draft,
      ...(inMeta !== undefined && { meta: inMeta(at) }),
      ...(inPayload !== undefined && { payload: inPayload(at) }),
    }));
  }

  /**
   * What records the view that a model was sent keeps the policy, by which the next one is made, and the position: the
   * digest and the ranges are those of the original. Undefined for what records none.
   */
  #viewed(record: JsonObject | undefined): ((at: (entry: number) => Seq) => JsonObject) | undefined {
    const { view } = record ?? {};
    if (!isObject(view) || typeof view.head !== 'number') return undefined;
    const { policy = null, target, head } = view;
    const last = this.#before(Number(head) + 1) - 1;
    return (at) => ({
      ...record,
      view: { policy, ...(target !== undefined && { target }), head: at(last) },
    });
  }

  /** Answers calls whose results were erased as a view answers a call that has none. */
  #answer(count: number): void {
    this.#lost = 0;
    for (const call of this.#calls.splice(0, count)) {
      const output = { type: 'error-text', value: noResult };
      this.#add(() => ({ kind: 'tool-result', payload: { type: 'tool-result', ...call, output } }));
    }
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
    this.#show(seq);
  }

  /** What a session was asked becomes a message with what its views say. */
  #intend(draft: Draft, isOwn: boolean): void {
    const rendered = renderEntry({ ...draft, payload: draft.payload as Json, meta: {} });
    if (rendered?.type !== 'message') return;
    const { role, content } = rendered.message;
    const message: Draft = { kind: 'message', payload: { role, content } };
    if (isOwn && this.#start !== undefined) this.#start.intention = message;
    this.#add(() => message);
  }

  /** Begins the view at a position with what begins a fork. */
  #show(seq: Seq): void {
    const { state, intention } = this.#start ?? {};
    const [first, own] = [this.#first, this.#count];
    if (state !== undefined && !this.#isBounded(seq))
      this.#add((at) => (first < own ? { ...state, ref: at(first) } : state));
    if (intention !== undefined) this.#add(() => intention);
  }

  #rewind(seq: Seq, to: Seq, draft: Draft): void {
    const last = this.#before(to + 1) - 1;
    const payload = isObject(draft.payload) ? draft.payload : {};
    this.#add((at) => ({ ...draft, ref: at(last), payload: { ...payload, to: at(last) } }));
    // The view after a rewind is that of its target.
    this.#marks.push({ seq, isBounded: this.#isBounded(Math.min(to, seq - 1)) });
    [this.#calls, this.#lost] = [[], 0];
    const { seq: begun = 0, intention } = this.#start ?? {};
    if (to < begun) this.#show(seq);
    else if (to === begun && intention !== undefined) this.#add(() => intention);
  }

  #bound(seq: Seq, ref: Seq, draft: Draft): void {
    const keep = Math.min(ref, seq);
    const [kept, own] = [this.#before(keep), this.#count];
    const payload = this.#stated(draft);
    this.#add((at) => ({ ...draft, payload: payload(at), ...(kept < own && { ref: at(kept) }) }));
    this.#marks.push({ seq, isBounded: true });
    const { intention, seq: begun } = this.#start ?? { seq };
    // Views show it again after a boundary that hides it.
    if (intention !== undefined && keep > begun + 1) this.#add(() => intention);
  }

  /** The payload of a boundary; that of a summary says which positions it replaces. */
  #stated({ kind, payload }: Draft): (at: (entry: number) => Seq) => unknown {
    const state: JsonObject = isObject(payload) && isObject(payload.state) ? payload.state : {};
    if (kind !== 'compaction') return () => ({ ...(isObject(payload) && payload), state });
    const { range, summarized_through: through, first_kept: first } = state;
    const from = (seq: Json | undefined) => this.#before(Number(seq));
    const upTo = (seq: Json | undefined) => this.#before(Number(seq) + 1) - 1;
    const [last, kept] = [upTo(through), from(first)];
    const end = Array.isArray(range) ? upTo(range[1]) : undefined;
    // A range of what was left out alone ends where it begins.
    const ends = Array.isArray(range) && end !== undefined ? [Math.min(from(range[0]), end), end] : undefined;
    return (at) => ({
      ...(isObject(payload) && payload),
      state: {
        ...state,
        summary: state.summary ?? '',
        ...(ends !== undefined && { range: ends.map(at) }),
        ...(through !== undefined && { summarized_through: at(last) }),
        ...(first !== undefined && { first_kept: at(kept) }),
      },
    });
  }

  /** Prunes the same outputs of the copy. */
  #prune(draft: Draft, payload: JsonObject): void {
    const outputs = (Array.isArray(payload.outputs) ? payload.outputs : []).flatMap((output) => {
      if (!isObject(output) || typeof output.seq !== 'number') return [];
      const number = this.#before(output.seq + 1) - 1;
      return number >= this.#before(output.seq) ? [{ output, number }] : [];
    });
    this.#add((at) => ({
      ...draft,
      payload: { ...payload, outputs: outputs.map(({ output, number }) => ({ ...output, seq: at(number) })) },
    }));
  }

  /** Number of entries that were planned for the lines before a position. */
  #before(seq: Seq): number {
    return lastUpTo(this.#lines, seq - 1)?.count ?? this.#first;
  }

  /** Whether a boundary begins the view at a position. */
  #isBounded(head: Seq): boolean {
    return lastUpTo(this.#marks, head)?.isBounded ?? false;
  }
}

/** The last of some places, which are in order, that is not after a position. */
function lastUpTo<Place extends { readonly seq: Seq }>(
  places: readonly Place[],
  seq: Seq,
): Place | undefined {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle]?.seq ?? 0) <= seq) low = middle + 1;
    else high = middle;
  }
  return places[low - 1];
}

interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** The calls of a message that wait for a result. */
function callsIn(payload: unknown): readonly Call[] {
  const open = clientCalls(payload);
  if (open.length === 0 || !isObject(payload) || !Array.isArray(payload.content)) return [];
  const parts = payload.content.filter(isObject);
  return open.map((toolCallId) => ({
    toolCallId,
    toolName: String(parts.find((part) => part.toolCallId === toolCallId)?.toolName),
  }));
}
