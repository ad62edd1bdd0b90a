import { constants, existsSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { realPath, UnknownPath } from '../permissions/real-path.ts';
import type { FilePlace } from '../tools/file-place.ts';
import { BuiltinError } from './errors.ts';

/** Where Linux has the descriptors of this process as paths: `/proc/self/fd/7/name` is a name in an open directory. */
const descriptors = '/proc/self/fd';

let hasDescriptors: boolean | undefined;

/**
 * A directory that is held open. On Linux its names are reached through its descriptor, so that no other directory
 * and no link can take its place between a check and an act. Elsewhere they are reached by its path, which `real`
 * compares with what is open.
 */
export class HeldDirectory implements AsyncDisposable {
  readonly #path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  /** Opens a directory that is no link. */
  static async open(path: string): Promise<HeldDirectory> {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    return new HeldDirectory(path, await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  /** The path of a name in the directory. */
  at(name: string): string {
    return `${this.#base}/${name}`;
  }

  /** The path of the directory itself. */
  get path(): string {
    return `${this.#base}/.`;
  }

  /** Its real path now. @throws TOOL_FILE_CHANGED when another one has its place, or it was removed */
  async real(act: string): Promise<string> {
    if (isLinux()) {
      const path = await readlink(`${descriptors}/${this.#handle.fd}`);
      // The system says so of a directory that was removed.
      if (!path.endsWith(' (deleted)') || (await isHere(path, this.#handle))) return path;
    } else if (await isHere(this.#path, this.#handle)) return await realpath(this.#path);
    throw new BuiltinError('TOOL_FILE_CHANGED', `cannot ${act}: its directory was replaced meanwhile`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  get #base(): string {
    return isLinux() ? `${descriptors}/${this.#handle.fd}` : this.#path;
  }
}

function isLinux(): boolean {
  hasDescriptors ??= existsSync(descriptors);
  return hasDescriptors;
}

async function isHere(path: string, handle: FileHandle): Promise<boolean> {
  const [here, opened] = await Promise.all([stat(path).catch(() => undefined), handle.stat()]);
  return here?.dev === opened.dev && here.ino === opened.ino;
}

/** A name in a directory that is held open. */
export interface HeldName extends AsyncDisposable {
  readonly directory: HeldDirectory;
  readonly name: string;
  /** Decides again whether the call may reach it, where its directory is now. @throws TOOL_NOT_ALLOWED */
  check(): Promise<void>;
}

/** What a call does to a path. */
export interface PathAct {
  readonly path: string;
  readonly kind: 'read' | 'write';
  /** As errors name it: `read 'a.txt'`. */
  readonly act: string;
}

/**
 * Finds the real path of what a call names, opens its directory, and decides again where that is.
 * @param options `make`: makes the directories that do not exist
 * @throws TOOL_NO_FILE, TOOL_NOT_ALLOWED, TOOL_FILE_CHANGED
 */
export async function holdName(
  place: FilePlace,
  what: PathAct,
  { make = false }: { readonly make?: boolean } = {},
): Promise<HeldName> {
  const real = realOf(place, what);
  const name = basename(real);
  const directory = make
    ? await madeDirectory(dirname(real), place, what)
    : await HeldDirectory.open(dirname(real));
  const check = async () => assertReach(place, what, join(await directory.real(what.act), name));
  try {
    await check();
  } catch (error) {
    await directory[Symbol.asyncDispose]();
    throw error;
  }
  return {
    directory,
    name,
    check,
    [Symbol.asyncDispose]: async () => await directory[Symbol.asyncDispose](),
  };
}

/** The same for a directory as a whole. */
export async function holdDirectory(place: FilePlace, what: PathAct): Promise<HeldDirectory> {
  const directory = await HeldDirectory.open(realOf(place, what));
  try {
    assertReach(place, what, await directory.real(what.act));
    return directory;
  } catch (error) {
    await directory[Symbol.asyncDispose]();
    throw error;
  }
}

/** The real path of what a call names. */
export function realOf({ directory }: FilePlace, { path, act }: PathAct): string {
  const isRelative = !path.startsWith('/');
  if (isRelative && directory === undefined)
    throw new BuiltinError('TOOL_NO_FILE', `cannot ${act}: the working directory was deleted`);
  try {
    return realPath(isRelative ? `${directory}/${path}` : path);
  } catch (error) {
    if (!(error instanceof UnknownPath)) throw error;
    throw new BuiltinError('TOOL_FILE_FAILED', `cannot ${act}: ${error.message}`, { cause: error });
  }
}

/** @throws TOOL_NOT_ALLOWED */
export function assertReach(
  { mayReach }: FilePlace,
  { kind, act }: Omit<PathAct, 'path'>,
  real: string,
): void {
  if (mayReach === undefined || mayReach(kind, real)) return;
  throw new BuiltinError(
    'TOOL_NOT_ALLOWED',
    `cannot ${act}: it leads where the rules do not allow a ${kind}`,
  );
}

/** Opens a directory, and makes those above it that are missing, each in the one that is held open. */
async function madeDirectory(path: string, place: FilePlace, what: PathAct): Promise<HeldDirectory> {
  const missing: string[] = [];
  let at = path;
  while (at !== '/' && (await lstat(at).catch(() => undefined)) === undefined) {
    missing.unshift(basename(at));
    at = dirname(at);
  }
  let held = await HeldDirectory.open(at);
  for (const name of missing) {
    const above = held;
    try {
      assertReach(place, what, join(await above.real(what.act), name));
      await mkdir(above.at(name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      held = await HeldDirectory.open(above.at(name));
    } finally {
      await above[Symbol.asyncDispose]();
    }
  }
  return held;
}
