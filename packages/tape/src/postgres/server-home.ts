import type { Problem } from '../check/problem.ts';
import type { Connection } from '../store/connection.ts';
import { HomeStore } from '../store/home.ts';
import { mendTriggers, triggerProblems } from './triggers.ts';

/** A home on a server, for a program that waits for each answer. */
export class ServerHome extends HomeStore {
  readonly #at: Connection;

  constructor(at: Connection) {
    super(at);
    this.#at = at;
  }

  override *verifyDatabase(): Iterable<Problem> {
    yield* super.verifyDatabase();
    yield* triggerProblems(this.#at.db);
  }

  /** Repairs what `HomeStore.mend` does, and triggers. */
  override mend(found: Parameters<HomeStore['mend']>[0]): boolean {
    if (found.code !== 'trigger-wrong') return super.mend(found);
    const { db } = this.#at;
    mendTriggers(db);
    return ![...triggerProblems(db)].some(({ message }) => message === found.message);
  }
}
