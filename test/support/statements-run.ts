import Database from 'better-sqlite3';
import { vi } from 'vitest';

/** What all statements of SQLite do. */
const statements: Database.Statement = Object.getPrototypeOf(new Database(':memory:').prepare('SELECT 1'));

/** How often an act runs a statement that changes something and has a text in it, though it is prepared once. */
export async function timesRun(text: string, act: () => unknown): Promise<number> {
  const run = vi.spyOn(statements, 'run');
  try {
    await act();
    return run.mock.contexts.filter((one) => (one as Database.Statement).source.includes(text)).length;
  } finally {
    run.mockRestore();
  }
}
