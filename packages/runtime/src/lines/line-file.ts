import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { kindOf } from './open.ts';

/** About how many bytes become a text at once: V8 gives a longer one pages of memory of its own, which costs more. */
const pieceBytes = 64 * 1024;

/** The lines of a file of a home, among them empty ones; none where there is no file. */
export function linesIn(file: string): readonly string[] {
  const bytes = bytesIn(file);
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\n', at + pieceBytes);
    const next = end === -1 ? bytes.length : end;
    for (const line of bytes.toString('utf8', at, next).split('\n')) lines.push(line);
    at = next + 1;
  }
  return lines;
}

function bytesIn(file: string): Buffer {
  try {
    const stat = statSync(file);
    // A pipe would be read without an end.
    if (!stat.isFile()) throw new Error(`it is ${kindOf(stat)}`);
    return readFileSync(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw cause;
  }
}

/** Appends lines in one write, behind a line that a killed process left without its newline. Follows no link. */
export function appendLines(file: string, lines: readonly string[]): void {
  const text = textFrom(lines);
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW = 0 } = constants;
  const fd = openSync(file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    const { size } = fstatSync(fd);
    const last = Buffer.alloc(1);
    const isTorn = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
    writeWhole(fd, Buffer.from(isTorn ? `\n${text}` : text));
  } finally {
    closeSync(fd);
  }
}

/** Puts a file with these lines in the place of one. */
export function replaceLines(file: string, lines: readonly string[]): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`;
  try {
    writeFileSync(draft, textFrom(lines), { mode: 0o600, flag: 'wx' });
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

function textFrom(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** A full disk may take a part of a write without an error. */
function writeWhole(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
