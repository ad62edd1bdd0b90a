import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
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
 * A separate process that follows commands: one JSON command a line on stdin, one JSON answer a line on stdout,
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
  open: ({ path, graph, durability, shiftMs }) => {
    opened?.close();
    opened = openTapeStore(text(path), {
      durability: durability === 'full' ? 'full' : 'fast',
      ...(shiftMs !== undefined && { now: () => Date.now() + number(shiftMs) }),
      ...(graph !== undefined && { journal: openJournal(text(graph)) }),
    });
  },
  close: () => {
    opened?.close();
    opened = undefined;
  },
  /** Any method of a group of the store, such as `entries.append`. */
  call: ({ method, args }) => {
    const [group = '', name = ''] = text(method).split('.');
    const act: unknown = Reflect.get(Reflect.get(store(), group), name);
    if (typeof act !== 'function') throw new TypeError(`the store has no method ${text(method)}`);
    const value: unknown = Reflect.apply(act, undefined, args as unknown[]);
    const many = typeof value === 'object' && value !== null && Symbol.iterator in value;
    return many ? [...(value as Iterable<unknown>)] : value;
  },
  acquire: ({ session, ttlMs }) =>
    store().leases.acquire(text(session), processOwner(`p${process.pid}`), { ttlMs: number(ttlMs) }),
  /** Opens a home that may not be there yet, and makes its session with one entry. */
  first: ({ path, graph, at }) => {
    while (Date.now() < number(at)); // All begin in the same millisecond: a message would reach them one by one.
    using home = openTapeStore(text(path), { journal: openJournal(text(graph)) });
    const { created, id } = home.sessions.open('main');
    return { created, id, added: home.entries.append('main', [user('first')], { key: 'first' }).added };
  },
  /** Appends this many entries of its own, and returns the position of each. */
  append: async ({ session, count, from = 1 }) => {
    const seqs: number[] = [];
    let worstMs = 0;
    for (let n = number(from); n < number(from) + number(count); n += 1) {
      const start = performance.now();
      seqs.push(
        store().entries.append(text(session), [user(`${process.pid} ${n}`)], { key: `${process.pid}-${n}` })
          .to,
      );
      worstMs = Math.max(worstMs, performance.now() - start);
      if (n % 16 === 0) await setImmediate();
    }
    return { seqs, worstMs };
  },
  /**
   * Posts under keys `{prefix}{n}`, and returns who owned the session then. When it finds no owner it drains the inbox
   * itself, unless another process is quicker.
   */
  post: async ({ session, prefix, count }) => {
    const owners: [key: string, owner: string][] = [];
    for (let n = 1; n <= number(count); n += 1) {
      const key = `${text(prefix)}${n}`;
      const posted = store().inbox.post(text(session), {
        body: { type: 'append', drafts: [user(key)] },
        key,
      });
      if (posted.owner !== undefined) owners.push([key, posted.owner.id]);
      else if (posted.appended === undefined) store().inbox.drain(text(session));
      if (n % 16 === 0) await setImmediate();
    }
    return owners;
  },
  /** Takes the session this many times, writes a run under the lease and releases it when its inbox is empty. */
  hold: async ({ session, count, entries = 2 }) => {
    const held: [owner: string, epoch: number][] = [];
    for (let n = 1; n <= number(count); n += 1) {
      const lease: Lease = await untilFree(() =>
        store().leases.acquire(text(session), processOwner(`${process.pid}-${randomUUID()}`)),
      );
      held.push([lease.owner, lease.epoch]);
      for (let i = 1; i <= number(entries); i += 1)
        store().entries.append(text(session), [user(`run ${lease.owner} ${i}`)], { lease });
      await setImmediate();
      while (!store().leases.release(lease)) store().inbox.drain(lease);
    }
    return held;
  },
  /** New ids within one millisecond of a clock that does not move. */
  ids: ({ path, count }) => {
    using home = openTapeStore(text(path), { now: () => 1_800_000_000_000, durability: 'fast' });
    return Array.from(
      { length: number(count) },
      (_, n) =>
        home.inbox.post('main', { body: { type: 'append', drafts: [user(`${process.pid} ${n}`)] } }).id,
    );
  },
  /** Until a time: appends to each session in turn, and reports every acknowledgement and the longest wait. */
  write: async ({ sessions, until, pauseMs = 0 }) => {
    const acknowledged: { session: string; seq: number; key: string }[] = [];
    let worstMs = 0;
    for (let n = 1; Date.now() < number(until); n += 1)
      for (const session of sessions as string[]) {
        const key = `${process.pid}-${n}-${session}`;
        const start = performance.now();
        const { to } = store().entries.append(session, [user(key)], { key });
        worstMs = Math.max(worstMs, performance.now() - start);
        acknowledged.push({ session, seq: to, key });
        if (n % 5 === 0) store().lineage.fork(session, { key });
        await sleep(number(pauseMs));
      }
    return { acknowledged, worstMs };
  },
  /** Until a time: batches as an import writes them. */
  bulk: async ({ session, until }) => {
    const acknowledged: { session: string; seq: number; key: string }[] = [];
    let worstMs = 0;
    for (let n = 1; Date.now() < number(until); n += 1) {
      const drafts = Array.from({ length: 200 }, (_, i) =>
        user(`${process.pid}-bulk-${n}${i === 0 ? '' : `#${i + 1}`}`),
      );
      const key = `${process.pid}-bulk-${n}`;
      const start = performance.now();
      const { from, to } = store().entries.append(text(session), drafts, { key });
      worstMs = Math.max(worstMs, performance.now() - start);
      for (let seq = from; seq <= to; seq += 1)
        acknowledged.push({
          session: text(session),
          seq,
          key: seq === from ? key : `${key}#${seq - from + 1}`,
        });
      await sleep(2);
    }
    return { acknowledged, worstMs };
  },
  /**
   * Until a time: reads each session, which must be what it was before and more, with no gap. Counts the open files
   * at both ends.
   */
  watch: async ({ path, sessions, until }) => {
    const files = () => (existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : 0);
    const heads = new Map<string, string>();
    let [reads, first] = [0, 0];
    while (Date.now() < number(until)) {
      using reader = openTapeStore(text(path), { readonly: true });
      if (reads === 0) first = files();
      for (const session of sessions as string[]) {
        const { head = 0 } = reader.sessions.find(session) ?? {};
        const entries = [...reader.entries.read(session, { last: 50 })];
        const newest = entries.at(-1)?.seq ?? 0;
        if (newest < head) throw new Error(`${session} went back from ${head} to ${newest}`);
        const [old] = heads.get(session)?.split(' ') ?? [];
        if (old !== undefined) {
          const at = Number(old);
          const again = [...reader.entries.read(session, { from: at, to: at })][0];
          if (`${at} ${again?.hash}` !== heads.get(session))
            throw new Error(`${session}@${at} is another entry now`);
        }
        entries.forEach((entry, i) => {
          if (entry.seq !== newest - entries.length + 1 + i)
            throw new Error(`a gap in ${session} before ${entry.seq}`);
        });
        heads.set(session, `${newest} ${entries.at(-1)?.hash}`);
      }
      reads += 1;
      if (Date.now() >= number(until)) return { reads, grown: files() - first };
      await sleep(5);
    }
    return { reads, grown: 0 };
  },
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
