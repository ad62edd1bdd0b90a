import type { Adopted, AdoptProgress } from '../bundle/adopt.ts';
import type { BundleScope } from '../bundle/bundle.ts';
import { type BundlePart, hasPoint, headsOf, type SessionHead } from '../bundle/part.ts';
import type { BundleSource } from '../bundle/unpack.ts';
import { withholdingOf } from '../bundle/withhold.ts';
import { type BundleWritten, writeBundle, writePart } from '../bundle/write.ts';
import type { Seq } from '../entry/entry.ts';
import { TapeError } from '../errors.ts';
import type { OnProgress } from '../progress.ts';
import type { Redact } from '../secrets/redactor.ts';
import { type Secret, secretsIn } from '../secrets/secrets.ts';
import type { Ref } from '../tape/tape.ts';
import type { Connection } from './connection.ts';
import { assertOptions } from './options.ts';

/** What of a session travels. */
export interface BundleOptions {
  /**
   * `session` (default): the session, and of its ancestors what it reads. `lineage`: the session and all of its ancestors.
   * `tree`: also all of its descendants.
   */
  readonly scope?: BundleScope;
  /** Of parts: whether the other side has the line of this event. Default: it has none. */
  readonly knows?: (event: string) => boolean;
  /** Also the content in which a secret is found. */
  readonly raw?: boolean;
  /** Known secrets. Default: those of the environment, as for `StoreOptions.secrets`. */
  readonly secrets?: readonly Secret[];
  /** Further forms of secrets, as for `StoreOptions.redact`; those that are built in are always looked for. */
  readonly redact?: Redact;
  /** Called some times while entries are written. */
  readonly onProgress?: OnProgress;
}

/** How to take a bundle in. */
export interface AdoptOptions {
  /**
   * Name for the exported session, where its own is taken. A session that went on in another way here is then taken
   * alongside, as a copy with an id of its own.
   */
  readonly as?: string;
  /**
   * Leaves out sessions that cannot be taken, with those that need them, and takes the others. Default: one that cannot
   * be taken refuses the whole bundle.
   */
  readonly leaveOut?: boolean;
  /** Called some times: while the bundle is read, while its entries are added, and while these are verified. */
  readonly onProgress?: (progress: AdoptProgress) => void;
}

/**
 * Bundles of sessions, `store.bundles`: files of JSON lines (`docs/bundle.md`), which another home takes in with the ids
 * and hashes that the sessions have.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using here = openTapeStore(':memory:');
 * here.sessions.open('main');
 * here.entries.append('main', [user('Plan the release.')]);
 *
 * using there = openTapeStore(':memory:');
 * const chunks = [...here.bundles.write('main')].map((line) => Buffer.from(line));
 * const { session, entries } = await there.bundles.adopt({ name: 'main.tape', chunks });
 * console.log(session, entries); // main 2
 * console.log(there.sessions.find('main')?.headHash === here.sessions.find('main')?.headHash); // true
 * ```
 */
export interface Bundles {
  /**
   * Writes a bundle as lines, each with its LF; the generator returns what was written. Of a session, or of sessions of
   * which another side has something, without that: a part, which a home takes in that has it.
   * @throws TAPE_NO_SESSION; TAPE_NO_SEQ for a position that a session does not have
   */
  write(what: Ref | readonly BundlePart[], o?: BundleOptions): Generator<string, BundleWritten>;
  /**
   * Writes a bundle to a new file, compressed where its name ends with `.zst` or `.gz`. Nothing has that name before it
   * is complete.
   * @throws TAPE_NO_SESSION, TAPE_EXISTS, TAPE_CANNOT_OPEN, TAPE_IO
   */
  save(what: Ref | readonly BundlePart[], file: string, o?: BundleOptions): Promise<BundleWritten>;
  /**
   * Takes a bundle in: a file, also a compressed one (gzip or zstd), or its bytes. It is read as a whole first, then
   * everything that is not here is added in one transaction, and verified there before its commit. Taking it in again adds
   * nothing; one that has grown adds what is new.
   * @throws TAPE_BAD_BUNDLE, with `file` and `line` in `data`; TAPE_DIVERGED for a session that went on in another way here;
   *   TAPE_EXISTS for a name that another session has; TAPE_BUSY for one that is written here; TAPE_MISSING_BASE for a
   *   part of a session whose beginning is not here
   */
  adopt(source: BundleSource, o?: AdoptOptions): Promise<Adopted>;
  /**
   * Sessions with their heads and events, parents first: what another side compares. All of the realm, or some with all of
   * their ancestors.
   * @throws TAPE_NO_SESSION
   */
  heads(refs?: readonly Ref[]): readonly SessionHead[];
  /** Whether an entry of a session itself, or what its first one follows, has this hash. */
  has(point: { readonly session: Ref; readonly seq: Seq; readonly hash: string }): boolean;
}

/** Makes `store.bundles`. What reads and compresses files is loaded with the first bundle: every process would pay for it. */
export function bundlesOn(at: Connection): Bundles {
  const { db, realm, writer } = at;
  const write = (
    what: Ref | readonly BundlePart[],
    o: BundleOptions = {},
  ): Generator<string, BundleWritten> => {
    const isPart = typeof what === 'object';
    assertOptions(
      o,
      {
        ...{ raw: 'flag', secrets: true, redact: true, onProgress: true },
        ...(isPart ? { knows: true } : { scope: ['session', 'lineage', 'tree'] }),
      },
      'export',
      isPart ? 'parts of sessions' : at.named(what),
    );
    const { scope = 'session', raw = false, secrets = secretsIn(process.env), redact = 'all' } = o;
    const { knows = () => false, onProgress } = o;
    const how = { withholding: raw ? undefined : withholdingOf(secrets, redact), onProgress };
    return isPart
      ? writePart(db, what, { ...how, knows, need: (ref) => at.need(ref) })
      : writeBundle(db, at.need(what), { ...how, scope });
  };
  return {
    write,

    async save(
      what: Ref | readonly BundlePart[],
      file: string,
      o: BundleOptions = {},
    ): Promise<BundleWritten> {
      const lines = write(what, o);
      const { saveBundle } = await import('../bundle/pack.ts');
      return await saveBundle(file, lines);
    },

    async adopt(source: BundleSource, o: AdoptOptions = {}): Promise<Adopted> {
      const name = typeof source === 'string' ? source : source.name;
      assertOptions(o, { as: 'text', leaveOut: 'flag', onProgress: true }, 'import', name);
      if (at.readonly)
        throw new TapeError('TAPE_IO', `cannot import '${name}': the store is open for reading`);
      const [{ quarantine }, { scanBundle }, { adoptBundle }] = await Promise.all([
        import('../bundle/unpack.ts'),
        import('../bundle/scan.ts'),
        import('../bundle/adopt.ts'),
      ]);
      const file = await quarantine(source, db.file);
      try {
        const report =
          (of: AdoptProgress['of']): OnProgress =>
          (now) =>
            o.onProgress?.({ ...now, of });
        const scanned = await scanBundle(file, report('bytes'));
        const { as, leaveOut = false } = o;
        if (as !== undefined && scanned.header.session === undefined)
          throw new TapeError(
            'TAPE_BAD_OPTION',
            `cannot import '${name}' as '${as}': it is a part of several sessions`,
            {
              data: { field: 'as' },
            },
          );
        const adopted = db.writeThrough(() => adoptBundle(writer, scanned, { realm, as, leaveOut, report }));
        at.drainOutbox();
        return adopted;
      } finally {
        file.close();
      }
    },

    heads(refs) {
      const heads = headsOf(db, realm);
      if (refs === undefined) return heads;
      const ids = new Set(refs.map((ref) => at.need(ref).ulid));
      for (const { id, parent } of heads.toReversed()) if (parent !== null && ids.has(id)) ids.add(parent);
      return heads.filter(({ id }) => ids.has(id));
    },

    has: (point) => hasPoint(db, realm, point),
  };
}
