import type { LeftOut } from '../bundle/adopt.ts';
import { isObject } from '../entry/json.ts';
import { TapeError, type TapeErrorCode } from '../errors.ts';
import type { HomeStore } from '../store/home.ts';
import { digestsOf } from './buckets.ts';
import type { NotSent, SentSession } from './choose.ts';
import { bucketsIn, dueTo, packedOf, sayTo } from './exchange.ts';
import type { Peer } from './peer.ts';
import type { Pulled, PullOptions } from './pull.ts';
import type { Pushed, PushOptions } from './push.ts';
import { type SshAddress, sshAddress } from './ssh-address.ts';
import { connected, type Served, type SshOptions } from './ssh-connection.ts';
import { textIn, WireError, wireVersion } from './wire.ts';

/** The home on another machine. @throws TAPE_BAD_OPTION for a URL that is not allowed */
export function sshPeer(url: string, o: SshOptions): Peer {
  const address = sshAddress(url);
  if (address === undefined) throw new TypeError('it is no URL of ssh');
  return new SshPeer(address, o);
}

class SshPeer implements Peer {
  readonly url: string;
  readonly #address: SshAddress;
  readonly #options: SshOptions;

  constructor(address: SshAddress, o: SshOptions) {
    this.url = address.url;
    this.#address = address;
    this.#options = o;
  }

  async reach(): Promise<void> {
    const act = async ({ wire }: Served): Promise<void> => {
      await wire.send({ v: wireVersion, do: 'look' });
      await wire.receive();
    };
    await connected(this.#address, 'reach', { ...this.#options, act });
  }

  async push(store: HomeStore, o: PushOptions): Promise<Pushed> {
    const chosen = store.bundles.heads(o.sessions);
    const own = o.sessions === undefined ? chosen : store.bundles.heads();
    const act = async ({ wire }: Served): Promise<Pushed> => {
      await wire.send({ v: wireVersion, do: 'take', digests: digestsOf(own) });
      const differ = bucketsIn(await wire.receive());
      const due = await dueTo(wire, store, { own, differ, chosen });
      if (due.parts.length === 0) return pushed(due, { bytes: 0, withheld: 0, left: [] });
      const { chunks, withheld } = packedOf(store, due, {
        raw: o.raw ?? false,
        ...(o.secrets !== undefined && { secrets: o.secrets }),
        ...(o.redact !== undefined && { redact: o.redact }),
        onProgress: (now) => {
          wire.alive();
          o.onProgress?.(now);
        },
      });
      if (o.dryRun === true) {
        let bytes = 0;
        for await (const chunk of chunks) bytes += chunk.length;
        return pushed(due, { bytes, withheld: withheld(), left: [] });
      }
      await wire.send({ take: true });
      const bytes = await wire.sendBytes(chunks);
      const { taken, left } = await wire.receive();
      if (!isObject(taken) || !Array.isArray(left)) throw new WireError('it does not say what it took');
      return pushed(due, { bytes, withheld: withheld(), left: left.map(leftThere) });
    };
    return await connected(this.#address, 'push to', { ...this.#options, act });
  }

  async pull(store: HomeStore, o: PullOptions): Promise<Pulled> {
    const own = store.bundles.heads();
    const act = async (served: Served): Promise<Pulled> => {
      const { wire } = served;
      await wire.send({ v: wireVersion, do: 'give', digests: digestsOf(own) });
      await sayTo(wire, store, { own, differ: bucketsIn(await wire.receive()) });
      const { sent, refused } = await wire.receive();
      if (!Array.isArray(sent) || !Array.isArray(refused))
        throw new WireError('it does not say what it sends');
      const comes = sent.map(sentThere);
      // Of a session that was archived or deleted here nothing more is to come.
      const isActive = ({ id }: LeftOut) => own.find((one) => one.id === id)?.lifecycle === 'active';
      const diverged = refused.map(divergedThere).filter(isActive);
      if (comes.length === 0 || o.dryRun === true)
        return {
          ...nothing,
          entries: comes.reduce((sum, { entries }) => sum + entries, 0),
          sessions: comes.map(({ session, id, entries }) => {
            const became = store.sessions.find(id) === undefined ? ('new' as const) : ('grown' as const);
            return { session, id, became, entries };
          }),
          refused: diverged,
        };
      let bytes = 0;
      async function* chunks(): AsyncGenerator<Uint8Array> {
        try {
          for await (const chunk of wire.receiveBytes()) {
            bytes += chunk.length;
            yield chunk;
          }
        } catch (error) {
          throw await served.failure(error);
        }
      }
      const { sessions, entries, lines, filled, leftOut, redactedElsewhere, aliasesTaken } =
        await store.bundles.adopt({ name: this.url, chunks: chunks() }, { leaveOut: true });
      const news = sessions.filter((one) => one.became === 'new' || one.entries > 0 || one.filled > 0);
      return {
        ...{ packs: 1, bytes, entries, lines, filled, redactedElsewhere, aliasesTaken },
        sessions: news.map(({ session, id, became, entries }) => ({ session, id, became, entries })),
        refused: [...diverged, ...leftOut],
        failed: [],
      };
    };
    return await connected(this.#address, 'pull from', { ...this.#options, act });
  }
}

const nothing = {
  ...{ packs: 0, bytes: 0, lines: 0, filled: 0 },
  ...{ failed: [], redactedElsewhere: [], aliasesTaken: [] },
} as const;

function pushed(
  { sent, refused, behind }: Pick<Pushed, 'refused' | 'behind'> & { readonly sent: readonly SentSession[] },
  {
    bytes,
    withheld,
    left,
  }: { readonly bytes: number; readonly withheld: number; readonly left: readonly NotSent[] },
): Pushed {
  const sessions = sent.filter(({ id }) => !left.some((one) => one.id === id));
  const sum = (of: 'entries' | 'lines') => sessions.reduce((all, one) => all + one[of], 0);
  return {
    ...{ pack: null, bytes, sessions, entries: sum('entries'), lines: sum('lines'), withheld, behind },
    refused: [...refused, ...left],
  };
}

/** Why the other side may leave out a session. */
const refusals: ReadonlySet<unknown> = new Set<TapeErrorCode>([
  'TAPE_DIVERGED',
  'TAPE_EXISTS',
  'TAPE_BUSY',
  'TAPE_MISSING_BASE',
]);

function leftThere(value: unknown): NotSent {
  const { session, id, code, message } = named(value);
  const known = refusals.has(code) ? (code as TapeErrorCode) : 'TAPE_REMOTE_FAILED';
  const error = new TapeError(known, `cannot push '${session}': the remote says '${textIn(message)}'`, {
    data: { session, remote: true },
  });
  return { session, id, error };
}

function divergedThere(value: unknown): LeftOut {
  const { session, id } = named(value);
  const error = new TapeError('TAPE_DIVERGED', `cannot pull '${session}': it went on in another way here`, {
    data: { session, remote: true },
  });
  return { session, id, error };
}

function sentThere(value: unknown): SentSession {
  const { session, id, entries, lines } = named(value);
  if (!Number.isSafeInteger(entries) || !Number.isSafeInteger(lines))
    throw new WireError('it does not say what it sends');
  return { session, id, entries: entries as number, lines: lines as number };
}

function named(
  value: unknown,
): Readonly<Record<string, unknown>> & { readonly session: string; readonly id: string } {
  if (isObject(value) && typeof value.session === 'string' && typeof value.id === 'string')
    return { ...value, session: textIn(value.session), id: value.id };
  throw new WireError('it does not name a session');
}
