import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  writeSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { openJournal } from '@tapedeck/graph/journal';
import { type DeckTools, openDeck, type Run, type Session, type SessionEvent } from '@tapedeck/runtime';
import { type Entry, openTapeStore } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { z } from 'zod';
import { laterStore } from './later-store.ts';

/**
 * A process that sends `main` of each home two messages, once each, and runs it until both are answered: `run-worker.ts
 * ORDER`, where the order is a `RunOrder` as JSON. It works in one home after another.
 */
export interface RunOrder {
  readonly homes: readonly RunHome[];
  /** The address of the provider. */
  readonly url: string;
  /** Where every point that it passes is listed. */
  readonly points?: string;
  /** Kills itself when it passes the point for the nth time, from 1. */
  readonly dieAt?: { readonly point: string; readonly nth: number };
  /** The directory in which it copies a home as a kill would leave it, at these points: 'POINT NTH'. */
  readonly copies?: { readonly dir: string; readonly points: readonly string[] };
}

export interface RunHome {
  readonly db: string;
  readonly graph: string;
  /** Where tools write the ids of their calls, each line synced to the disk. */
  readonly effects: string;
  /** Where each acknowledgement is written as a `RunLine`, before the process continues. */
  readonly said: string;
}

export type RunLine =
  | { readonly did: 'send'; readonly key: string }
  | { readonly did: 'event'; readonly event: SessionEvent }
  | { readonly did: 'run'; readonly to: number; readonly finish: string };

const order = JSON.parse(process.argv[2] ?? '') as RunOrder;

const passed = new Map<string, number>();
let current: RunHome | undefined;
onCrashPoint((point) => {
  const nth = (passed.get(point) ?? 0) + 1;
  passed.set(point, nth);
  if (order.points !== undefined) appendFileSync(order.points, `${point}\n`);
  if (order.dieAt?.point === point && order.dieAt.nth === nth) process.kill(process.pid, 'SIGKILL');
  if (order.copies?.points.includes(point) === true)
    copyTo(join(order.copies.dir, `${point.replace('/', ' ')} ${nth}`));
});

function copyTo(dir: string): void {
  if (current === undefined) return;
  const { db, graph, effects, said } = current;
  mkdirSync(dir, { mode: 0o700 });
  for (const file of [db, `${db}-wal`, graph, effects, said])
    if (existsSync(file)) copyFileSync(file, join(dir, basename(file)));
}

/** The tools of a home, which do what cannot be undone: the file counts how often. */
function toolsOf({ effects }: RunHome): DeckTools {
  const act = (toolCallId: string): string => {
    const file = openSync(effects, 'a');
    writeSync(file, `${toolCallId}\n`);
    fsyncSync(file);
    closeSync(file);
    return `did ${toolCallId}`;
  };
  const acting = {
    inputSchema: z.strictObject({}),
    execute: async (_: unknown, { toolCallId }: { toolCallId: string }) => act(toolCallId),
  };
  return {
    write: tool(acting),
    read: { ...tool(acting), safeToRepeat: true },
    pay: tool({ ...acting, needsApproval: true }),
    fail: tool({
      ...acting,
      execute: async (_, { toolCallId }): Promise<string> => {
        throw new Error(`could not do ${act(toolCallId)}`);
      },
    }),
  };
}

async function work(home: RunHome): Promise<void> {
  const store = openTapeStore(home.db, { journal: openJournal(home.graph) });
  await using deck = await openDeck({
    store: process.env.TAPEDECK_STORE === 'later' ? laterStore(store) : store,
    tools: toolsOf(home),
    model: 'openai-compatible/test-model',
    env: { OPENAI_BASE_URL: order.url, OPENAI_API_KEY: 'test-key' },
    onApproval: () => ({ approved: true, reason: 'go ahead' }),
  });
  const main = await deck.session('main');
  const say = (line: RunLine) => appendFileSync(home.said, `${JSON.stringify(line)}\n`);

  const send = async (text: string, key: string) => {
    await main.send(text, { key, mode: 'followup' });
    say({ did: 'send', key });
  };

  /** Reports a run, and those that follow it. During the first calls the second message arrives. */
  const follow = async (first: Run | undefined): Promise<void> => {
    for (let run = first; run !== undefined; run = main.attach()) {
      let sending: Promise<void> | undefined;
      for await (const event of run) {
        say({ did: 'event', event });
        if (event.type === 'tool-started') sending ??= send('And then?', 'then');
      }
      await sending;
      const { to, finish } = await run;
      say({ did: 'run', to, finish });
    }
  };

  for (const [text, key] of [
    ['Go', 'go'],
    ['And then?', 'then'],
  ] as const) {
    await send(text, key);
    await follow(main.attach());
    if (!(await isAnswered(main))) await follow(main.run());
  }
  await main.idle();
}

async function isAnswered(main: Session): Promise<boolean> {
  let last: Entry | undefined;
  for await (const entry of main.entries({ last: 1 })) last = entry;
  const { payload, meta } = last ?? {};
  return isObject(payload) && payload.role === 'assistant' && meta?.finish === 'stop';
}

for (const home of order.homes) {
  current = home;
  await work(home);
}
