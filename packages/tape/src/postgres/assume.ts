import { type Answer, digestOf, idOf, type Statement } from './pipeline.ts';

/** An answer that an act has left to the next one. */
export interface LeftAnswer {
  readonly question: Statement;
  readonly answer: Answer;
}

/** By question. */
export type Left = ReadonlyMap<string, LeftAnswer>;

/** The most answers that an act leaves: each costs the server a look-up. */
const leftMax = 8;
/** The most answers that are known of a session. */
const knownMax = 16;
const sessionsMax = 2_000;

/**
 * What acts have left of the sessions whose leases this process has: no other process writes the tape of one, so that the next
 * act mostly finds it. It acts on these answers, and the server compares them before the commit.
 */
export class Leftovers {
  readonly #bySession = new Map<string, Left>();

  of(session: string | undefined): Left | undefined {
    return session === undefined ? undefined : this.#bySession.get(session);
  }

  /** Keeps what an act has left that wrote. */
  keep(session: string, left: Left): void {
    this.#bySession.delete(session);
    if (left.size > 0) this.#bySession.set(session, left);
    const [oldest] = this.#bySession.keys();
    if (this.#bySession.size > sessionsMax && oldest !== undefined) this.#bySession.delete(oldest);
  }

  /** Adds what an act has read of a session whose lease this process has. */
  add(session: string, read: readonly LeftAnswer[]): void {
    const before = this.#bySession.get(session);
    if (before === undefined) return;
    const rows = read.filter(({ answer }) => answer.rows.length === 1);
    const all = new Map([...before, ...rows.map((one) => [idOf(one.question), one] as const)]);
    this.#bySession.set(session, new Map([...all].slice(-knownMax)));
  }

  forget(session: string | undefined): void {
    if (session !== undefined) this.#bySession.delete(session);
  }
}

/** An answer without rows. */
export const nothing: Answer = { rows: [], count: 0, columns: {}, digest: () => '' };

/** The statement that stops a transaction in which a question has another answer than the assumed one. */
export function toCheck({ text, name, types, values }: Statement, assumed: Answer): Statement {
  return {
    text: `SELECT must_be(${digestOf(text)}, $${values.length + 1})`,
    base: `${name}c`,
    name: `${name}c`,
    types: [...types, 25],
    values: [...values, assumed.digest()],
  };
}

/** The questions that an act asks again before its commit: those that it has asked, and those that were left to it. */
export function questionsToKeep(asked: readonly Statement[]): readonly Statement[] {
  const kept = new Map<string, Statement>();
  for (const statement of asked) if (kept.size < leftMax) kept.set(idOf(statement), statement);
  return [...kept.values()];
}
