import { type Answer, idOf, type Statement, type Value } from './pipeline.ts';

/** A question that an act will probably ask, before all of its values are known. */
export interface Guess {
  /** Its text and the types of its values. The values are those of another time. */
  readonly like: Statement;
  readonly values: readonly GuessedValue[];
}

/** A value that is known, or a column of a row that another question will be answered with. */
export type GuessedValue =
  | { readonly known: Value }
  | { readonly of: Guess; readonly row: number; readonly column: string };

/** What a guess was a guess at, with its answer. */
interface Answered {
  readonly question: Statement;
  readonly answer: Answer;
}

const typeNames: Readonly<Record<number, string>> = {
  17: 'bytea',
  20: 'bigint',
  25: 'text',
  701: 'double precision',
};

/** A longer one costs the server more than the trip that it saves. */
const textMax = 4_000;

/** Each text is prepared on each connection, which keeps it. */
const textsMax = 500;

/** Whether a guess is worth what it costs the server. */
export function isCheap(guess: Guess): boolean {
  return toAsk(guess).name !== tooDear;
}

const tooDear = '';

/** Whether other guesses can be made of the answer: of one that changes something, it would be another each time. */
export function isSource({ text }: Statement): boolean {
  return !text.includes('nextval(');
}

/** The names of the texts that guesses were made into, with the types of their values. */
const names = new Map<string, string>();

/**
 * The statement that asks a guess. Values that are not known yet are looked up in it, and it returns them beside each row:
 * so its answer says to which question it is one, whatever else has changed since.
 */
export function toAsk(guess: Guess): Statement {
  const known = statements.get(guess) ?? statementOf(guess);
  statements.set(guess, known);
  return known;
}

const statements = new WeakMap<Guess, Statement>();

function statementOf({ like, values }: Guess): Statement {
  const sent = new Sent();
  const lookedUp: string[] = [];
  const text = filled(like.text, (at) => {
    const value = values[at];
    if (value === undefined || 'known' in value) return sent.place(value?.known ?? null, like.types[at]);
    lookedUp[at] ??= `${lookUp(value, like.types[at], sent)} AS "=${at}"`;
    return `looked."=${at}"`;
  });
  if (lookedUp.length === 0) return { ...like, values: values.map((value) => knownIn(value)) };
  // In two steps, so that values that were found are returned where the question has no row.
  const whole = `SELECT * FROM (SELECT ${lookedUp.filter(Boolean).join(', ')}) looked
    LEFT JOIN LATERAL (SELECT 1 AS "=found", * FROM (${text}) question) answer ON true`;
  const name = nameFor(whole, sent.types);
  return { text: whole, base: name, name, types: sent.types, values: sent.values };
}

function nameFor(text: string, types: readonly number[]): string {
  const key = `${types.join()} ${text}`;
  const known = names.get(key);
  if (known !== undefined) return known;
  if (text.length > textMax || names.size >= textsMax) return tooDear;
  const name = `g${names.size}`;
  names.set(key, name);
  return name;
}

/** Reads the answer of the statement that `toAsk` made. */
export function read({ like, values }: Guess, answer: Answer): Answered {
  if (values.every((value) => 'known' in value))
    return { question: { ...like, values: values.map(knownIn) }, answer };
  const [first = {}] = answer.rows as Readonly<Record<string, unknown>>[];
  const found = values.map((value, at) => ('known' in value ? value.known : asValue(first[`=${at}`])));
  const rows = (answer.rows as Readonly<Record<string, unknown>>[]).flatMap((row) =>
    row['=found'] === null
      ? []
      : [Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith('=')))],
  );
  const beside = values.filter((value) => !('known' in value)).length + 1;
  const digest = (without = 0) => (rows.length === 0 ? '' : answer.digest(without + beside));
  return { question: { ...like, values: found }, answer: { ...answer, rows, count: rows.length, digest } };
}

/** A value of an answer as it is sent. */
export function asValue(held: unknown): Value {
  if (held === null || held === undefined) return null;
  return held instanceof Uint8Array ? held : String(held);
}

/** Names a guess: what was asked once in a trip needs no other trip. */
export function idOfGuess(guess: Guess): string {
  return idOf(toAsk(guess));
}

function knownIn(value: GuessedValue): Value {
  return 'known' in value ? value.known : null;
}

function lookUp({ of, row, column }: Extract<GuessedValue, { of: Guess }>, type = 25, sent: Sent): string {
  const from = filled(of.like.text, (at) => {
    const value = of.values[at];
    if (value === undefined || 'known' in value) return sent.place(value?.known ?? null, of.like.types[at]);
    return lookUp(value, of.like.types[at], sent);
  });
  return `CAST((SELECT source."${column}" FROM (${from}) source LIMIT 1${row === 0 ? '' : ` OFFSET ${row}`}) AS ${typeNames[type] ?? 'text'})`;
}

function filled(text: string, textOf: (at: number) => string): string {
  return text.replace(/\$(\d+)/g, (_, number: string) => textOf(Number(number) - 1));
}

/** The values that a statement is sent with. */
class Sent {
  readonly values: Value[] = [];
  readonly types: number[] = [];

  place(value: Value, type = 0): string {
    this.types.push(type);
    return `$${this.values.push(value)}`;
  }
}
