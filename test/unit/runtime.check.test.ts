import { attest, check } from '@tapedeck/runtime';
import { assistant, type SqliteTapeStore, type TapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { laterStore } from '../support/later-store.ts';
import { playScript } from '../support/script.ts';
import { openStore } from '../support/store.ts';

/** A store with a session and a fork for a task. */
function withFork(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go')]);
  store.lineage.fork('main', { name: 'fix', intention: { nextSteps: 'Fix it.' } });
  return store;
}

const linesOf = async (store: TapeStore) =>
  (await Array.fromAsync(attest(store, { now: () => 0 }).lines)).map((line) => line.slice(0, -1));

test('a check of a sound store has five sections without a finding', async () => {
  const store = openStore();
  playScript(store);
  const { ok, damaged, sections } = await check(store);
  expect({ ok, damaged }).toEqual({ ok: true, damaged: false });
  expect(Object.entries(sections)).toEqual(
    ['home', 'integrity', 'lineage', 'graph_file', 'completeness'].map((name) => [
      name,
      { ok: true, findings: [] },
    ]),
  );
});

test('a finding has an id, a weight, and the step that ends it', async () => {
  const store = withFork();
  store.entries.append('fix', [assistant('Fixed.')]);
  const { ok, damaged, sections } = await check(store);
  expect({ ok, damaged }).toEqual({ ok: false, damaged: false });
  expect(sections.completeness).toMatchObject({
    ok: false,
    findings: [
      {
        id: 'fork-not-merged:fix@5',
        code: 'fork-not-merged',
        weight: 'incomplete',
        next: { act: 'merge', session: 'fix' },
      },
    ],
  });
});

test('a check of one session is of its own entries and work; an unknown session is refused', async () => {
  const store = withFork();
  store.entries.append('fix', [assistant('Fixed.')]);
  store.sessions.open('other');
  expect((await check(store, { session: 'other' })).ok).toBe(true);
  expect((await check(store, { session: 'main' })).ok).toBe(false);
  await expect(check(store, { session: 'mian' })).rejects.toMatchObject({ code: 'TAPE_NO_SESSION' });
});

test('a store of another kind is checked and attested alike', async () => {
  const store = withFork();
  const lines = await linesOf(store);
  expect(await linesOf(laterStore(store))).toEqual(lines);
  store.entries.append('main', [user('More')]);
  const { ok, sections } = await check(laterStore(store), { against: { lines } });
  expect([ok, sections.attestation]).toEqual([true, { ok: true, findings: [] }]);
});

test('an attestation of another store names each of its sessions', async () => {
  const lines = await linesOf(withFork());
  const other = openStore();
  other.sessions.open('main');
  other.sessions.open('fix');
  const { damaged, sections } = await check(other, { against: { lines } });
  // The ids of both stores begin alike: what differs are their histories.
  expect(damaged).toBe(true);
  expect(sections.attestation?.findings.map(({ weight }) => weight)).not.toContain('note');
});

test('a deck is checked and attested as its store, and other things are refused', async () => {
  const store = withFork();
  await using deck = await openDeck({ store });
  expect(await check(deck)).toEqual(await check(store));
  expect(await linesOf(deck.store)).toEqual(await linesOf(store));
  await expect(check('.tape' as never)).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  await expect(check(store, { sesion: 'main' } as never)).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  expect(() => attest(undefined as never)).toThrow('neither a store nor a deck');
});

test('a check writes nothing', async () => {
  const store = withFork();
  const before = store.changes();
  await check(store, { against: { lines: await linesOf(store) } });
  expect(store.changes()).toBe(before);
});
