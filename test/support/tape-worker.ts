import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assistant, openTapeStore, processOwner, user } from '@tapedeck/tape';

/**
 * A process of its own that works on a store: `tape-worker.ts DB ACT …`. It says `ready`, waits for a line on stdin,
 * does the act, and writes a line of JSON for each thing that was acknowledged to it.
 */
const [path = '', act = '', name = 'main', count = '0'] = process.argv.slice(2);

const say = (fact: unknown) => {
  process.stdout.write(`${JSON.stringify(fact)}\n`);
};

const acts: Readonly<Record<string, () => void | Promise<void>>> = {
  open: () => {
    using store = openTapeStore(path);
    const { created, id } = store.sessions.open(name);
    const { added } = store.entries.append(name, [user('first')], { key: 'first' });
    say({ created, id, added });
  },
  modes: () => {
    process.umask(0o000);
    using store = openTapeStore(path);
    store.sessions.open(name);
    const dir = dirname(path);
    const mode = (file: string) => (statSync(file).mode & 0o7777).toString(8);
    say({
      '.': mode(dir),
      ...Object.fromEntries(readdirSync(dir).map((file) => [file, mode(join(dir, file))])),
    });
  },
  append: () => {
    using store = openTapeStore(path);
    for (let i = 1; i <= Number(count); i += 1)
      say(store.entries.append(name, [user(`${process.pid} ${i}`)], { key: `${process.pid}-${i}` }).to);
  },
  batches: () => {
    using store = openTapeStore(path);
    for (let i = 1; i <= Number(count); i += 1)
      say(store.entries.append(name, [user(`q${i}`), assistant(`a${i}`)], { key: `b${i}` }).to);
  },
  hold: async () => {
    using store = openTapeStore(path);
    say(store.leases.acquire(name, processOwner('holder')));
    await once(process.stdin, 'end');
  },
  post: () => {
    using store = openTapeStore(path);
    for (let i = 1; i <= Number(count); i += 1) {
      const body = { type: 'append' as const, drafts: [user(`posted ${i}`)] };
      const { owner } = store.inbox.post(name, { body, key: `p${i}` });
      // A process that finds no owner does it itself, unless another one is quicker.
      if (owner === undefined) store.inbox.drain(name);
      say(i);
    }
  },
  /** Forks, and is gone after the commit, before the line reaches the graph file. */
  'fork and die': () => {
    let armed = false;
    const journal = {
      tail: () => {
        if (armed) process.kill(process.pid, 'SIGKILL');
        return { g: 0, hash: '0'.repeat(64), torn: false };
      },
      append: () => {
        throw new Error('never reached');
      },
    };
    using store = openTapeStore(path, { journal: { ...journal, append: () => {} } });
    armed = true;
    store.lineage.fork(name, { name: 'child' });
  },
};

process.stdin.resume();
say('ready');
await once(process.stdin, 'data');
await acts[act]?.();
process.stdin.destroy();
