import fs, { type PathLike } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import Database from 'better-sqlite3';

/**
 * Faults without ptrace: loaded by `node --import` before a `fault-worker.ts`, it makes a call that the store makes go
 * wrong. Calls are counted from the moment at which the worker looks for its marker. `FAULT_POINT=12:EIO` says which
 * and how; without it, each call is noted in the file `FAULT_LOG`.
 */
const [ordinal = '', kind = ''] = (process.env.FAULT_POINT ?? '').split(':');
const log = process.env.FAULT_LOG;
const dir = process.argv[2] ?? '';

const { appendFileSync, existsSync, writeSync } = fs;
const names = new Map<number, string>();
let counting = false;
let count = 0;
/** A disk that took half of a write takes nothing after it. */
let full = false;

/** The fault of this call, if it is the one. */
function faultAt(call: string): string | undefined {
  if (!counting) return undefined;
  count += 1;
  if (log !== undefined) appendFileSync(log, `${JSON.stringify(call)}\n`);
  if (count !== Number(ordinal)) return undefined;
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
