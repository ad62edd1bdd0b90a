import type { Adopted, AdoptProgress } from '../bundle/adopt.ts';
import type { BundleScope } from '../bundle/bundle.ts';
import type { BundleSource } from '../bundle/unpack.ts';
import { withholdingOf } from '../bundle/withhold.ts';
import { type BundleWritten, writeBundle } from '../bundle/write.ts';
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
   * Writes a bundle as lines, each with its LF; the generator returns what was written.
   * @throws TAPE_NO_SESSION
   */
  write(ref: Ref, o?: BundleOptions): Generator<string, BundleWritten>;
  /**
   * Writes a bundle to a new file, compressed where its name ends with `.zst` or `.gz`. Nothing has that name before it
   * is complete.
   * @throws TAPE_NO_SESSION, TAPE_EXISTS, TAPE_CANNOT_OPEN, TAPE_IO
   */
  save(ref: Ref, file: string, o?: BundleOptions): Promise<BundleWritten>;
  /**
   * Takes a bundle in: a file, also a compressed one (gzip or zstd), or its bytes. It is read as a whole first, then
   * everything that is not here is added in one transaction, and verified there before its commit. Taking it in again adds
   * nothing; one that has grown adds what is new.
   * @throws TAPE_BAD_BUNDLE, with `file` and `line` in `data`; TAPE_DIVERGED for a session that went on in another way here;
   *   TAPE_EXISTS for a name that another session has; TAPE_BUSY for one that is written here
   */
  adopt(source: BundleSource, o?: AdoptOptions): Promise<Adopted>;
}

/** Makes `store.bundles`. What reads and compresses files is loaded with the first bundle: every process would pay for it. */
export function bundlesOn(at: Connection): Bundles {
  const { db, realm, writer } = at;
  const write = (ref: Ref, o: BundleOptions = {}): Generator<string, BundleWritten> => {
    assertOptions(
      o,
      { scope: ['session', 'lineage', 'tree'], raw: 'flag', secrets: true, redact: true, onProgress: true },
      'export',
      at.named(ref),
    );
    const { scope = 'session', raw = false, secrets = secretsIn(process.env), redact = 'all' } = o;
    const withholding = raw ? undefined : withholdingOf(secrets, redact);
    return writeBundle(db, at.need(ref), { scope, withholding, onProgress: o.onProgress });
  };
  return {
    write,

    async save(ref: Ref, file: string, o: BundleOptions = {}): Promise<BundleWritten> {
      const lines = write(ref, o);
      const { saveBundle } = await import('../bundle/pack.ts');
      return await saveBundle(file, lines);
    },

    async adopt(source: BundleSource, o: AdoptOptions = {}): Promise<Adopted> {
      const name = typeof source === 'string' ? source : source.name;
      assertOptions(o, { as: 'text', onProgress: true }, 'import', name);
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
        const { as } = o;
        const adopted = db.writeThrough(() => adoptBundle(writer, scanned, { realm, as, report }));
        at.drainOutbox();
        return adopted;
      } finally {
        file.close();
      }
    },
  };
}
