import { Suspended } from '../db/db.ts';
import { type Left, type LeftAnswer, questionsToKeep, toCheck } from './assume.ts';
import { type Guess, idOfGuess, read, toAsk } from './guess.ts';
import type { Asked, Progress } from './habits.ts';
import { type Answer, idOf, type Statement, type Stopped } from './pipeline.ts';

/** How many statements wait at most, where they can be sent at once. */
const unsentMax = 500;

const again = new Suspended('again');
const anew = new Suspended('anew');

/** One thing that an act did: it asked or wrote something, or drew a value from a source. */
type Step =
  | {
      readonly statement: Statement;
      /** The error of a statement that had to change a row, and changed none. */
      readonly orElse?: (() => Error) | undefined;
      /** It was asked, and not written: only such a statement may be asked ahead. */
      readonly asks: boolean;
      /** Counts the transactions of the act, and the times between them: nothing is answered in one for another. */
      readonly span: number;
      answer?: Answer;
    }
  | { readonly value: unknown };

type SqlStep = Extract<Step, { statement: unknown }>;

/** Something to send: a step of the act, or what the attempt itself asks beside it. */
type Unsent = Pick<SqlStep, 'statement' | 'orElse'> & {
  answer?: Answer;
  /** The question whose answer is left to the next act. */
  readonly keeps?: Statement;
  /** It is no part of the act: an act that fails at it runs anew without. */
  readonly isBeside?: true;
};

/** Returns what an act will probably ask next. */
type Guesses = (progress: Progress) => readonly Guess[];

/** Returns the answer that a question of a transaction will probably have. */
type Assume = (statement: Statement, progress: Progress) => Answer | undefined;

/** What helps an attempt to need few trips. */
export interface Foresight {
  readonly guess: Guesses;
  readonly assume?: Assume | undefined;
  /** The questions that were left to the act, where it leaves some to the next one. */
  readonly leaves?: readonly Statement[] | undefined;
}

/** Sends statements and waits for their answers, without letting the thread do anything else. */
export type SendNow = (statements: readonly Statement[]) => readonly Answer[];

/**
 * One call of a method of the store. An act is a function that asks and writes, step by step. It cannot wait, so at the
 * first answer that is not there it ends; the statements so far are sent in one trip; and the act runs again from its
 * beginning, with the answers of the steps that it has done. What it writes waits for the next question, or for the commit.
 * With `sendNow` the answer is there at once, and nothing runs again.
 */
export class Attempt {
  readonly #steps: Step[] = [];
  readonly #sendNow: SendNow | undefined;
  #at = 0;
  #unsent: Unsent[] = [];
  /** The transaction that the act is in, and whether it has written anything. */
  #open: { readonly first: SqlStep; wrote: boolean } | undefined;
  #waits = false;
  #committed = false;
  #span = 0;
  /** The act commits: what it asks next is another span. */
  #isEnding = false;

  readonly #foresight: Foresight;
  /** It was given answers that the server has not confirmed yet. */
  #isUnchecked = false;
  /** It ended with an error that such an answer may have caused. */
  #isDoubtful = false;
  readonly #left = new Map<string, LeftAnswer>();
  /** The guesses that go with the next trip. */
  #ahead: readonly Guess[] = [];
  /** What was guessed before, by span. */
  readonly #guessed = new Set<string>();
  /** Their answers, by span and question, of which the act takes those that it asks for. */
  readonly #early = new Map<string, Answer>();
  /** The tables that the act has written. */
  readonly #written = new Set<string>();

  constructor(foresight: Foresight = { guess: () => [] }, sendNow?: SendNow) {
    this.#foresight = foresight;
    this.#sendNow = sendNow;
  }

  /** The answers that it leaves to the next act, by question. */
  get left(): Left {
    return this.#left;
  }

  /** Whether an error of the act counts only when it comes again without assumed answers. */
  get isDoubtful(): boolean {
    return this.#isDoubtful || this.#isUnchecked;
  }

  /** What the act has asked: others of its kind will probably ask the same. */
  get asked(): readonly Asked[] {
    return this.#steps.flatMap((step) => {
      if (!('statement' in step) || !step.asks) return [];
      if (step.answer === undefined || !isQuestion(step.statement)) return [];
      return [{ statement: step.statement, answer: step.answer, span: step.span }];
    });
  }

  /** Whether the act ended because it needs an answer. An act that caught the signal has no result either. */
  get waits(): boolean {
    return this.#waits;
  }

  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Whether a transaction of it was committed: it cannot start anew. */
  get hasCommitted(): boolean {
    return this.#committed;
  }

  /** Begins to run the act, for the first time or again. */
  run(): void {
    this.#at = 0;
    this.#span = 0;
    this.#isEnding = false;
    this.#open = undefined;
    this.#waits = false;
  }

  /** Draws a value from a source: the same one when the act runs again. */
  value<T>(draw: () => T): T {
    const before = this.#next();
    if (before === undefined) {
      const value = draw();
      if (this.#sendNow === undefined) this.#steps.push({ value });
      return value;
    }
    if (!('value' in before)) throw anew;
    return before.value as T;
  }

  /** Begins a transaction, with statements that come first in it. Nothing is sent before the act asks or commits. */
  begin(statements: readonly Statement[]): void {
    this.#span += 1;
    const [first] = statements.map((statement) => this.#do(statement));
    if (first !== undefined) this.#open = { first, wrote: false };
  }

  write(statement: Statement, orElse?: () => Error): void {
    if (this.#open !== undefined) this.#open.wrote = true;
    // A function of the server can write any table, so that no answer of before counts.
    if (statement.text.startsWith('SELECT')) this.#written.add('');
    this.#do(statement, { orElse });
    if (this.#sendNow !== undefined && this.#unsent.length >= unsentMax) this.#send();
  }

  /** Sends what was written, where answers come at once. */
  flush(): void {
    if (this.#unsent.length > 0) this.#send();
  }

  ask(statement: Statement): Answer {
    const early = this.#steps[this.#at] === undefined ? this.#earlyAnswer(statement) : undefined;
    if (early !== undefined) {
      this.#next();
      this.#steps.push({ statement, answer: early, asks: true, span: this.#span });
      return early;
    }
    const assumed = this.#assumed(statement);
    if (assumed !== undefined) return assumed;
    const step = this.#do(statement, { asks: true });
    if (step.answer === undefined) this.#send();
    return step.answer as Answer;
  }

  /** The answer that a question of a transaction will probably have: the server compares it before the commit. */
  #assumed(statement: Statement): Answer | undefined {
    const isNew = this.#steps[this.#at] === undefined;
    if (!isNew || this.#open === undefined || this.#committed) return undefined;
    if (!isQuestion(statement) || isDrawn(statement)) return undefined;
    for (const table of this.#written) if (statement.text.includes(table)) return undefined;
    const progress = { asked: this.asked, span: this.#span };
    const assumed = this.#foresight.assume?.(statement, progress);
    if (assumed === undefined) return undefined;
    this.#next();
    this.#steps.push({ statement, answer: assumed, asks: true, span: this.#span });
    this.#unsent.push({ statement: toCheck(statement, assumed), isBeside: true });
    this.#isUnchecked = true;
    return assumed;
  }

  /** The answer to a question that was sent ahead, unless the act has written since what it is about. */
  #earlyAnswer(statement: Statement): Answer | undefined {
    const answer = this.#early.get(`${this.#span} ${idOf(statement)}`);
    if (answer === undefined) return undefined;
    if (isDrawn(statement)) {
      this.#early.delete(`${this.#span} ${idOf(statement)}`);
      return answer;
    }
    for (const table of this.#written) if (statement.text.includes(table)) return undefined;
    return answer;
  }

  /** Ends the transaction. No act waits for the end of one that only read. */
  commit(statement: Statement): void {
    const open = this.#open;
    // Answers that were only assumed are compared, though nothing was written.
    if (open?.wrote !== true && !this.#isUnchecked) {
      this.#open = undefined;
      this.#leave(open, statement);
      return;
    }
    this.#isEnding = true;
    if (this.#steps[this.#at] === undefined && open?.wrote === true) this.#askToKeep();
    this.ask(statement);
    this.#isEnding = false;
    this.#open = undefined;
    this.#committed ||= open?.wrote === true;
    this.#span += 1;
  }

  /** Asks again what the act has asked, now that it has written: the next act will ask the same. */
  #askToKeep(): void {
    if (this.#foresight.leaves === undefined) return;
    const asked = this.asked.filter(({ span }) => span === this.#span).map(({ statement }) => statement);
    for (const keeps of questionsToKeep([...asked, ...this.#foresight.leaves]))
      if (!isDrawn(keeps)) this.#unsent.push({ statement: keeps, keeps, isBeside: true });
  }

  rollback(statement: Statement): void {
    this.#isDoubtful ||= this.#isUnchecked;
    const open = this.#open;
    this.#open = undefined;
    this.#leave(open, statement);
  }

  /** Ends a transaction that leaves nothing: with a statement, or by not sending what is not sent yet. */
  #leave(open: { readonly first: SqlStep } | undefined, statement: Statement): void {
    if (open === undefined) return;
    this.#span += 1;
    if (open.first.answer !== undefined) this.#do(statement);
    else if (this.#unsent.includes(open.first)) {
      this.#unsent.length = this.#unsent.indexOf(open.first);
      this.#isUnchecked = false;
    }
  }

  /** Takes the statements to send. */
  take(): readonly Statement[] {
    const now = this.#unsent.map(({ statement }) => statement);
    this.#ahead = this.#isEnding ? [] : this.#newGuesses(now);
    return [...now, ...this.#ahead.map(toAsk)];
  }

  #newGuesses(now: readonly Statement[]): readonly Guess[] {
    // After a commit the act cannot start anew, which a guess that fails would need.
    if (!this.#waits || this.#committed) return [];
    const asking = now.at(-1);
    return this.#foresight.guess({ asked: this.asked, span: this.#span, asking }).filter((guess) => {
      const id = `${this.#span} ${idOfGuess(guess)}`;
      if (this.#guessed.has(id)) return false;
      this.#guessed.add(id);
      return true;
    });
  }

  /** Receives the answers of the statements that `take` gave. */
  answered(answers: readonly Answer[]): void {
    for (const [i, step] of this.#unsent.entries()) {
      const answer = answers[i];
      if (answer === undefined) continue;
      step.answer = answer;
      if (step.keeps !== undefined) this.#left.set(idOf(step.keeps), { question: step.keeps, answer });
    }
    for (const [i, answer] of answers.slice(this.#unsent.length).entries()) {
      const guess = this.#ahead[i];
      if (guess === undefined) continue;
      const { question, answer: its } = read(guess, answer);
      this.#early.set(`${this.#span} ${idOf(question)}`, its);
    }
    this.#ahead = [];
    this.#unsent = [];
    this.#isUnchecked = false;
  }

  /** Whether the server stopped at a guess, and not at what the act did. */
  isGuess({ index }: Stopped): boolean {
    const after = index - this.#unsent.length;
    return after >= 0 && after < this.#ahead.length;
  }

  /** Whether the server stopped at an assumed answer, or at one that was to be left to the next act. */
  isBeside({ index }: Stopped): boolean {
    return this.#unsent[index]?.isBeside === true;
  }

  /** The error of an act, where the server stopped one of the statements that `take` gave. */
  stopped({ index, error }: Stopped): unknown {
    const step = this.#unsent[index];
    if (step !== undefined) Object.assign(error, { statement: step.statement.text });
    const isUnchanged = (error as { code?: unknown }).code === 'TD001';
    return (isUnchanged ? step?.orElse?.() : undefined) ?? error;
  }

  #send(): void {
    if (this.#sendNow === undefined) {
      this.#waits = true;
      throw again;
    }
    try {
      this.answered(this.#sendNow(this.take()));
    } catch (error) {
      if (!isStopped(error)) throw error;
      const failed = this.stopped(error);
      // What was before it is done.
      this.answered(error.answers);
      throw failed;
    }
  }

  #do(
    statement: Statement,
    { orElse, asks = false }: { readonly orElse?: (() => Error) | undefined; readonly asks?: boolean } = {},
  ): SqlStep {
    const table = /^(?:WITH changed AS \()?(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)/.exec(
      statement.text,
    )?.[1];
    if (table !== undefined) this.#written.add(table);
    const before = this.#next();
    if (before !== undefined) {
      if (!('statement' in before) || !isSame(before.statement, statement)) throw anew;
      return before;
    }
    const step: SqlStep = { statement, orElse, asks, span: this.#span };
    // Where answers come at once, nothing runs again.
    if (this.#sendNow === undefined) this.#steps.push(step);
    this.#unsent.push(step);
    return step;
  }

  #next(): Step | undefined {
    // An act that caught the signal goes on for nothing.
    if (this.#waits) throw again;
    const step = this.#steps[this.#at];
    this.#at += 1;
    return step;
  }
}

/** What is answered with another value each time. */
function isDrawn({ text }: Statement): boolean {
  return text.includes('nextval(');
}

/** What only reads, and can be asked at another time too. */
function isQuestion({ text }: Statement): boolean {
  return /^\s*(?:SELECT|WITH RECURSIVE)\b/.test(text) && !/advisory/.test(text);
}

function isStopped(error: unknown): error is Stopped {
  return typeof error === 'object' && error !== null && 'answers' in error;
}

function isSame(one: Statement, other: Statement): boolean {
  return (
    one.name === other.name &&
    one.values.length === other.values.length &&
    one.values.every((value, i) => isSameValue(value, other.values[i] ?? null))
  );
}

function isSameValue(one: string | Uint8Array | null, other: string | Uint8Array | null): boolean {
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other) === 0;
  return one === other;
}
