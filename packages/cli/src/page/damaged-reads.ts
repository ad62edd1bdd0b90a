import { type Entry, type HomeStore, TapeError } from '@tapedeck/tape';

type Query = NonNullable<Parameters<HomeStore['entries']['read']>[1]>;

/** What stands for entries that cannot be read. */
const standIns = new WeakSet<Entry>();

/** Whether an entry stands for one that cannot be read. */
export function isDamaged(entry: Entry): boolean {
  return standIns.has(entry);
}

/**
 * A store that reads past entries whose stored text cannot be read: one of them must not take all others from the page. An
 * event without content stands for it, unless entries are chosen by what they are.
 */
export function damagedReads(store: HomeStore): HomeStore {
  const read = store.entries.read.bind(store.entries);
  function* onward(ref: string, query: Query): Generator<Entry> {
    let { from = 1, limit } = query;
    try {
      for (const entry of read(ref, query)) {
        yield entry;
        from = entry.seq + 1;
        if (limit !== undefined) limit -= 1;
      }
    } catch (error) {
      const seq = placeOf(error, from);
      const here = standInAt(store, ref, { query, seq, error });
      yield* here;
      if (limit !== undefined) limit -= here.length;
      if (limit !== 0) yield* onward(ref, { ...query, from: seq + 1, ...(limit !== undefined && { limit }) });
    }
  }
  const newest = (ref: string, query: Query & { readonly last: number }): readonly Entry[] => {
    try {
      return [...read(ref, query)];
    } catch (error) {
      const seq = placeOf(error, query.from ?? 1);
      const after = newest(ref, { ...query, from: seq + 1 });
      if (after.length === query.last) return after;
      const here = standInAt(store, ref, { query, seq, error });
      const last = query.last - after.length - here.length;
      const before = last === 0 ? [] : newest(ref, { ...query, to: seq - 1, last });
      return [...before, ...here, ...after];
    }
  };
  const entries: HomeStore['entries'] = {
    ...store.entries,
    read: (ref, query = {}) => {
      const { last } = query;
      return last === undefined ? onward(ref, query) : newest(ref, { ...query, last });
    },
  };
  return new Proxy(store, {
    get(target, key) {
      if (key === 'entries') return entries;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/**
 * Where the entry is that could not be read.
 * @throws the error itself, if it is another one, or of a place that was passed
 */
function placeOf(error: unknown, from: number): number {
  const seq = error instanceof TapeError && error.code === 'TAPE_CORRUPT' ? error.data.seq : undefined;
  if (typeof seq !== 'number' || seq < from) throw error;
  return seq;
}

function standInAt(
  store: HomeStore,
  ref: string,
  { query, seq, error }: { readonly query: Query; readonly seq: number; readonly error: unknown },
): readonly Entry[] {
  const { kind, name, namePrefix, key, calls } = query;
  if ([kind, name, namePrefix, key, calls].some((choice) => choice !== undefined)) return [];
  const info = store.sessions.find(ref);
  const owner = store.sessions.find(String((error as TapeError).data.session)) ?? info;
  if (info === undefined || owner === undefined) return [];
  const entry: Entry = {
    ...{ session: owner.session, tape: owner.tape, seq, kind: 'event', name: 'damaged', payload: null },
    ...{ meta: {}, at: 0, hash: '', inherited: seq <= info.base },
  };
  standIns.add(entry);
  return [entry];
}
