import { existsSync, readFileSync, writeSync } from 'node:fs';
import { peers } from './all.ts';
import type { Load, Store, Text, Work } from './peer.ts';

/** What a process does. The texts are in a file, a line for each. */
export type Task =
  | { readonly work: 'fill'; readonly texts: string; readonly entries: number; readonly sessions: number }
  | { readonly work: 'append'; readonly texts: string; readonly entries: number; readonly count: number }
  | { readonly work: 'fork' | 'last'; readonly session: string; readonly count: number }
  | { readonly work: 'all'; readonly session: string }
  | { readonly work: 'list' }
  /** Writes again and again, says each time that it was acknowledged, and then ends, or is killed. */
  | {
      readonly work: 'acknowledge';
      readonly write: 'append' | 'fork';
      readonly session: string;
      readonly texts: readonly Text[];
      readonly killed: boolean;
    };

export interface Request {
  readonly peer: string;
  readonly home: string;
  readonly task: Task;
}

/** What a work took, and what it came to, so that it can be seen that it was done. */
export interface Result {
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakMB: number;
  /** Entries or sessions. */
  readonly count: number;
  /** Characters of the texts. */
  readonly chars: number;
}

/** What is said of a session that was made, or written to. */
export interface Said {
  readonly session: string;
}

type Open = () => Promise<Store>;

/** Does a task, and says its result in a line of JSON. The packages of the peer are loaded before. */
export async function run(load: Load, { peer: name, home, task }: Request): Promise<void> {
  const peer = peers.find((each) => each.name === name);
  if (peer === undefined) throw new Error(`there is no peer ${name}`);
  const opener = await peer.load(load);
  const open = async () => opener(home);
  if (task.work === 'fill') await fill(await open(), task);
  else if (task.work === 'acknowledge') await acknowledge(await open(), task);
  else say(await measured(open, task));
}

function say(result: Result | Said): void {
  writeSync(1, `${JSON.stringify(result)}\n`);
}

function textsOf(file: string, from: number, to: number): Text[] {
  const lines = readFileSync(file, 'utf8').split('\n', to).slice(from);
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Text);
}

type TaskOf<W extends Task['work']> = Extract<Task, { readonly work: W }>;

async function fill(store: Store, { texts: file, entries, sessions }: TaskOf<'fill'>): Promise<void> {
  const texts = textsOf(file, 0, entries);
  let session = '';
  for (let made = 0; made < sessions; made += 1) session = await store.fill(texts);
  await store.close();
  say({ session });
}

async function acknowledge(store: Store, task: TaskOf<'acknowledge'>): Promise<void> {
  const { write, session, texts, killed } = task;
  const append = write === 'append' ? await store.appender(session) : undefined;
  for (const text of texts) {
    await append?.(text);
    say({ session: write === 'append' ? session : await store.fork(session) });
  }
  if (killed) process.kill(process.pid, 'SIGKILL');
  await store.close();
}

async function measured(open: Open, task: TaskOf<Work>): Promise<Result> {
  const act = await prepared(open, task);
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const { store, came } = await act();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const peakMB = peak();
  const seen = await came();
  await store.close();
  return { ms, cpuMs: (user + system) / 1000, peakMB, ...seen };
}

/** A store that did the work, and what it came to, which is looked at when the time is taken. */
interface Done {
  readonly store: Store;
  readonly came: () => Promise<{ readonly count: number; readonly chars: number }>;
}

/** What is to be measured. All but appends begin with opening the store. */
async function prepared(open: Open, task: TaskOf<Work>): Promise<() => Promise<Done>> {
  switch (task.work) {
    case 'append': {
      const store = await open();
      const session = await store.fill(textsOf(task.texts, 0, task.entries));
      const append = await store.appender(session);
      const texts = textsOf(task.texts, task.entries, task.entries + task.count);
      return async () => {
        for (const text of texts) await append(text);
        return { store, came: () => last(store, session, task.count) };
      };
    }
    case 'fork':
      return async () => {
        const store = await open();
        const fork = await store.fork(task.session);
        return { store, came: () => last(store, fork, task.count) };
      };
    case 'last':
      return async () => {
        const store = await open();
        const texts = await store.last(task.session, task.count);
        return { store, came: async () => sum(texts) };
      };
    case 'all':
      return async () => {
        const store = await open();
        let [count, chars] = [0, 0];
        await store.all(task.session, (text) => {
          count += 1;
          chars += text.length;
        });
        return { store, came: async () => ({ count, chars }) };
      };
    case 'list':
      return async () => {
        const store = await open();
        const count = await store.list();
        return { store, came: async () => ({ count, chars: 0 }) };
      };
  }
}

async function last(store: Store, session: string, count: number) {
  return sum(await store.last(session, count));
}

export function sum(texts: readonly string[]): { count: number; chars: number } {
  return { count: texts.length, chars: texts.reduce((chars, text) => chars + text.length, 0) };
}

/** The greatest memory that the process had: see `../memory.ts` on why not `maxRSS`. */
function peak(): number {
  const status = '/proc/self/status';
  const own = existsSync(status) ? /VmHWM:\s+(\d+)/.exec(readFileSync(status, 'utf8'))?.[1] : undefined;
  return Number(own ?? process.resourceUsage().maxRSS) / 1024;
}
