import type { Adopted, AdoptedSession, LeftOut } from '../bundle/adopt.ts';
import { crashPoint } from '../crash-point.ts';
import { TapeError, type TapeErrorCode } from '../errors.ts';
import type { OnProgress } from '../progress.ts';
import type { HomeStore } from '../store/home.ts';
import { Known, type KnownPack, type KnownSession } from './known.ts';
import type { Pack, Packs } from './packs.ts';
import { type Copied, copyPack, listPacks, Scratch } from './seen.ts';

/** How to pull. */
export interface PullOptions {
  /** A directory of the home for what is kept of the remote. */
  readonly state: string;
  /** Only says what would be taken in. Packs that were not seen are read for it. */
  readonly dryRun?: boolean;
  /** Receives the number of packs that were read. */
  readonly onProgress?: OnProgress;
}

/** A session to which a pull added something, or would. */
export interface PulledSession {
  readonly session: string;
  readonly id: string;
  readonly became: AdoptedSession['became'];
  readonly entries: number;
}

/** What a pull brought. */
export interface Pulled {
  /** The packs that were read, and their bytes. */
  readonly packs: number;
  readonly bytes: number;
  readonly sessions: readonly PulledSession[];
  readonly entries: number;
  readonly lines: number;
  /** Contents that were missing. */
  readonly filled: number;
  /** Sessions that could not be taken, and why. */
  readonly refused: readonly LeftOut[];
  /** Packs of which nothing could be taken, and why: the others do not depend on them. */
  readonly failed: readonly { readonly pack: string; readonly error: TapeError }[];
  readonly redactedElsewhere: Adopted['redactedElsewhere'];
  readonly aliasesTaken: readonly string[];
}

/** Errors of one pack. Others end the pull. */
const faults: ReadonlySet<TapeErrorCode> = new Set(['TAPE_BAD_BUNDLE', 'TAPE_BAD_REMOTE', 'TAPE_EXISTS']);

/**
 * Takes in what the packs of a remote have and the home lacks. Each pack is verified and committed as a whole, so that a
 * pull that was interrupted is continued by pulling again. Sessions that cannot be taken are left out, with those that
 * need them.
 * @throws TAPE_REMOTE_FAILED; TAPE_BAD_REMOTE when packs are gone or changed that were there before; TAPE_IO
 */
export async function pullPacks(store: HomeStore, packs: Packs, o: PullOptions): Promise<Pulled> {
  using scratch = new Scratch(o.state);
  const known = Known.at(o.state);
  const listed = await listPacks(packs, known, 'pull from');
  const lacks = lacking(store, known);
  const due = listed.filter(({ name }) => isDue(known.get(name), lacks));
  const pulling = new Pulling(o.dryRun === true ? store : undefined);
  for (const [done, pack] of due.entries()) {
    o.onProgress?.({ done, total: due.length });
    await pulling.pack(pack, async () => {
      const copied = await copyPack(packs, known, { pack, into: scratch.file() });
      crashPoint('pull/read');
      if (o.dryRun === true) {
        if (known.get(pack.name) === undefined) known.add({ ...copied.known, taken: 'none' });
        return copied;
      }
      const adopted = await taken(store, copied, known);
      crashPoint('pull/taken');
      known.add({ ...copied.known, taken: adopted.leftOut.length === 0 ? 'all' : 'some' });
      crashPoint('pull/known');
      return adopted;
    });
  }
  // A later pack may have brought what one before it could not.
  return pulling.done(lacking(store, known));
}

async function taken(store: HomeStore, copied: Copied, known: Known): Promise<Adopted> {
  try {
    return await store.bundles.adopt(copied.source(), { leaveOut: true });
  } catch (error) {
    if (error instanceof TapeError && error.code === 'TAPE_BAD_BUNDLE')
      known.add({ ...copied.known, taken: 'bad' });
    throw error;
  }
}

/**
 * The sessions of which a pack that counts has something that is not here: it was left out, or the home is an older one.
 * One that was archived or deleted here goes on elsewhere.
 */
function lacking({ bundles }: HomeStore, known: Known): ReadonlySet<string> {
  const last = new Map<string, KnownSession>();
  for (const { sessions, taken } of known.packs)
    for (const one of taken === 'bad' ? [] : sessions)
      if (one.head >= (last.get(one.id)?.head ?? 0)) last.set(one.id, one);
  const heads = new Map(bundles.heads().map((one) => [one.id, one]));
  return new Set(
    [...last.values()]
      .filter(({ id, head, hash }) => {
        const here = heads.get(id);
        if (here === undefined) return true;
        if (here.lifecycle !== 'active') return false;
        return here.head === head ? here.hash !== hash : !bundles.has({ session: id, seq: head, hash });
      })
      .map(({ id }) => id),
  );
}

function isDue(known: KnownPack | undefined, lacks: ReadonlySet<string>): boolean {
  if (known === undefined || known.taken === 'none') return true;
  return known.taken === 'bad' || known.sessions.some(({ id }) => lacks.has(id));
}

/** Adds up what packs bring. */
class Pulling {
  /** Where nothing is taken in. */
  readonly #looks: HomeStore | undefined;
  readonly #sessions = new Map<string, PulledSession>();
  readonly #refused = new Map<string, LeftOut>();
  readonly #failed: { pack: string; error: TapeError }[] = [];
  readonly #redacted: { session: string; seq: number }[] = [];
  readonly #aliases = new Set<string>();
  #packs = 0;
  #bytes = 0;
  #lines = 0;
  #filled = 0;

  constructor(looks: HomeStore | undefined) {
    this.#looks = looks;
  }

  async pack({ name, bytes }: Pack, act: () => Promise<Adopted | Copied>): Promise<void> {
    this.#packs += 1;
    this.#bytes += bytes;
    try {
      const got = await act();
      if ('known' in got) this.#sawPack(got);
      else this.#took(got);
    } catch (error) {
      if (!(error instanceof TapeError) || !faults.has(error.code)) throw error;
      this.#failed.push({ pack: name, error });
    }
  }

  done(lacks: ReadonlySet<string>): Pulled {
    const sessions = [...this.#sessions.values()];
    return {
      ...{ packs: this.#packs, bytes: this.#bytes, sessions, lines: this.#lines, filled: this.#filled },
      entries: sessions.reduce((sum, { entries }) => sum + entries, 0),
      refused: [...this.#refused.values()].filter(({ id }) => lacks.has(id)),
      failed: this.#failed,
      redactedElsewhere: this.#redacted,
      aliasesTaken: [...this.#aliases],
    };
  }

  #took({ sessions, lines, filled, leftOut, redactedElsewhere, aliasesTaken }: Adopted): void {
    this.#lines += lines;
    this.#filled += filled;
    this.#redacted.push(...redactedElsewhere);
    for (const alias of aliasesTaken) this.#aliases.add(alias);
    for (const { session, id, became, entries, filled: more } of sessions)
      if (became === 'new' || entries > 0 || more > 0) this.#add({ session, id, became, entries });
    for (const one of leftOut) this.#refused.set(one.id, one);
  }

  #sawPack({ known }: Copied): void {
    for (const { id, session, entries, head } of known.sessions) {
      const here = this.#looks?.sessions.find(id);
      const more = here === undefined ? entries : Math.min(entries, Math.max(0, head - here.head));
      if (more > 0) this.#add({ session, id, became: here === undefined ? 'new' : 'grown', entries: more });
    }
  }

  #add(one: PulledSession): void {
    const before = this.#sessions.get(one.id);
    this.#sessions.set(
      one.id,
      before === undefined ? one : { ...before, entries: before.entries + one.entries },
    );
  }
}
