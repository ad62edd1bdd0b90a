import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { delegationTools, openDeck } from '@tapedeck/runtime';
import { pgBoss } from '@tapedeck/runtime/pg-boss';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import type { TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { BossOrder } from './boss-worker.ts';
import { program } from './programs.ts';
import { tempDir } from './temp-dir.ts';

/** A lead that delegates to children of four steps each: three calls of a tool, and a result. */
function leadScript(children: number, stepMs: number): readonly ScriptAnswer[] {
  const tasks = Array.from({ length: children }, (_, i) => ({ task: `part ${i}` }));
  const steps = [1, 2, 3].map((step) => ({
    when: { text: 'part' },
    delayMs: stepMs,
    toolCalls: [{ name: 'work', input: { step } }],
  }));
  return [
    {
      when: { text: 'lead' },
      toolCalls: [{ name: 'delegate', input: { tasks, inherit: 'nothing' }, id: 'spawn' }],
    },
    { when: { text: 'lead' }, text: 'all done' },
    ...steps,
    { when: { text: 'part' }, delayMs: stepMs, text: 'result' },
  ];
}

/** A process that runs children. */
export interface BossWorker {
  readonly pid: number;
  /** What its tools have begun: the name of the session, and the step. */
  readonly begun: readonly string[];
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

/** Starts a process that runs children, and waits until it does. */
async function startBossWorker(order: BossOrder): Promise<BossWorker> {
  const child = spawn(process.execPath, [...program('boss-worker.ts'), JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const begun: string[] = [];
  const ended = once(child, 'close').then(() => child.exitCode ?? child.signalCode);
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => begun.push(line));
  await Promise.race([once(lines, 'line'), ended]);
  if (begun.shift() !== 'ready' || child.pid === undefined) throw new Error(`a worker has failed: ${errors}`);
  return { pid: child.pid, begun, signal: (name) => void child.kill(name), ended };
}

/** How a home is worked on. */
interface BossOptions extends Partial<Pick<BossOrder, 'concurrency' | 'stopMs' | 'toolMs'>> {
  readonly children?: number;
  readonly stepMs?: number;
  readonly workers?: number;
  /** The address of the home for the workers. */
  readonly workerUrl?: string;
}

/** Processes that run the children of a home on a server, and a deck here that starts leads of children. */
export async function bossCrew(
  { url, store }: { readonly url: string; readonly store: TapeStore },
  { children = 20, stepMs = 150, workers: count = 3, workerUrl = url, ...order }: BossOptions = {},
) {
  const stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir());
  const script = dir.file('script.json');
  writeFileSync(script, JSON.stringify(leadScript(children, stepMs)));
  const workers: BossWorker[] = [];
  const start = async () => {
    const worker = await startBossWorker({ url: workerUrl, script, concurrency: 4, ...order });
    workers.push(worker);
    void worker.ended.then(() => workers.splice(workers.indexOf(worker), 1));
    stack.defer(async () => {
      worker.signal('SIGKILL');
      await worker.ended;
    });
    return worker;
  };
  const deck = stack.use(
    await openDeck({
      store,
      engine: pgBoss(url),
      model: `script:${script}`,
      env: {},
      limits: { maxChildren: 2_000, maxTree: 2_000 },
      tools: delegationTools(),
    }),
  );
  const main = await deck.session('main');
  const fill = async () => {
    await Promise.all(Array.from({ length: count - workers.length }, start));
  };
  return {
    workers,
    start,
    /** Starts workers, until as many are there as at first. */
    fill,
    /** Starts a lead, once as many workers are there as at first. */
    async lead(name = 'lead') {
      await fill();
      const begunBefore = new Map(workers.map((worker) => [worker, worker.begun.length]));
      const delegation = main.delegate({ task: 'lead the work', inherit: 'nothing', name });
      await delegation.forked;
      return {
        delegation,
        /** The worker that has the lead now. */
        async holder(): Promise<BossWorker> {
          for (;;) {
            const owner = (await store.leases.list()).find((one) => one.session === name);
            const worker = workers.find(({ pid }) => pid === owner?.owner.pid);
            if (worker !== undefined) return worker;
            await sleep(20);
          }
        },
        /** Resolves with the first worker that has begun this many calls of tools. */
        async busy(calls = 1): Promise<BossWorker> {
          for (;;) {
            const worker = workers.find((one) => one.begun.length - (begunBefore.get(one) ?? 0) >= calls);
            if (worker !== undefined) return worker;
            await sleep(5);
          }
        },
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** A home on a server, the processes that run its children, and a lead of children that this process starts. */
export async function bossScene(...given: Parameters<typeof bossCrew>) {
  const crew = await bossCrew(...given);
  return { ...crew, ...(await crew.lead()) };
}

/** What the tapes of a lead and of its children have: results, merges, and the steps of each child. */
export async function recordOf(store: TapeStore, lead = 'lead') {
  const children = await store.sessions.list({ parent: lead, all: true });
  const marks = await Array.fromAsync(store.entries.read(lead, { own: true, namePrefix: 'merge/' }));
  const steps: number[] = [];
  const errors: string[] = [];
  for (const { id } of [{ id: lead }, ...children])
    for await (const { payload } of store.entries.read(id, { own: true, kind: 'event', name: 'run/error' }))
      errors.push(JSON.stringify(payload));
  for (const { id } of children) {
    const messages = await Array.fromAsync(store.entries.read(id, { own: true, kind: 'message' }));
    const answers = messages.filter(
      ({ payload, meta }) => isObject(payload) && payload.role === 'assistant' && meta.partial !== true,
    );
    steps.push(answers.length);
  }
  return {
    results: children.filter(({ task }) => task === 'completed').length,
    merged: children.filter(({ delivery }) => delivery === 'merged').length,
    merges: new Set(marks.map(({ name }) => name)).size,
    repeatedMerges: marks.length - new Set(marks.map(({ name }) => name)).size,
    steps: [...new Set(steps)],
    errors,
    heads: children.map(({ head }) => head),
  };
}
