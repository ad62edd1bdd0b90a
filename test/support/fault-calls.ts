import fs, { type PathLike } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import Database from 'better-sqlite3';

/** Which call of a workload in a directory goes wrong, and how, or where all of them are noted. */
export interface Fault {
  readonly dir: string;
  /** `12:EIO`: the twelfth call. */
  readonly point?: string;
  readonly log?: string;
}

let [ordinal, kind]: readonly string[] = [];
let log: string | undefined;
let dir = '';

const { appendFileSync, existsSync, writeSync } = fs;
const names = new Map<number, string>();
let counting = false;
let count = 0;
/** A disk that took half of a write takes nothing after it. */
let full = false;

/**
 * Faults without ptrace: from now on a call that the store makes in a directory goes wrong. Calls are counted from the
 * moment at which the workload looks for its marker.
 */
export function injectFault(fault: Fault): void {
  ({ dir, log } = { log: undefined, ...fault });
  [ordinal, kind] = fault.point?.split(':') ?? [];
  [counting, count, full] = [false, 0, false];
}

/** The fault of this call, if it is the one. */
function faultAt(call: string): string | undefined {
  if (!counting) return undefined;
  count += 1;
  if (log !== undefined) appendFileSync(log, `${JSON.stringify(call)}\n`);
  if (ordinal === undefined || count !== Number(ordinal)) return undefined;
  if (kind === 'SIGKILL') process.kill(process.pid, 'SIGKILL');
  return kind;
}

function systemError(code: string, syscall: string): Error {
  return Object.assign(new Error(`${code}: injected, ${syscall}`), { code, syscall });
}

type Act = (...args: never[]) => unknown;

/** Puts something in the way of a method; it is not there for what does not concern a home. */
function wrap(
  owner: object,
  name: string,
  before: (self: unknown, args: readonly unknown[]) => unknown,
): void {
  const act = (owner as Record<string, Act>)[name];
  if (act === undefined) throw new Error(`there is no ${name} to put a fault in`);
  Object.defineProperty(owner, name, {
    configurable: true,
    writable: true,
    value: function (this: unknown, ...args: never[]) {
      const instead = before(this, args);
      return instead === undefined ? act.apply(this, args) : instead;
    },
  });
}

for (const name of ['openSync', 'mkdirSync', 'chmodSync', 'linkSync', 'rmSync', 'renameSync'])
  wrap(fs, name, (_, [path]) => {
    if (typeof path !== 'string' || !path.startsWith(dir)) return;
    const fault = faultAt(`${name} ${path}`);
    if (fault !== undefined) throw systemError(fault, name);
  });
const { openSync } = fs;
fs.openSync = (path: PathLike, ...rest) => {
  const fd = openSync(path, ...rest);
  names.set(fd, String(path));
  return fd;
};
for (const name of ['fsyncSync', 'fdatasyncSync', 'fchmodSync'])
  wrap(fs, name, (_, [fd]) => {
    const fault = faultAt(`${name} ${names.get(Number(fd))}`);
    if (fault !== undefined) throw systemError(fault, name);
  });
wrap(fs, 'writeSync', (_, [fd, bytes, offset, length]) => {
  if (fd === 1) return;
  if (full) throw systemError('ENOSPC', 'write');
  const fault = faultAt(`writeSync ${names.get(Number(fd))}`);
  if (fault === undefined) return;
  if (fault !== 'SHORT' && fault !== 'TORN') throw systemError(fault, 'write');
  const half = writeSync(
    Number(fd),
    bytes as Uint8Array,
    Number(offset),
    Math.floor(Number(length) / 2),
    null,
  );
  if (fault === 'TORN') process.kill(process.pid, 'SIGKILL');
  full = true;
  return half;
});
fs.existsSync = (path: PathLike) => {
  if (String(path).endsWith('/marker')) counting = true;
  return existsSync(path);
};
syncBuiltinESMExports();

const some = new Database(':memory:');
const statements: object = Object.getPrototypeOf(some.prepare('SELECT 1'));
for (const name of ['run', 'get', 'all'])
  wrap(statements, name, (self) => sqlFault(name, (self as Database.Statement).source));
for (const name of ['exec', 'pragma', 'backup'])
  wrap(Database.prototype, name, (_, [text]) => sqlFault(name, String(text)));
some.close();

function sqlFault(name: string, text: string): void {
  const fault = faultAt(`${name} ${text}`);
  if (fault === 'EIO') throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_WRITE');
  if (fault !== undefined) throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
}
