import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { scanBundle } from '../bundle/scan.ts';
import { type BundleSource, quarantine } from '../bundle/unpack.ts';
import { TapeError } from '../errors.ts';
import type { Known, KnownPack } from './known.ts';
import { type Pack, type Packs, remoteError } from './packs.ts';

/**
 * The packs of a remote, compared with those that were seen there.
 * @throws TAPE_BAD_REMOTE when one of them is gone, or has another size: the place is not what it was
 */
export async function listPacks(packs: Packs, known: Known, act: string): Promise<readonly Pack[]> {
  const listed = await packs.list();
  const byName = new Map(listed.map((pack) => [pack.name, pack]));
  for (const { name, bytes } of known.packs) {
    const found = byName.get(name);
    if (found?.bytes === bytes) continue;
    const why = found === undefined ? 'is gone' : `has ${found.bytes} bytes, and had ${bytes}`;
    throw remoteError(
      'TAPE_BAD_REMOTE',
      { act, url: packs.url, why: `'${name}', which was there before, ${why}` },
      { pack: name },
    );
  }
  return listed;
}

/** A copy of a pack on this machine. */
export interface Copied {
  readonly source: () => BundleSource;
  readonly known: Omit<KnownPack, 'taken'>;
}

/**
 * Copies a pack, and looks at what is in it.
 * @throws TAPE_BAD_BUNDLE; TAPE_BAD_REMOTE when it was seen with another content
 */
export async function copyPack(
  packs: Packs,
  known: Known,
  { pack, into }: { readonly pack: Pack; readonly into: string },
): Promise<Copied> {
  await packs.read(pack, into);
  const looked = await lookInto(into, { ...pack, called: `${packs.url}/${pack.name}` });
  const before = known.get(pack.name)?.sha256;
  if (before !== undefined && before !== looked.known.sha256)
    throw remoteError(
      'TAPE_BAD_REMOTE',
      { act: 'read', url: packs.url, why: `'${pack.name}' was changed since it was read` },
      { pack: pack.name },
    );
  return looked;
}

/** Reads a pack on this machine once as a whole. */
export async function lookInto(
  file: string,
  { called, number, name, bytes }: Pack & { readonly called: string },
): Promise<Copied> {
  const source = () => ({ name: called, chunks: createReadStream(file) as AsyncIterable<Uint8Array> });
  const sum = createHash('sha256');
  for await (const chunk of createReadStream(file)) sum.update(chunk as Buffer);
  const unpacked = await quarantine(source(), file);
  try {
    const { tapes, lines } = await scanBundle(unpacked, () => {});
    const sessions = tapes.map(({ tape, start }) => ({
      ...{ id: tape.ulid, session: tape.name, entries: tape.head - start.after },
      ...{ head: tape.head, hash: tape.head_hash },
    }));
    const events = lines.map(({ line }) => line.event_id);
    return { source, known: { name, number, bytes, sha256: sum.digest('hex'), sessions, events } };
  } finally {
    unpacked.close();
  }
}

const scratchName = /^work-[0-9a-f]{12}$/;
const scratchMs = 24 * 3_600_000;

/** A directory for what a push or a pull works on, which it removes at its end; the next one removes those of killed ones. */
export class Scratch implements Disposable {
  readonly #dir: string;
  #files = 0;

  constructor(state: string) {
    this.#dir = join(state, `work-${randomBytes(6).toString('hex')}`);
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw new TapeError('TAPE_IO', `cannot write in '${state}': ${(cause as Error).message}`, { cause });
    }
    for (const name of readdirSync(state).filter((name) => scratchName.test(name))) {
      const found = statSync(join(state, name), { throwIfNoEntry: false });
      if (found !== undefined && Date.now() - found.mtimeMs > scratchMs) remove(join(state, name));
    }
  }

  /** The path of a new file. */
  file(): string {
    this.#files += 1;
    return join(this.#dir, `${this.#files}.bundle.zst`);
  }

  [Symbol.dispose](): void {
    remove(this.#dir);
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The next one tries again.
  }
}
