import { writeFileSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { countingStore } from '../support/counting-store.ts';
import { openDeck } from '../support/deck.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const most = 20;

/** Calls without those of timers, of leases and of live answers: their number depends on how long the machine takes. */
function withoutPolls(calls: readonly string[]): readonly string[] {
  const left: string[] = [];
  let looks = 0;
  for (const call of calls) {
    // A look at the lease also lists the inbox.
    if (call.startsWith('leases.holds ')) looks += 1;
    else if (looks > 0 && call.startsWith('inbox.list ')) looks -= 1;
    else if (!/^(?:changes|leases\.extend|live\.save) /.test(call)) left.push(call);
  }
  return left;
}

test(`a delegated child with one model call makes at most ${most} calls of the store, fork and merge included`, async () => {
  using dir = tempDir();
  await using own = openStore();
  const { store, calls } = countingStore(own);
  writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'Done.' }]));
  await using deck = await openDeck({ store, model: `script:${dir.file('script.json')}` });
  const main = await deck.session('main');
  own.entries.append('main', [user('hello')]);
  calls.length = 0;
  const [outcome] = await main.delegate({ task: 'Look' });
  await deck.idle();
  expect(outcome).toMatchObject({ status: 'completed', text: 'Done.', merged: { state: 'merged' } });
  // The store was counted, and each call is named where there are too many.
  for (const act of ['lineage.fork', 'leases.acquire', 'leases.release', 'lineage.collect', 'lineage.merge'])
    expect(calls.filter((call) => call.startsWith(`${act} `))).toHaveLength(1);
  const settles = (call: string) => call.startsWith('entries.append ') && call.includes('"settles":');
  expect(calls.filter(settles)).toHaveLength(1);
  const made = withoutPolls(calls);
  expect(made.length > most ? made : []).toEqual([]);
});

test('a message to an idle session makes at most 22 calls of the store, and reads its row at most 6 times', async () => {
  using dir = tempDir();
  await using own = openStore();
  const { store, calls } = countingStore(own);
  writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'One.' }, { text: 'Two.' }]));
  await using deck = await openDeck({ store, model: `script:${dir.file('script.json')}` });
  const main = await deck.session('main');
  for (const text of ['One.', 'Two.']) {
    calls.length = 0;
    const { run } = await main.send('Go');
    expect(await run).toMatchObject({ text });
    await deck.idle();
    // Each call is named where there are too many.
    const made = withoutPolls(calls);
    expect(made.length > 22 ? made : []).toEqual([]);
    expect(made.filter((call) => call.startsWith('sessions.find ')).length).toBeLessThanOrEqual(6);
    for (const act of ['inbox.post', 'leases.acquire', 'inbox.drain', 'leases.release'])
      expect(calls.filter((call) => call.startsWith(`${act} `))).toHaveLength(1);
  }
});

test('the terms of a fork are read once, however often the session runs and is merged', async () => {
  using dir = tempDir();
  await using own = openStore();
  const { store, calls } = countingStore(own);
  writeFileSync(dir.file('script.json'), JSON.stringify([{ text: 'One.' }, { text: 'Two.' }]));
  await using deck = await openDeck({ store, model: `script:${dir.file('script.json')}` });
  const main = await deck.session('main');
  const [outcome] = await main.delegate({ task: 'Look', name: 'kid' });
  const [resumed] = await main.delegate({ task: 'Look again', resume: 'kid' });
  expect([outcome, resumed]).toMatchObject([
    { text: 'One.', merged: { state: 'merged' } },
    { text: 'Two.', merged: { state: 'merged' } },
  ]);
  const { id, base = 0 } = own.sessions.find('kid') ?? {};
  const first = JSON.stringify([id, { from: base + 1, to: base + 1 }]);
  expect(calls.filter((call) => call === `entries.read ${first}`)).toHaveLength(1);
});
