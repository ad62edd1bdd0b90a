import { oneOfEach, spread } from './fault-sweep.ts';
import { sized } from './size.ts';
import type { Call, Injection } from './strace.ts';

const writes = [
  ...['write', 'pwrite64', 'ftruncate', 'fallocate', 'fsync', 'fdatasync', 'open', 'openat'],
  ...['mkdir', 'mkdirat', 'rmdir', 'link', 'linkat', 'unlink', 'unlinkat', 'rename', 'renameat', 'renameat2'],
  ...['chmod', 'fchmod', 'copy_file_range', 'sendfile'],
];
const reads = ['read', 'pread64'];
/** The calls that a full disk can stop. */
const grows = [
  ...['write', 'pwrite64', 'ftruncate', 'fallocate', 'openat', 'mkdir', 'mkdirat', 'link', 'linkat'],
  ...['copy_file_range', 'sendfile'],
];

/** The calls to trace. */
export const followed: readonly string[] = [...writes, ...reads, 'access', 'faccessat', 'faccessat2'];

/** The fault of one call on a file. */
export interface Point extends Injection {
  readonly file: string;
}

/** Each fault of each call. */
export function pointsOf(calls: readonly Call[]): Point[] {
  return calls
    .filter(({ syscall }) => writes.includes(syscall) || reads.includes(syscall))
    .flatMap(({ syscall, ordinal, text }) =>
      kindsFor(syscall).map((kind) => ({ syscall, ordinal, kind, file: fileOf(text) })),
    );
}

/** At most this many of one death and one failure of each call on each file; in a soak all. */
export function chosen(
  all: readonly Point[],
  { push, full }: { push: number; full: number },
): readonly Point[] {
  const share = (most: number) => spread(oneOfEach(all, classOf), most);
  return sized(share(push), share(full), all);
}

function classOf({ syscall, file, kind }: Point): string {
  return `${syscall} ${file} ${kind === 'SIGKILL'}`;
}

/** The last part of the path that a call names, or that its descriptor has. */
function fileOf(text: string): string {
  const path = /"(\/[^"]+)"/.exec(text)?.[1] ?? /^\w+\(\d+<([^>]+)>/.exec(text)?.[1] ?? '';
  return path.slice(path.lastIndexOf('/') + 1);
}

function kindsFor(syscall: string): readonly Injection['kind'][] {
  if (reads.includes(syscall)) return ['EIO'];
  return grows.includes(syscall) ? ['SIGKILL', 'EIO', 'ENOSPC'] : ['SIGKILL', 'EIO'];
}

/** The call that met the fault, as strace prints it. */
export function hitOf(calls: readonly Call[], { syscall, ordinal }: Injection): string {
  return calls.find((call) => call.syscall === syscall && call.ordinal === ordinal)?.text ?? '';
}

/** A database file, with the files that SQLite has beside it. */
export function withLogs(path: string): string[] {
  return ['', '-wal', '-shm', '-journal'].map((end) => path + end);
}

/** The draft of a file, where its name is fixed. */
export function draftOf(path: string): string {
  return `${path}.000000000000.part`;
}
