import { Readable } from 'node:stream';
import { createZstdCompress } from 'node:zlib';
import type { SessionHead } from '../bundle/part.ts';
import { isObject } from '../entry/json.ts';
import { isUlid } from '../entry/name.ts';
import type { BundleOptions } from '../store/bundles.ts';
import type { HomeStore } from '../store/home.ts';
import { bucketCount, headsIn, type ToldHead, thereOf } from './buckets.ts';
import { type Choice, choose } from './choose.ts';
import { type Message, type Wire, WireError } from './wire.ts';

/** About how many characters of a list are in a message, and the most events of one item of it. */
const pageChars = 200_000;
const eventsMax = 5_000;
/** The most sessions that a side says to have, and messages in which it does. */
const itemsMax = 1_000_000;
const pagesMax = 100_000;

/** Sends a list in messages of a bounded size. */
async function sendList(wire: Wire, list: Iterable<unknown>): Promise<void> {
  let page: unknown[] = [];
  let chars = 0;
  for (const one of list) {
    page.push(one);
    chars += JSON.stringify(one).length;
    if (chars < pageChars) continue;
    await wire.send({ list: page });
    [page, chars] = [[], 0];
  }
  await wire.send({ list: page, end: true });
}

async function receiveList<T>(wire: Wire, read: (value: unknown) => T): Promise<readonly T[]> {
  const all: T[] = [];
  for (let pages = 0; all.length <= itemsMax && pages < pagesMax; pages += 1) {
    const { list, end } = await wire.receive();
    if (!Array.isArray(list)) throw new WireError('it does not say what it has');
    for (const one of list) all.push(read(one));
    if (end === true) return all;
  }
  throw new WireError('it says to have more than any home');
}

/** Heads as a list has them; one with many events comes several times. */
function* told(heads: readonly SessionHead[]): Generator<unknown> {
  for (const { id, head, hash, events } of heads)
    for (let at = 0; at === 0 || at < events.length; at += eventsMax)
      yield [id, head, hash, events.slice(at, at + eventsMax)];
}

function headOf(value: unknown): ToldHead {
  const [id, head, hash, events] = Array.isArray(value) ? (value as unknown[]) : [];
  if (
    typeof id === 'string' &&
    isUlid(id) &&
    Number.isSafeInteger(head) &&
    typeof hash === 'string' &&
    /^[0-9a-f]{64}$/.test(hash) &&
    Array.isArray(events) &&
    events.every((event) => typeof event === 'string')
  )
    return { id, head: head as number, hash, events: events as string[] };
  throw new WireError('it says of a session what no session has');
}

/** The digests of a message. */
export function digestsIn({ digests }: Message): readonly string[] {
  if (Array.isArray(digests) && digests.length === bucketCount) return digests.map(String);
  throw new WireError('it does not say what it has');
}

/** The buckets of a message. */
export function bucketsIn({ differ }: Message): readonly number[] {
  const isOne = (one: unknown) => Number.isInteger(one) && Number(one) >= 0 && Number(one) < bucketCount;
  if (Array.isArray(differ) && differ.every(isOne)) return differ as number[];
  throw new WireError('it does not say what differs');
}

/** What goes to the other side, and what it has. */
export interface Due extends Choice {
  readonly knows: (event: string) => boolean;
}

/**
 * Learns what the other side has, and chooses what it lacks of some sessions. Of those of which it has more than is here,
 * it is asked whether it has what is here.
 */
export async function dueTo(
  wire: Wire,
  { bundles }: HomeStore,
  {
    own,
    differ,
    chosen = own,
  }: {
    readonly own: readonly SessionHead[];
    readonly differ: readonly number[];
    readonly chosen?: readonly SessionHead[];
  },
): Promise<Due> {
  const theirs = await receiveList(wire, headOf);
  const heads = new Map(theirs.map((one) => [one.id, one]));
  const isBehind = ({ id, head }: SessionHead) => (heads.get(id)?.head ?? 0) > head;
  const asked = headsIn(own, differ).filter(isBehind);
  await sendList(wire, told(asked.map((one) => ({ ...one, events: [] }))));
  const has = new Set(await receiveList(wire, String));
  const there = thereOf(own, { differ, theirs, common: asked.filter(({ id }) => has.has(id)) });
  const isHere = (session: string, { head, hash }: { readonly head: number; readonly hash: string }) =>
    bundles.has({ session, seq: head, hash });
  return { ...choose(chosen, there, isHere), knows: there.knows };
}

/** Says what this side has, and answers what `dueTo` asks on the other one. */
export async function sayTo(
  wire: Wire,
  { bundles }: HomeStore,
  { own, differ }: { readonly own: readonly SessionHead[]; readonly differ: readonly number[] },
): Promise<void> {
  await sendList(wire, told(headsIn(own, differ)));
  const asked = await receiveList(wire, headOf);
  const has = asked.filter(({ id, head, hash }) => bundles.has({ session: id, seq: head, hash }));
  await sendList(
    wire,
    has.map(({ id }) => id),
  );
}

/** The bytes of a bundle of what is due, compressed, and how many of its entries were withheld. */
export function packedOf(
  { bundles }: HomeStore,
  { parts, knows }: Due,
  o: Pick<BundleOptions, 'raw' | 'secrets' | 'redact' | 'onProgress'>,
): { readonly chunks: AsyncIterable<Uint8Array>; readonly withheld: () => number } {
  let withheld = 0;
  const lines = bundles.write(parts, { ...o, knows });
  function* texts(): Generator<string> {
    withheld = (yield* lines).withheld;
  }
  const packing = createZstdCompress();
  Readable.from(batches(texts()))
    .on('error', (error) => packing.destroy(error))
    .pipe(packing);
  return { chunks: packing as AsyncIterable<Uint8Array>, withheld: () => withheld };
}

/** Some lines at a time: a line for each would be a write for each. */
const batchChars = 64 * 1024;

function* batches(texts: Iterable<string>): Generator<Buffer> {
  let batch = '';
  for (const text of texts) {
    batch += text;
    if (batch.length < batchChars) continue;
    yield Buffer.from(batch);
    batch = '';
  }
  if (batch !== '') yield Buffer.from(batch);
}

/** An error as a message has it. */
export function toldError(error: unknown): Message {
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown };
  return { code: String(code ?? 'CLI_FAILED'), message: String(message), ...(isObject(data) && { data }) };
}
