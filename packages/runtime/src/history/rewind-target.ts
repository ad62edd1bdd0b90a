import {
  type Entry,
  type Point,
  type Seq,
  type SessionInfo,
  TapeError,
  type TapeStore,
} from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * The user message at a point, as the target of a rewind.
 * @throws TAPE_BAD_POINT when the point is not a visible user message: `data.message` is the position of the
 *   nearest one, `data.hidden` that of the rewind that hides the point
 */
export async function getTarget(store: TapeStore, info: SessionInfo, to: Point): Promise<Entry> {
  const seq = await store.entries.resolve(info.id, to);
  const [entry] = await Array.fromAsync(store.entries.read(info.id, { from: seq, to: seq }));
  const [range] = await store.views.ranges(info.id, { from: seq });
  // A rewind entry hides itself.
  const hidden = range?.hiddenBy === seq ? undefined : range?.hiddenBy;
  const why =
    hidden !== undefined
      ? `the rewind ${info.session}@${hidden} hides it`
      : faultOf(entry ?? { kind: 'event', payload: null, meta: {} });
  if (entry !== undefined && why === undefined) return entry;
  const message = hidden === undefined ? await messageNear(store, info, seq) : undefined;
  throw new TapeError('TAPE_BAD_POINT', `cannot rewind '${info.session}' to @${seq}: ${why}`, {
    data: {
      session: info.session,
      seq,
      ...(message !== undefined && { message }),
      ...(hidden !== undefined && { hidden }),
    },
  });
}

/** Why an entry is not a user message; undefined when it is one. Pure. */
function faultOf({
  kind,
  mark,
  name,
  payload,
  meta,
}: Pick<Entry, 'kind' | 'mark' | 'name' | 'payload' | 'meta'>) {
  if (payload === null) return 'its content was redacted';
  if (mark === 'anchor' || mark === 'boundary') return `it is the anchor '${name}', not a user message`;
  if (kind === 'tool-result') return 'it is a tool result, not a user message';
  if (kind !== 'message' || !isObject(payload)) return `it is an entry of kind ${kind}, not a user message`;
  if (payload.role !== 'user') return 'it is an answer, not a user message';
  return meta.source === 'merge' ? 'it is a merge message, not a user message' : undefined;
}

const pageSize = 20;
/** The number of messages that are searched for a user message. */
const searchMax = 1_000;

/** The last visible user message at or before a position; without one, the first after it. */
async function messageNear(store: TapeStore, { id }: SessionInfo, seq: Seq): Promise<Seq | undefined> {
  for (let to = seq, searched = 0; searched < searchMax; searched += pageSize) {
    const page = await Array.fromAsync(store.entries.read(id, { kind: 'message', last: pageSize, to }));
    for (const entry of page.reverse()) if (await isTarget(store, id, entry)) return entry.seq;
    const first = page.at(-1);
    if (first === undefined || page.length < pageSize) break;
    to = first.seq - 1;
  }
  const after = store.entries.read(id, { kind: 'message', limit: searchMax, from: seq + 1 });
  for await (const entry of after) if (await isTarget(store, id, entry)) return entry.seq;
  return undefined;
}

async function isTarget(store: TapeStore, id: string, entry: Entry): Promise<boolean> {
  if (faultOf(entry) !== undefined) return false;
  const [range] = await store.views.ranges(id, { from: entry.seq });
  return range?.hiddenBy === undefined;
}
