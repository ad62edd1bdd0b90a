import { undoSession } from '@tapedeck/runtime';
import { parseJsonLines, planClaudeCode, type Reconciled, reconcile } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const lines = (records: readonly object[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;
const inside = { isSidechain: true, agentId: 'x1' };
const agents = [
  {
    id: 'x1',
    lines: lines([
      person({ uuid: 'su1' }, 'look', inside),
      model({ uuid: 'sa1', parent: 'su1', id: 'sm1' }, [says('all is well')], inside),
    ]),
  },
];
const title = (customTitle: string) => ({ type: 'custom-title', customTitle, sessionId: 's-1' });
const begun = [
  person({ uuid: 'u1' }, 'look around'),
  model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [calls('t1', 'Task')]),
  person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'all is well')], {
    toolUseResult: { status: 'completed', agentId: 'x1' },
  }),
  model({ uuid: 'a2', parent: 'r1', id: 'm2' }, [says('done')]),
];

/** Imports a transcript with a subagent, lets a person act, and imports what it has got since. */
async function grownAfter(act: (store: SqliteTapeStore) => unknown) {
  const store = openStore();
  reconcile(store, planClaudeCode({ name: 's-1', lines: lines([...begun, title('First')]), agents }));
  await act(store);
  const more = [...begun, person({ uuid: 'u2', parent: 'a2' }, 'and now?'), title('Second')];
  const done = reconcile(store, planClaudeCode({ name: 's-1', lines: lines(more), agents }));
  expect([...store.verify()]).toEqual([]);
  return { store, done };
}

const refusals = (done: readonly Reconciled[]) => done.map(({ added, refused }) => [added, refused?.message]);

test('a merge that a person undid stays undone', async () => {
  const { store, done } = await grownAfter(async (store) => await undoSession(store, 's-1'));
  expect(done[0]?.added).toBe(1 + 1);
  expect(store.sessions.find('agent-x1')).toMatchObject({ undone: true });
  // Until the person makes it again.
  store.lineage.merge('agent-x1');
  expect(store.sessions.find('agent-x1')?.undone).toBeUndefined();
});

test('a name that a person gave stays the title', async () => {
  const { store } = await grownAfter((store) => store.sessions.update('s-1', { name: 'mine' }));
  expect(store.sessions.find('mine')).toMatchObject({ session: 's-1', title: 'mine' });
  expect((await grownAfter(() => {})).store.sessions.find('s-1')?.title).toBe('Second');
});

test.each([false, true])(
  'a session that a person deleted does not come back (purged: %s)',
  async (purges) => {
    const remove = (store: SqliteTapeStore, name: string) => {
      const { id = '' } = store.sessions.find(name) ?? {};
      store.sessions.update(id, { lifecycle: 'destroyed' });
      if (purges) store.sessions.purge(id, 'it names a customer');
    };
    const what = purges ? 'purged' : 'deleted';
    const child = await grownAfter((store) => remove(store, 'agent-x1'));
    expect(refusals(child.done)).toEqual([
      [2, undefined],
      [0, `cannot import into 'agent-x1': it was ${what} here`],
    ]);
    // Whatever it was called then.
    const both = await grownAfter((store) => {
      remove(store, 'agent-x1');
      store.sessions.update('s-1', { name: 'mine' });
      remove(store, 'mine');
    });
    const refused = [0, expect.stringContaining(`: it was ${what} here`)];
    expect(refusals(both.done)).toEqual([refused, refused]);
    expect(both.store.sessions.list({ all: true, deleted: false })).toEqual([]);
    // Who names another session takes it again.
    const plan = planClaudeCode({ name: 's-1', lines: lines(begun) });
    expect(reconcile(both.store, plan, { as: 'again' })[0]).toMatchObject({
      session: 'again',
      created: true,
    });
  },
);
