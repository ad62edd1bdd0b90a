import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { openJournal } from '@tapedeck/graph/journal';
import {
  type Lease,
  openTapeStore,
  processOwner,
  type SqliteTapeStore,
  TapeError,
  user,
} from '@tapedeck/tape';

/**
 * A process of its own that does as it is told: one JSON command a line on stdin, one JSON answer a line on stdout,
 * `{"value":…}` or `{"error":{"code":…}}`. It lives on between commands, so that many rounds cost one start.
 */
type Args = Readonly<Record<string, unknown>>;

let opened: SqliteTapeStore | undefined;
const store = (): SqliteTapeStore => {
  if (opened === undefined) throw new Error('nothing is open');
  return opened;
};
const [text, number] = [(value: unknown) => String(value), (value: unknown) => Number(value)];

/** Repeats an act that another owner keeps it from doing. */
async function untilFree<T>(act: () => T): Promise<T> {
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof TapeError) || error.code !== 'TAPE_BUSY') throw error;
      await setImmediate();
    }
  }
}

const acts: Readonly<Record<string, (args: Args) => unknown>> = {
  open: ({ path, graph, durability, shiftMs = 0 }) => {
    opened?.close();
    opened = openTapeStore(text(path), {
      durability: durability === 'full' ? 'full' : 'fast',
      now: () => Date.now() + number(shiftMs),
      ...(graph !== undefined && { journal: openJournal(text(graph)) }),
    });
  },
  close: () => {
    opened?.close();
    opened = undefined;
  },
  /** Any method of the store. */
  call: ({ method, args }) => {
    const value = (store() as unknown as Record<string, (...a: unknown[]) => unknown>)[text(method)]?.(
      ...(args as unknown[]),
    );
    const many = typeof value === 'object' && value !== null && Symbol.iterator in value;
    return many ? [...(value as Iterable<unknown>)] : value;
  },
  acquire: ({ session, ttlMs }) =>
    store().acquire(text(session), processOwner(`p${process.pid}`), { ttlMs: number(ttlMs) }),
  /** Opens a home that may not be there yet, and makes its session with one entry. */
  first: ({ path, graph }) => {
    using home = openTapeStore(text(path), { journal: openJournal(text(graph)) });
    const { created, id } = home.session('main');
    return { created, id, added: home.append('main', [user('first')], { key: 'first' }).added };
  },
  /** Appends so many entries of its own, and tells the position of each. */
  append: async ({ session, count, from = 1 }) => {
    const seqs: number[] = [];
    let worstMs = 0;
    for (let n = number(from); n < number(from) + number(count); n += 1) {
      const start = performance.now();
      seqs.push(
        store().append(text(session), [user(`${process.pid} ${n}`)], { key: `${process.pid}-${n}` }).to,
      );
      worstMs = Math.max(worstMs, performance.now() - start);
      if (n % 16 === 0) await setImmediate();
    }
    return { seqs, worstMs };
  },
  /** Posts under keys `{prefix}{n}`; whoever finds no owner does it himself, unless somebody else is quicker. */
  post: async ({ session, prefix, count }) => {
    for (let n = 1; n <= number(count); n += 1) {
      const drafts = [user(`${text(prefix)}${n}`)];
      const posted = store().post(text(session), {
        body: { type: 'append', drafts },
        key: `${text(prefix)}${n}`,
      });
      if (posted.owner === undefined && posted.appended === undefined) store().drainOwnerless(text(session));
      if (n % 16 === 0) await setImmediate();
    }
  },
  /** Takes the session so many times, writes a run under the lease and gives it back when its inbox lets it go. */
  hold: async ({ session, count, entries = 2 }) => {
    const epochs: number[] = [];
    for (let n = 1; n <= number(count); n += 1) {
      const lease: Lease = await untilFree(() =>
        store().acquire(text(session), processOwner(`${process.pid}-${n}`)),
      );
      epochs.push(lease.epoch);
      for (let i = 1; i <= number(entries); i += 1)
        store().append(text(session), [user(`run ${process.pid}-${n} ${i}`)], { lease });
      await setImmediate();
      while (!store().release(lease)) store().drain(lease);
    }
    return epochs;
  },
  /** New ids within one millisecond of a clock that stands still. */
  ids: ({ path, count }) => {
    using home = openTapeStore(text(path), { now: () => 1_800_000_000_000, durability: 'fast' });
    return Array.from(
      { length: number(count) },
      (_, n) => home.post('main', { body: { type: 'append', drafts: [user(`${process.pid} ${n}`)] } }).id,
    );
  },
  descriptors: async () => (await import('node:fs')).readdirSync('/proc/self/fd').length,
};

const answer = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);

answer({ value: 'ready' });
// Commands are compact JSON of ours without U+2028, so a line reader will do.
for await (const line of createInterface({ input: process.stdin })) {
  const { act, ...args } = JSON.parse(line) as Args & { act: string };
  try {
    answer({ value: (await acts[act]?.(args)) ?? null });
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    answer({ error: { code: code ?? null, message } });
  }
}
opened?.close();
