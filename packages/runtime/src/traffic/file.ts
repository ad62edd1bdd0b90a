import { constants, existsSync, readdirSync } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** The directory of raw traffic in a home, and the files of a session in one of its own there: the one before is kept. */
const [folder, currentFile, earlierFile] = ['logs', 'raw.jsonl', 'raw.1.jsonl'] as const;

/** The most bytes of a file. With the next line it becomes the earlier one, and takes the place of the one before. */
const fileMax = 64 * 1024 * 1024;

/** Characters that are written at once. */
const chunkChars = 256 * 1024;

/**
 * Appends lines to the file of a session. It is for its owner alone, and neither it nor a directory on its way is a link.
 * @throws errors of the system
 */
export async function appendLines(home: string, session: string, lines: Iterable<string>): Promise<void> {
  let dir = home;
  for (const name of [folder, session]) {
    dir = join(dir, name);
    await ownDirectory(dir);
  }
  let text = '';
  for (const line of lines) {
    text += `${line}\n`;
    if (text.length < chunkChars) continue;
    await append(dir, text);
    text = '';
  }
  if (text !== '') await append(dir, text);
}

/** The files of a home, each with the ULID of its session. */
export function trafficFiles(home: string): readonly { readonly session: string; readonly file: string }[] {
  const dir = join(home, folder);
  const sessions = existsSync(dir) ? readdirSync(dir) : [];
  return sessions.flatMap((session) =>
    [currentFile, earlierFile]
      .map((name) => ({ session, file: join(dir, session, name) }))
      .filter(({ file }) => existsSync(file)),
  );
}

async function ownDirectory(dir: string): Promise<void> {
  // The umask may have removed bits from the mode.
  if ((await mkdir(dir, { recursive: true, mode: 0o700 })) !== undefined) await chmod(dir, 0o700);
  if (!(await lstat(dir)).isDirectory()) throw new Error(`'${dir}' is no directory`);
}

async function append(dir: string, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const path = join(dir, currentFile);
  await using file = await opened(path);
  const { size, ino, dev } = await file.stat();
  if (size > 0 && size + bytes.length > fileMax) {
    // Another process may have moved it meanwhile.
    const there = await lstat(path);
    if (there.ino === ino && there.dev === dev) await rename(path, join(dir, earlierFile));
    await using next = await opened(path);
    await next.appendFile(bytes);
    return;
  }
  const isTorn = size > 0 && !(await endsLine(file, size));
  await file.appendFile(isTorn ? Buffer.concat([Buffer.from('\n'), bytes]) : bytes);
}

/** Opens the file. What has its place and is no file of this user alone is refused, and nothing waits for it. */
async function opened(path: string): Promise<FileHandle> {
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1) throw new Error(`'${path}' is no file with one name`);
    if ((found.mode & 0o777) !== 0o600) await file.chmod(0o600);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Whether the file ends with a whole line: a process that was killed, or a full disk, can have left a part of one. */
async function endsLine(file: FileHandle, size: number): Promise<boolean> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 0 || buffer[0] === 0x0a;
}
