import { createHash } from 'node:crypto';
import type { Client, Connection } from 'pg';

/** A value as it is sent. */
export type Value = string | Uint8Array | null;

/** A statement with its parameters, as PostgreSQL understands it. */
export interface Statement {
  readonly text: string;
  /** Of the statement that the server prepares once for each connection: a text with these types has one name. */
  readonly name: string;
  /** The types of the parameters; 0 for one that follows from its place. */
  readonly types: readonly number[];
  readonly values: readonly Value[];
  /** The name of its text, whatever the types. */
  readonly base: string;
}

/** Names a statement with these parameters. */
export function idOf({ name, values }: Pick<Statement, 'name' | 'values'>): string {
  return JSON.stringify([name, ...values.map((value) => (value instanceof Uint8Array ? [...value] : value))]);
}

/** What a statement answered. */
export interface Answer {
  readonly rows: readonly unknown[];
  /** The number of rows that it returned or changed. */
  readonly count: number;
  /** The type of each column, as the server has it. */
  readonly columns: Readonly<Record<string, number>>;
  /** The rows in short, as `digestOf` has them on the server: without some first columns. */
  readonly digest: (without?: number) => string;
}

/** A failure of the server, and which statement of the pipeline it stopped. */
export interface Stopped {
  readonly error: Error;
  readonly index: number;
  /** The answers of the statements before it. */
  readonly answers: readonly Answer[];
}

interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** What the messages of the protocol have that a pipeline reads. */
interface Messages {
  readonly rowDescription: { readonly fields: readonly Field[] };
  readonly dataRow: { readonly fields: readonly (string | null)[] };
  readonly commandComplete: { readonly text: string };
}

/** The part of a connection of `pg` that speaks the extended protocol. */
interface Wire {
  readonly stream: { cork?(): void; uncork?(): void };
  parse(statement: { readonly name: string; readonly text: string; readonly types: readonly number[] }): void;
  bind(to: {
    readonly portal: '';
    readonly statement: string;
    readonly values: readonly unknown[];
    readonly binary: false;
    readonly valueMapper: (value: unknown) => unknown;
  }): void;
  describe(what: { readonly type: 'P'; readonly name: '' }): void;
  execute(portal: { readonly portal: ''; readonly rows: 0 }): void;
  sync(): void;
  on(event: 'parseComplete', listener: () => void): void;
  removeListener(event: 'parseComplete', listener: () => void): void;
}

/** The names of the statements that a connection has prepared. */
const prepared = new WeakMap<object, Set<string>>();

/**
 * Sends statements in one round trip, and resolves with the answer of each. The first that fails stops the others; without
 * a `BEGIN` among them, all of them are one transaction.
 * @throws Stopped
 */
export async function sendAll(client: Client, statements: readonly Statement[]): Promise<readonly Answer[]> {
  return await new Promise((resolve, reject: (stopped: Stopped) => void) => {
    client.query(new Pipeline(statements, resolve, reject) as unknown as { submit(c: Connection): void });
  });
}

/**
 * A query of `pg` that is many: as a cursor is, it is called with each message that the server answers. `pg` itself
 * sends one statement and waits for its answer.
 */
class Pipeline {
  readonly #statements: readonly Statement[];
  readonly #resolve: (answers: readonly Answer[]) => void;
  readonly #reject: (stopped: Stopped) => void;
  readonly #answers: Answer[] = [];
  #fields: readonly Field[] = [];
  #rows: unknown[] = [];
  #texts: (readonly (string | null)[])[] = [];
  #done: () => void = () => {};

  constructor(
    statements: readonly Statement[],
    resolve: (answers: readonly Answer[]) => void,
    reject: (stopped: Stopped) => void,
  ) {
    this.#statements = statements;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    const known = prepared.get(wire) ?? new Set<string>();
    prepared.set(wire, known);
    const parsing: string[] = [];
    const onParsed = () => known.add(parsing.shift() ?? '');
    wire.on('parseComplete', onParsed);
    this.#done = () => wire.removeListener('parseComplete', onParsed);
    wire.stream.cork?.();
    for (const { name, text, types, values } of this.#statements) {
      if (!known.has(name) && !parsing.includes(name)) {
        wire.parse({ name, text, types });
        parsing.push(name);
      }
      wire.bind({ portal: '', statement: name, values, binary: false, valueMapper: (value) => value });
      wire.describe({ type: 'P', name: '' });
      wire.execute({ portal: '', rows: 0 });
    }
    wire.sync();
    wire.stream.uncork?.();
  }

  handleRowDescription({ fields }: Messages['rowDescription']): void {
    this.#fields = fields;
  }

  handleDataRow({ fields }: Messages['dataRow']): void {
    const row: Record<string, unknown> = {};
    for (const [i, { name, dataTypeID }] of this.#fields.entries())
      row[name] = fromText(fields[i] ?? null, dataTypeID);
    this.#rows.push(row);
    this.#texts.push(fields);
  }

  handleCommandComplete({ text }: Messages['commandComplete']): void {
    const texts = this.#texts;
    this.#answers.push({
      digest: (without = 0) => texts.map((fields) => md5(rowText(fields.slice(without)))).join(''),
      rows: this.#rows,
      count: Number(/\d+$/.exec(text)?.[0] ?? 0),
      columns: Object.fromEntries(this.#fields.map(({ name, dataTypeID }) => [name, dataTypeID])),
    });
    this.#rows = [];
    this.#texts = [];
    this.#fields = [];
  }

  handleError(error: Error): void {
    this.#done();
    this.#reject({ error, index: this.#answers.length, answers: this.#answers });
  }

  handleReadyForQuery(): void {
    this.#done();
    this.#resolve(this.#answers);
  }

  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}

/** The digest of the rows that a query on the server finds, as a part of a statement. */
export function digestOf(query: string): string {
  return `(SELECT coalesce(string_agg(md5(found::text), ''), '') FROM (${query}) found)`;
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}

/** A row as the server writes it as one text. */
function rowText(fields: readonly (string | null)[]): string {
  return `(${fields.map((field) => (field === null ? '' : quotedField(field))).join(',')})`;
}

function quotedField(field: string): string {
  return field === '' || /["\\(), \t\n\v\f\r]/.test(field)
    ? `"${field.replaceAll(/["\\]/g, '$&$&')}"`
    : field;
}

const numbers: ReadonlySet<number> = new Set([20, 21, 23, 26, 700, 701, 1700]);
const bool = 16;
const bytea = 17;

/** A value as SQLite would return it: every number as one, a truth value as 1 or 0. */
function fromText(text: string | null, type: number): unknown {
  if (text === null) return null;
  if (numbers.has(type)) return Number(text);
  if (type === bool) return text === 't' ? 1 : 0;
  // `\x` and hexadecimal digits.
  if (type === bytea) return Buffer.from(text.slice(2), 'hex');
  return text;
}
