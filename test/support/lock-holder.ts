import { type Process, startProcess } from './process.ts';

/** Keeps a database's write lock for this many milliseconds, as a process stopped inside a transaction does. */
const script = `
  import Database from 'better-sqlite3';
  const [file, ms] = process.argv.slice(1);
  const db = new Database(file);
  db.exec('BEGIN IMMEDIATE');
  console.log('locked');
  setTimeout(() => { db.exec('ROLLBACK'); db.close(); }, Number(ms));
`;

/** Starts that process, and waits until it has the lock. */
export async function holdLock(file: string, ms: number): Promise<Process> {
  const process = startProcess(script, file, String(ms));
  await process.prints('locked');
  return process;
}
