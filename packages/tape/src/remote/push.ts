import { stat } from 'node:fs/promises';
import type { BundlePart } from '../bundle/part.ts';
import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import type { OnProgress } from '../progress.ts';
import type { Redact } from '../secrets/redactor.ts';
import type { Secret } from '../secrets/secrets.ts';
import type { HomeStore } from '../store/home.ts';
import type { Ref } from '../tape/tape.ts';
import { choose, type NotSent, type Point, type SentSession, type There } from './choose.ts';
import { Known, type KnownPack } from './known.ts';
import { type Pack, type Packs, packName, packNumber, remoteError } from './packs.ts';
import { copyPack, listPacks, lookInto, Scratch } from './seen.ts';

/** How to push. */
export interface PushOptions {
  /** A directory of the home for what is kept of the remote. */
  readonly state: string;
  /** Sessions, which go with their ancestors. Default: all of the realm. */
  readonly sessions?: readonly Ref[];
  /** Only says what would be sent. */
  readonly dryRun?: boolean;
  /** As for `bundles.write`. */
  readonly raw?: boolean;
  readonly secrets?: readonly Secret[];
  readonly redact?: Redact;
  readonly onProgress?: OnProgress;
}

/** What a push sent. */
export interface Pushed {
  /** The name of the new pack; null without one, and at another home. */
  readonly pack: string | null;
  /** Its size, or the one that it would have. */
  readonly bytes: number;
  readonly sessions: readonly SentSession[];
  readonly entries: number;
  readonly lines: number;
  /** Entries whose content stays here because a secret was found in it. */
  readonly withheld: number;
  readonly refused: readonly NotSent[];
  /** Sessions that have nothing new, while the remote has more of them. */
  readonly behind: readonly string[];
}

/** How often a push begins anew because another one was first. */
const attemptsMax = 100;

/**
 * Sends to a remote what it lacks of some sessions, as one pack. Where another push is first, it looks again; a session
 * that grew there meanwhile is refused, and the others are sent.
 * @throws TAPE_NO_SESSION; TAPE_REMOTE_FAILED; TAPE_BAD_REMOTE; TAPE_BAD_BUNDLE for a pack that cannot be read
 */
export async function pushPacks(store: HomeStore, packs: Packs, o: PushOptions): Promise<Pushed> {
  using scratch = new Scratch(o.state);
  let number = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const known = Known.at(o.state);
    const listed = await lookAll(packs, known, scratch);
    const { parts, sent, refused, behind } = choose(
      store.bundles.heads(o.sessions),
      there(known),
      (id, { head, hash }) => store.bundles.has({ session: id, seq: head, hash }),
    );
    const sum = (of: 'entries' | 'lines') => sent.reduce((all, one) => all + one[of], 0);
    const chosen = { sessions: sent, refused, behind, entries: sum('entries'), lines: sum('lines') };
    if (parts.length === 0) return { pack: null, bytes: 0, withheld: 0, ...chosen };
    number = nextNumber(listed, { above: number, url: packs.url });
    const made = await packed(store, { parts, known, file: scratch.file(), number }, o);
    const pushed = { ...chosen, bytes: made.known.bytes, withheld: made.withheld };
    if (o.dryRun === true) return { pack: null, ...pushed };
    crashPoint('push/packed');
    if (!(await packs.add(number, made.file))) continue;
    crashPoint('push/added');
    known.add({ ...made.known, taken: 'all' });
    crashPoint('push/known');
    return { pack: made.known.name, ...pushed };
  }
  throw remoteError('TAPE_REMOTE_FAILED', {
    ...{ act: 'push to', url: packs.url },
    why: `others were first ${attemptsMax} times`,
  });
}

/**
 * Looks into the packs that were not seen.
 * @throws TAPE_BAD_BUNDLE for one that cannot be read: what it has could be lost
 */
async function lookAll(packs: Packs, known: Known, scratch: Scratch): Promise<readonly Pack[]> {
  const listed = await listOrNone(packs, known);
  for (const pack of listed)
    if (known.get(pack.name) === undefined) {
      const copied = await copyPack(packs, known, { pack, into: scratch.file() });
      known.add({ ...copied.known, taken: 'none' });
    }
  return listed;
}

/**
 * The number of a new pack.
 * @throws TAPE_BAD_REMOTE when the last one is taken: what came behind it would be found by no one
 */
function nextNumber(
  listed: readonly Pack[],
  { above, url }: { readonly above: number; readonly url: string },
): number {
  const number = listed.reduce((last, pack) => Math.max(last, pack.number), above) + 1;
  if (packNumber(packName(number)) === number) return number;
  throw remoteError('TAPE_BAD_REMOTE', {
    ...{ act: 'push to', url },
    why: `no number is left behind '${packName(number - 1)}': use another remote`,
  });
}

/** The packs of a remote; none where the first push makes it. */
async function listOrNone(packs: Packs, known: Known): Promise<readonly Pack[]> {
  try {
    return await listPacks(packs, known, 'push to');
  } catch (error) {
    // A place that had packs is not made anew: it may be a disk that is not mounted.
    const isNew = error instanceof TapeError && error.data.missing === true && known.isEmpty;
    if (!isNew) throw error;
    return [];
  }
}

function there(known: Known): There {
  const points = new Map<string, Point[]>();
  const events = new Set<string>();
  for (const { sessions, events: more, taken } of known.packs) {
    if (taken === 'bad') continue;
    for (const { id, head, hash } of sessions) {
      const own = points.get(id);
      if (own === undefined) points.set(id, [{ head, hash }]);
      else own.push({ head, hash });
    }
    for (const event of more) events.add(event);
  }
  return { points: (id) => points.get(id) ?? [], knows: (event) => events.has(event) };
}

/** Writes a pack, and looks into it as everyone who reads it does. */
async function packed(
  store: HomeStore,
  {
    parts,
    known,
    file,
    number,
  }: {
    readonly parts: readonly BundlePart[];
    readonly known: Known;
    readonly file: string;
    readonly number: number;
  },
  { raw = false, secrets, redact, onProgress }: PushOptions,
): Promise<{ readonly file: string; readonly known: Omit<KnownPack, 'taken'>; readonly withheld: number }> {
  const { withheld } = await store.bundles.save(parts, file, {
    knows: there(known).knows,
    raw,
    ...(secrets !== undefined && { secrets }),
    ...(redact !== undefined && { redact }),
    ...(onProgress !== undefined && { onProgress }),
  });
  const { size: bytes } = await stat(file);
  const looked = await lookInto(file, { number, name: packName(number), bytes, called: file });
  return { file, known: looked.known, withheld };
}
