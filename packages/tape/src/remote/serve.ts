import { TapeError } from '../errors.ts';
import type { Redact } from '../secrets/redactor.ts';
import type { HomeStore } from '../store/home.ts';
import { differing, digestsOf } from './buckets.ts';
import { digestsIn, dueTo, packedOf, sayTo, toldError } from './exchange.ts';
import { type Message, Wire, WireError, type WireStreams, wireVersion } from './wire.ts';

/** Runs an act on the store of a home. */
type OnStore = <T>(act: (store: HomeStore) => Promise<T>) => Promise<T>;

/** The home that is served. */
export interface ServedHome {
  /** What the first line calls this program. */
  readonly version: string;
  readonly reading: OnStore;
  /** For a push: the home must be there. */
  readonly changing: OnStore;
  /** Further forms of secrets that stay here. */
  readonly redact?: Redact | undefined;
}

const defaultIdleMs = 120_000;

/**
 * Answers one push or pull of another home on two streams, as `tape raw serve` does at the end of an ssh connection. Both
 * sides compare digests; then one bundle goes one way, with what the other side lacks. A connection that is lost leaves
 * all of that bundle here, or nothing.
 * @returns whether the request was answered
 */
export async function serveHome(
  home: ServedHome,
  { idleMs = defaultIdleMs, ...streams }: Omit<WireStreams, 'idleMs'> & { readonly idleMs?: number },
): Promise<boolean> {
  const wire = new Wire({ ...streams, idleMs });
  try {
    await wire.send({ tape: 'remote', v: wireVersion, version: home.version });
    const request = await wire.receive();
    if (request.v !== wireVersion)
      throw new TapeError(
        'TAPE_REMOTE_FAILED',
        `this tape (${home.version}) speaks version ${wireVersion} of what remotes say, and the other side ${String(request.v)}`,
      );
    if (request.do === 'look') await home.reading(async () => await wire.send({ home: true }));
    else if (request.do === 'give') await home.reading((store) => give(wire, { store, request, home }));
    else if (request.do === 'take') await home.changing((store) => take(wire, { store, request }));
    else throw new WireError('it asks for something else than tape does');
    return true;
  } catch (error) {
    // The other side may be gone.
    await wire.send({ error: toldError(error) }).catch(() => {});
    return false;
  }
}

/** Answers a pull. */
async function give(
  wire: Wire,
  {
    store,
    request,
    home,
  }: { readonly store: HomeStore; readonly request: Message; readonly home: ServedHome },
): Promise<void> {
  const own = store.bundles.heads();
  const differ = differing(digestsOf(own), digestsIn(request));
  await wire.send({ differ });
  const due = await dueTo(wire, store, { own, differ });
  const { sent, refused, behind } = due;
  await wire.send({ sent, refused: refused.map(({ session, id }) => ({ session, id })), behind });
  if (due.parts.length === 0) return;
  const { chunks } = packedOf(store, due, {
    raw: request.raw === true,
    onProgress: () => wire.alive(),
    ...(home.redact !== undefined && { redact: home.redact }),
  });
  await wire.sendBytes(chunks);
}

/** Answers a push. */
async function take(
  wire: Wire,
  { store, request }: { readonly store: HomeStore; readonly request: Message },
): Promise<void> {
  const own = store.bundles.heads();
  const differ = differing(digestsOf(own), digestsIn(request));
  await wire.send({ differ });
  await sayTo(wire, store, { own, differ });
  const { take: comes } = await wire.receive();
  if (comes !== true) return;
  const adopted = await store.bundles.adopt(
    { name: 'what was pushed', chunks: wire.receiveBytes() },
    { leaveOut: true, onProgress: () => wire.alive() },
  );
  const { sessions, entries, lines, leftOut } = adopted;
  await wire.send({
    taken: { sessions, entries, lines },
    left: leftOut.map(({ session, id, error }) => ({ session, id, ...toldError(error) })),
  });
}
