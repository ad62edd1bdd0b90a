import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openJournal } from '@tapedeck/graph/journal';
import { type Deck, type DeckTools, delegateTool, type Session, SessionError } from '@tapedeck/runtime';
import { type Entry, openTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { z } from 'zod';
import { openDeck } from './deck.ts';
import { firstText, formSchema, type Scene, tasksOf, taskText, withForm } from './delegate-scenes.ts';

// The SDK warns that this provider does not enforce schemas: what it answers is checked all the same.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** A home with one scene. */
export interface DelegateHome {
  /** Distinguishes it from the other homes of one server. */
  readonly id: string;
  readonly scene: Scene;
  readonly path: string;
  readonly db: string;
  readonly graph: string;
  /** Where tools write the ids of their calls, each line synced to the disk. */
  readonly effects: string;
  /** The address of its provider. */
  readonly url: string;
}

/** Opens a home with the tools of its scene; the store is closed with the deck. */
export async function delegateDeck(home: DelegateHome): Promise<Deck> {
  const store = openTapeStore(home.db, { journal: openJournal(home.graph), durability: 'fast' });
  const deck = await openDeck({
    home: home.path,
    store,
    tools: toolsOf(home),
    model: 'openai-compatible/test-model',
    env: { OPENAI_BASE_URL: home.url, OPENAI_API_KEY: 'test-key' },
  });
  return {
    ...deck,
    [Symbol.asyncDispose]: async () => {
      await deck[Symbol.asyncDispose]();
      store.close();
    },
  };
}

function toolsOf({ effects }: DelegateHome): DeckTools {
  const acting = {
    inputSchema: z.strictObject({}),
    paths: {},
    execute: async (_: unknown, { toolCallId }: { toolCallId: string }) => {
      const file = openSync(effects, 'a');
      writeSync(file, `${toolCallId}\n`);
      fsyncSync(file);
      closeSync(file);
      return `did ${toolCallId}`;
    },
  };
  return {
    write: tool(acting),
    sign: tool({ ...acting, needsApproval: true }),
    read: { ...tool(acting), safeToRepeat: true },
    pause: tool({ inputSchema: z.strictObject({}), execute: async () => await sleep(40, 'paused') }),
    delegate: delegateTool(),
  };
}

/** Delegates the tasks of a scene, each under its own key: again, they are the same children. */
export async function delegateAll({ deck, home }: InHome): Promise<void> {
  const main = await deck.session('main');
  const output = { responseFormat: Promise.resolve({ type: 'json', schema: formSchema }) };
  await main.delegate(
    tasksOf[home.scene].map((task) => ({
      task: taskText(task, home.id),
      key: task,
      ...(withForm.has(task) && { output }),
    })),
    { concurrency: 8 },
  );
}

interface InHome {
  readonly deck: Deck;
  readonly home: DelegateHome;
}

/** Gives `main` its first message, once, and makes sure that it is answered, by whichever process. */
export async function runMain({ deck, home }: InHome): Promise<void> {
  const main = await deck.session('main');
  await main.send(firstText(home.scene, home.id), { key: 'first', start: false });
  await settleMain(deck, main);
}

/** Gives the approvals that sessions below wait for, and waits for what comes of them. */
export async function approveBelow(deck: Deck, main: Session): Promise<void> {
  const { children = [] } = await main.status();
  for (const { session, waiting } of children)
    for (const { toolCallId, for: what } of waiting)
      if (what === 'approval')
        try {
          await (await main.respond(`${session}/${toolCallId}`, { approved: true })).run;
        } catch (error) {
          // Another process has answered it meanwhile, or runs its session.
          const { code } = error as { code?: unknown };
          if (code !== 'SESSION_NO_CALL' && code !== 'SESSION_BUSY') throw error;
        }
  await deck.idle();
}

/** Between two looks at what other processes do: each takes milliseconds. */
const lookMs = 60;
/** After so many looks at which no process worked, none does any more. */
const quietMax = 8;

/** Runs a session, or waits while another process does, until it has answered every message. */
export async function settleMain(deck: Deck, main: Session): Promise<void> {
  while (!(await isAtRest(main))) {
    try {
      await main.run();
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== 'SESSION_BUSY') throw error;
      // Another process runs it.
      await sleep(lookMs);
    }
    await main.idle();
    await approveBelow(deck, main);
  }
}

/** Whether the last thing that was said in a session is an answer, and nothing waits. */
async function isAtRest(main: Session): Promise<boolean> {
  const { head, settled } = await main.info();
  const { queued } = await main.status();
  if (head !== settled || queued > 0) return false;
  let last: Entry | undefined;
  for await (const entry of main.entries({ kind: 'message' }))
    if (entry.meta.source !== 'merge') last = entry;
  if (last === undefined) return true;
  const { payload, meta } = last;
  return isObject(payload) && payload.role === 'assistant' && meta.partial !== true && meta.finish === 'stop';
}

/** Waits until all children are merged and `main` has their reports, or no process works any more. */
export async function untilReported({ deck }: InHome): Promise<void> {
  const main = await deck.session('main');
  for (let quiet = 0; quiet < quietMax; ) {
    const children = await deck.sessions({ parent: main.id, all: true });
    if (children.every(({ delivery }) => delivery !== undefined) && (await isAtRest(main))) return;
    quiet = (await deck.store.leases.list()).length === 0 ? quiet + 1 : 0;
    await sleep(lookMs);
  }
}
