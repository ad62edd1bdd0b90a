/**
 * Sessions as the AI SDK's chats show them. `turns.ts` groups entries into turns, `chat-chunks.ts` makes the stream of
 * one assistant message of the chunks of runs, `messages.ts` makes the messages of a whole session of its entries and,
 * with `unsettled.ts`, of what a process that died had saved, `started.ts` finds what the calls of a turn have delegated,
 * `children.ts` and `child-calls.ts` read how that does and what it waits for. Imports `stream`, `usage` and `fields`.
 */
import type { Entry, Seq, TapeStore } from '@tapedeck/tape';
import { clientCalls, isObject, select } from '@tapedeck/tape/internal';

/**
 * What a chat shows as one message of a user and one answer: the message that opens the turn, and all entries up to the
 * next one, of one run or of several that continue it.
 */
export interface Turn {
  /** The message of a user or an agent, the task of a child, or the message of a merge. */
  readonly opening?: Entry;
  /**
   * The id of the assistant message: that of the run that began with the opening, or of the first run that answered it.
   * Undefined when neither is known yet.
   */
  readonly id?: string;
  readonly entries: readonly Entry[];
}

/**
 * Groups the entries that a session shows, in order, into turns. A message that steers a run opens none; neither does the
 * report of a child that is merged while its parent answers. A report that a call already holds is left out, and so is the
 * result of a call that the turn does not have: a chat that gets one stops reading. Pure.
 */
export function turnsOf(shown: Iterable<Entry>): readonly Turn[] {
  const grouping = new Grouping();
  const turns: Turn[] = [];
  for (const entry of shown) turns.push(...grouping.take(entry));
  return [...turns, ...grouping.end()];
}

/** The same of entries that are read one by one. A turn is yielded when the next one begins. */
export async function* turnsIn(shown: Iterable<Entry> | AsyncIterable<Entry>): AsyncGenerator<Turn> {
  const grouping = new Grouping();
  for await (const entry of shown) yield* grouping.take(entry);
  yield* grouping.end();
}

/** The turn that grows, and those that it has ended. */
class Grouping {
  readonly #used = new Set<string>();
  #turns: Turn[] = [];
  #opening: Entry | undefined;
  #entries: Entry[] = [];
  #calls = new Set<string>();
  /** Reports after which it is not known yet whether the answer continues. */
  #reports: Entry[] = [];

  /** Takes the next entry, and returns the turns that it ends. */
  take(entry: Entry): readonly Turn[] {
    if (entry.meta.context === false || isStray(entry, this.#calls)) return [];
    for (const call of clientCalls(entry.payload)) this.#calls.add(call);
    if (isReport(entry)) this.#reports.push(entry);
    else if (isOpening(entry) && !steers(entry, this.#opening, this.#entries)) {
      this.#place();
      this.#open(entry);
    } else {
      if (continues(entry, this.#opening, this.#entries)) {
        this.#entries.push(...this.#reports);
        this.#reports = [];
      } else if (writes(entry)) this.#place();
      this.#entries.push(entry);
    }
    return this.#ended();
  }

  end(): readonly Turn[] {
    this.#place();
    this.#open(undefined);
    return this.#ended();
  }

  #ended(): readonly Turn[] {
    const turns = this.#turns;
    this.#turns = [];
    return turns;
  }

  #open(next: Entry | undefined): void {
    const [opening, entries] = [this.#opening, this.#entries];
    const [first] = opening === undefined ? entries : [opening];
    if (first !== undefined) {
      const own = idOf(opening, entries);
      const id = own !== undefined && this.#used.has(own) ? answerPlace(first) : own;
      if (id !== undefined) this.#used.add(id);
      this.#turns.push({
        ...(opening !== undefined && { opening }),
        ...(id !== undefined && { id }),
        entries,
      });
    }
    this.#opening = next;
    this.#entries = [];
    this.#calls = new Set();
  }

  #place(): void {
    for (const report of this.#reports) this.#open(report);
    this.#reports = [];
  }
}

/** Whether an entry is the result of another call than these. */
function isStray({ kind, payload }: Entry, calls: ReadonlySet<string>): boolean {
  return kind === 'tool-result' && isObject(payload) && !calls.has(String(payload.toolCallId));
}

/** Whether an entry is the message of a merge. */
export function isReport({ kind, meta }: Entry): boolean {
  return kind === 'message' && meta.source === 'merge';
}

/** Whether an entry is a part of an answer. */
function writes({ kind }: Entry): boolean {
  return kind === 'message' || kind === 'tool-result';
}

/** Whether an entry is of a run that has begun the answer of the turn. */
function continues(entry: Entry, opening: Entry | undefined, entries: readonly Entry[]): boolean {
  const run = runOf(entry);
  return (
    run !== undefined &&
    [...(opening === undefined ? [] : [opening]), ...entries].some((one) => runOf(one) === run)
  );
}

function idOf(opening: Entry | undefined, entries: readonly Entry[]): string | undefined {
  if (opening?.kind === 'message') return runOf(opening) ?? answerPlace(opening);
  const [first] = entries;
  return entries.map(runOf).find((run) => run !== undefined) ?? (first && answerPlace(first));
}

/** The id of an answer that no run has written: of what it answers, or of its first entry. */
function answerPlace(entry: Pick<Entry, 'tape' | 'seq'>): string {
  return `${placeOf(entry)}/answer`;
}

/** An entry's place, as the id of what it has no other id for. */
export function placeOf({ tape, seq }: Pick<Entry, 'tape' | 'seq'>): string {
  return `${tape}@${seq}`;
}

function isOpening(entry: Entry): boolean {
  const { kind, payload } = entry;
  return isTask(entry) || (kind === 'message' && isObject(payload) && payload.role === 'user');
}

/** Whether an entry is the task of a child, which its model sees as a user message. */
export function isTask({ kind, name }: Pick<Entry, 'kind' | 'name'>): boolean {
  return kind === 'anchor' && name === 'intention';
}

/** Whether a message belongs to the run of a turn that has begun its answer. */
function steers(entry: Entry, opening: Entry | undefined, entries: readonly Entry[]): boolean {
  if (begins(entry)) return false;
  const isAnswered = entries.some(
    ({ kind, payload }) => kind === 'message' && isObject(payload) && payload.role === 'assistant',
  );
  return isAnswered && continues(entry, opening, entries);
}

/** Whether a run began with a message: that run can have ended the calls of the turn before first. */
function begins({ meta: { mode, source } }: Entry): boolean {
  return mode === undefined ? source === 'user' : mode !== 'steer' && mode !== 'steer-backlog';
}

/** The run that wrote an entry, if any. The notes of a run name it in their payload. */
export function runOf(entry: Entry | undefined): string | undefined {
  if (entry === undefined) return undefined;
  const { kind, name, meta, payload } = entry;
  if (kind === 'message' || kind === 'tool-result')
    return typeof meta.run === 'string' ? meta.run : undefined;
  const run = name?.startsWith('run/') === true && isObject(payload) ? payload.run : undefined;
  return typeof run === 'string' ? run : undefined;
}

/** How many turns are looked through for the one of an id. */
const turnsBack = 32;

/**
 * One of the last turns of a session, by the id of its answer: messages and reports can have come after it. Reads back to
 * its opening, and not further.
 */
export async function turnOf(store: TapeStore, session: string, id: string): Promise<Turn | undefined> {
  for (let last = windowMin; ; last *= 4) {
    const read = await Array.fromAsync(store.entries.read(session, { last }));
    const turns = turnsOf(select(read, 'full').entries);
    const found = turns.findLast((turn) => turn.id === id);
    if (found?.opening !== undefined || read.length < last || turns.length > turnsBack) return found;
  }
}

/** How many entries are read first to find the beginning of a turn. */
const windowMin = 64;

/** The last turn of a session, of all entries or of those up to a position. Reads back to its opening, and not further. */
export async function lastTurn(
  store: TapeStore,
  session: string,
  upTo: { readonly to?: Seq } = {},
): Promise<Turn | undefined> {
  for (let last = windowMin; ; last *= 4) {
    const read = await Array.fromAsync(store.entries.read(session, { ...upTo, last }));
    const turn = turnsOf(select(read, 'full').entries).at(-1);
    if (turn?.opening !== undefined || read.length < last) return turn;
  }
}
