import { asValue, type Guess, type GuessedValue, isCheap, isSource } from './guess.ts';
import type { Answer, Statement, Value } from './pipeline.ts';

/** A question of an act, and its answer. */
export interface Asked {
  readonly statement: Statement;
  readonly answer: Answer;
  /** In which of the transactions of the act, and of the times between them, it was asked. */
  readonly span: number;
}

/** An act, as its method and what its call was given. */
export interface ActKind {
  readonly kind: string;
  /** The session that the call names. */
  readonly about?: string | undefined;
  /** The values in the call's arguments; acts of one kind have them at the same places. */
  readonly given?: readonly Value[] | undefined;
}

/** How far an act has come. */
export interface Progress {
  readonly asked: readonly Asked[];
  readonly span: number;
  /** The question that it waits for. */
  readonly asking?: Statement | undefined;
}

/** Where the value of a parameter came from, each time so far. */
type Origin =
  | { readonly from: 'constant'; readonly value: Value }
  /** A value that the call was given. */
  | { readonly from: 'call'; readonly at: number }
  /** A parameter of an earlier question. */
  | { readonly from: 'question'; readonly question: number; readonly at: number }
  /** A column of one of the first rows that an earlier question was answered with. */
  | {
      readonly from: 'answer';
      readonly question: number;
      readonly row: number;
      readonly column: string;
    };

interface Question {
  readonly statement: Statement;
  readonly span: number;
  /** How many acts in a row it was answered without a row. */
  readonly misses: number;
  /** For each parameter what explains its values; the surest last. */
  readonly origins: readonly (readonly Origin[])[];
}

const questionsMax = 40;
/** How many rows of an answer are looked at: a session and those that it was forked from. */
const rowsMax = 3;
const sessionsMax = 2_000;
const missesMin = 2;

/**
 * What acts of one kind ask, learned from those before: for each parameter the origins that explain it every time. With each
 * trip go the questions that the act will probably ask next. A wrong guess costs the server a look-up: its answer is one to
 * exactly that question, and an act that asks another one gets its own.
 */
export class Habits {
  readonly #kinds = new Map<string, readonly Question[]>();
  /** What was asked the last time for a session: most of it is the same again. */
  readonly #last = new Map<string, readonly Statement[]>();

  /** Learns from an act that has ended. */
  learn({ kind, about, given = [] }: ActKind, asked: readonly Asked[]): void {
    const before = this.#kinds.get(kind) ?? [];
    const now = asked.slice(0, questionsMax).map(({ statement, span, answer }, i): Question => {
      const known = before[i]?.statement.text === statement.text ? before[i] : undefined;
      const origins = statement.values.map((value, at) => {
        const seen = originsOf({ value, type: statement.types[at] }, given, asked.slice(0, i));
        return known?.origins[at]?.filter((one) => seen.some((other) => isSame(one, other))) ?? seen;
      });
      const misses = answer.rows.length === 0 ? (known?.misses ?? 0) + 1 : 0;
      return { statement, span, misses, origins };
    });
    // An act that ends early says nothing of what others ask after it.
    const isPart = now.every(
      ({ statement }, i) => (before[i]?.statement.text ?? statement.text) === statement.text,
    );
    this.#kinds.set(kind, [...now, ...(isPart ? before.slice(now.length) : [])]);
    if (about === undefined) return;
    const key = `${kind} ${about}`;
    this.#last.delete(key);
    this.#last.set(
      key,
      now.map(({ statement }) => statement),
    );
    const [oldest] = this.#last.keys();
    if (this.#last.size > sessionsMax && oldest !== undefined) this.#last.delete(oldest);
  }

  /** Whether the next question of an act has had no row in the last acts of its kind: a key that is mostly new, say. */
  misses({ kind }: ActKind, { text }: Statement, { asked, span }: Progress): boolean {
    const question = this.#kinds.get(kind)?.[asked.length];
    return question?.statement.text === text && question.span === span && question.misses >= missesMin;
  }

  /** Forgets what acts of a kind ask. */
  forget({ kind }: ActKind): void {
    this.#kinds.delete(kind);
  }

  /** The questions that an act will probably ask in a span, after those that it has asked. */
  ahead({ kind, about, given = [] }: ActKind, { asked, span, asking }: Progress): readonly Guess[] {
    const last = this.#last.get(`${kind} ${about ?? ''}`);
    const guesses = new Map<number, Guess>();
    for (const [i, question] of (this.#kinds.get(kind) ?? []).entries()) {
      if (i < asked.length || question.span !== span) continue;
      if (i === asked.length && asking?.name === question.statement.name) {
        guesses.set(i, { like: asking, values: asking.values.map((known) => ({ known })) });
        continue;
      }
      const before = last?.[i]?.name === question.statement.name ? last[i] : undefined;
      const values = question.origins.map((origins, at) =>
        guessed(origins.at(-1), { given, asked, guesses, before: before?.values[at] }),
      );
      if (values.every((value) => value !== undefined)) guesses.set(i, { like: question.statement, values });
    }
    return [...guesses.values()].filter((guess) => guess.like !== asking && isCheap(guess));
  }
}

/** What a value will probably be; undefined where nothing says it. */
function guessed(
  origin: Origin | undefined,
  {
    given,
    asked,
    guesses,
    before,
  }: {
    readonly given: readonly Value[];
    readonly asked: readonly Asked[];
    readonly guesses: ReadonlyMap<number, Guess>;
    readonly before: Value | undefined;
  },
): GuessedValue | undefined {
  if (origin === undefined) return undefined;
  if (origin.from === 'constant') return { known: origin.value };
  if (origin.from === 'call') {
    const known = given[origin.at];
    return known === undefined ? undefined : { known };
  }
  const guess = guesses.get(origin.question);
  const done = asked[origin.question];
  if (origin.from === 'question') {
    const value = done?.statement.values[origin.at];
    return value === undefined ? guess?.values[origin.at] : { known: value };
  }
  if (done !== undefined) {
    const row = done.answer.rows[origin.row] as Readonly<Record<string, unknown>> | undefined;
    return row === undefined ? undefined : { known: asValue(row[origin.column]) };
  }
  if (guess !== undefined && isSource(guess.like)) {
    const { row, column } = origin;
    return { of: guess, row, column };
  }
  return before === undefined ? undefined : { known: before };
}

/**
 * The origins that explain a value, the surest last: a constant explains the least, and what the call was given the most;
 * the first column of the first question is mostly an id.
 */
function originsOf(
  { value, type }: { readonly value: Value; readonly type: number | undefined },
  given: readonly Value[],
  before: readonly Asked[],
): Origin[] {
  const found: Origin[] = [{ from: 'constant', value }];
  if (value === null) return found;
  for (const [question, { statement }] of before.entries())
    for (const [at, held] of statement.values.entries())
      if (isEqual(held, value)) found.push({ from: 'question', question, at });
  for (const [question, { answer }] of [...before.entries()].reverse())
    for (const [row, columns] of [...answer.rows.slice(0, rowsMax).entries()].reverse())
      for (const [column, held] of Object.entries(columns as Record<string, unknown>).reverse())
        if (answer.columns[column] === type && isEqual(asValue(held), value))
          found.push({ from: 'answer', question, row, column });
  for (const [at, one] of [...given.entries()].reverse())
    if (isEqual(one, value)) found.push({ from: 'call', at });
  return found;
}

function isSame(one: Origin, other: Origin): boolean {
  if (one.from === 'constant' && other.from === 'constant') return isEqual(one.value, other.value);
  if (one.from === 'question' && other.from === 'question')
    return one.question === other.question && one.at === other.at;
  if (one.from === 'call' && other.from === 'call') return one.at === other.at;
  if (one.from === 'answer' && other.from === 'answer')
    return one.question === other.question && one.row === other.row && one.column === other.column;
  return one.from === other.from;
}

function isEqual(one: Value, other: Value): boolean {
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other) === 0;
  return one === other;
}
