import { type Process, startProcess } from './process.ts';

/** Holds a database's write lock for so many milliseconds, as a process does that is stopped inside a transaction. */
const script = `
  import Database from 'better-sqlite3';
  const [file, ms] = process.argv.slice(1);
  const db = new Database(file);
  db.exec('BEGIN IMMEDIATE');
  console.log('locked');
  setTimeout(() => { db.exec('ROLLBACK'); db.close(); }, Number(ms));
`;

/** Starts such a process, and waits until it has the lock. */
export async function holdLock(file: string, ms: number): Promise<Process> {
  const process = startProcess(script, file, String(ms));
  await process.said('locked');
  return process;
}
