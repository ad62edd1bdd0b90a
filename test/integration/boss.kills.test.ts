import { setTimeout as sleep } from 'node:timers/promises';
import { openPostgresHome, postgres } from '@tapedeck/tape/postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bossCrew, recordOf } from '../support/boss.ts';
import { ownServer } from '../support/postgres-server.ts';
import { sized } from '../support/size.ts';
import { slowLink } from '../support/slow-link.ts';

const limit = 600_000;

const children = sized(8, 8, 20);

/** A parent with children of four steps, whatever happened: each result, merge and step once. */
const right = {
  lead: { status: 'completed', text: 'all done' },
  record: {
    results: children,
    merged: children,
    merges: children,
    repeatedMerges: 0,
    steps: [4],
    errors: [],
  },
  problems: [],
};

/** One home, and three workers: those that a test kills are replaced for the next. */
async function scene() {
  const stack = new AsyncDisposableStack();
  const server = stack.use(await ownServer());
  const store = stack.use(await postgres(server.url));
  const link = stack.use(await slowLink(server.url));
  const crew = stack.use(
    await bossCrew({ url: server.url, store }, { children, workerUrl: link.url, toolMs: 200 }),
  );
  return {
    server,
    link,
    crew,
    /** What the tapes have, once all is done, and what verification finds. */
    async outcome(name: string, delegation: PromiseLike<readonly { status: string; text: string }[]>) {
      const [lead] = await delegation;
      const { heads, ...record } = await recordOf(store, name);
      using checked = await openPostgresHome(server.url);
      return {
        lead: { status: lead?.status, text: lead?.text },
        record,
        heads,
        problems: [...checked.verify()],
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

let at: Awaited<ReturnType<typeof scene>>;
beforeAll(async () => {
  at = await scene();
}, limit);
afterAll(async () => await at[Symbol.asyncDispose]());

test(
  'the worker that holds the parent is killed',
  async () => {
    const lead = await at.crew.lead('parent');
    await lead.busy();
    (await lead.holder()).signal('SIGKILL');
    expect(await at.outcome('parent', lead.delegation)).toMatchObject(right);
  },
  limit,
);

test(
  'a worker in the middle of a step is killed',
  async () => {
    const lead = await at.crew.lead('step');
    (await lead.busy(3)).signal('SIGKILL');
    expect(await at.outcome('step', lead.delegation)).toMatchObject(right);
  },
  limit,
);

test(
  'two workers are killed at once',
  async () => {
    const lead = await at.crew.lead('two');
    await lead.busy(2);
    const holder = await lead.holder();
    const other = at.crew.workers.find((worker) => worker !== holder);
    holder.signal('SIGKILL');
    other?.signal('SIGKILL');
    expect(await at.outcome('two', lead.delegation)).toMatchObject(right);
  },
  limit,
);

test(
  'a worker that was stopped past its leases writes nothing when it goes on',
  async () => {
    const lead = await at.crew.lead('stopped');
    const worker = await lead.busy(2);
    worker.signal('SIGSTOP');
    const before = await at.outcome('stopped', lead.delegation);
    expect(before).toMatchObject(right);
    worker.signal('SIGCONT');
    await sleep(2_000);
    expect((await at.outcome('stopped', lead.delegation)).heads).toEqual(before.heads);
  },
  limit,
);

test(
  'connections of all workers are lost, again and again',
  async () => {
    const lead = await at.crew.lead('cut');
    await lead.busy();
    for (const _ of [1, 2, 3, 4]) {
      at.link.cut();
      await sleep(700);
    }
    expect(await at.outcome('cut', lead.delegation)).toMatchObject(right);
  },
  limit,
);

test(
  'the server is restarted in the middle',
  async () => {
    const lead = await at.crew.lead('restarted');
    await lead.busy(2);
    await at.server.restart();
    expect(await at.outcome('restarted', lead.delegation)).toMatchObject(right);
  },
  limit,
);
