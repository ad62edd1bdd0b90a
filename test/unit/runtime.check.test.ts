import { join } from 'node:path';
import { attest, check } from '@tapedeck/runtime';
import { checkSome } from '@tapedeck/runtime/internal';
import { assistant, openTapeStore, type SqliteTapeStore, type TapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { laterStore } from '../support/later-store.ts';
import { rawDb } from '../support/raw-db.ts';
import { playScript } from '../support/script.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

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
  await playScript(store);
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

test('a check of some sessions finds of each what a check of all finds of it', async () => {
  using dir = tempDir();
  const path = join(dir.path, 'tape.db');
  using store = openStore(path);
  await playScript(store);
  for (let n = 0; n < 120; n += 1) {
    const { session } = store.lineage.fork('main', { name: `task${n}`, intention: { nextSteps: 'Fix it.' } });
    store.entries.append(session, [assistant('Fixed.')]);
    if (n % 3 === 0) store.lineage.merge(session);
  }
  {
    using db = rawDb(path);
    db.dropTriggers();
    db.run(`UPDATE entry SET epoch = 9 WHERE tape_id % 7 = 0 AND seq > 4`);
    db.run(`UPDATE lineage SET to_seq = to_seq - 1 WHERE type = 'merge' AND tape_id % 2 = 0`);
  }
  const { sections } = await check(store);
  const all = Object.values(sections).flatMap(({ findings }) => findings);
  const infos = store.sessions.list({ all: true });
  for (const part of [infos, infos.filter((_, n) => n % 3 !== 1), infos.slice(5, 6)]) {
    const some = await checkSome(store, part);
    const names = new Set(part.map(({ session }) => session));
    const found = Object.values(some.sections).flatMap(({ findings }) => findings);
    const idsOf = (findings: typeof all) => new Set(findings.map(({ id }) => id));
    expect(idsOf(found)).toEqual(idsOf(all.filter(({ session }) => names.has(session ?? ''))));
    expect(some.sessions).toBe(part.length);
  }
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

/**
 * A file with a session of the base `tape`, and a parent with a merged child and a message that waits, of the base
 * `acme`.
 */
function withRealms(path: string): void {
  using mine = openTapeStore(path);
  mine.sessions.open('main');
  using other = openTapeStore(path, { base: 'acme' });
  other.sessions.open('main');
  other.entries.append('main', [user('Go')]);
  other.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Fix it.' } });
  other.entries.append('kid', [assistant('Fixed.')]);
  other.lineage.merge('kid');
  other.inbox.post('main', { body: { type: 'input', drafts: [user('Are you there?')] } });
}

test('an attestation has the sessions of every realm, and a comparison finds those that were cut', async () => {
  using dir = tempDir();
  const path = join(dir.path, 'tape.db');
  withRealms(path);
  const older = join(dir.path, 'older.db');
  using store = openTapeStore(path);
  await store.backup(older);
  {
    using other = openTapeStore(path, { base: 'acme' });
    other.entries.append('main', [user('more')]);
  }
  const lines = await linesOf(store);
  expect(lines.filter((line) => line.startsWith('session '))).toHaveLength(3);
  expect((await check(store, { against: { lines } })).sections.attestation?.findings).toEqual([]);
  for (const base of ['tape', 'acme', 'third']) {
    using cut = openTapeStore(older, { readonly: true, base });
    const { damaged, sections } = await check(cut, { against: { lines } });
    expect({ damaged, codes: sections.attestation?.findings.map(({ code }) => code) }).toEqual({
      damaged: true,
      codes: ['attested-tape-shorter'],
    });
  }
});

test('a check covers the work of every realm, and names a session of another one by its id and tape', async () => {
  using dir = tempDir();
  const path = join(dir.path, 'tape.db');
  withRealms(path);
  using mine = openTapeStore(path);
  using other = openTapeStore(path, { base: 'acme' });
  const { id = '' } = other.sessions.find('main') ?? {};
  const near = (await check(other)).sections.completeness.findings;
  expect(near).toMatchObject([{ code: 'message-unanswered', session: 'main' }]);
  const { sections } = await check(mine);
  expect(sections.completeness.findings).toMatchObject([
    { code: 'message-unanswered', session: id, next: { act: 'run', session: id } },
  ]);
  expect(sections.completeness.findings[0]?.message).toContain('(tape acme:main)');
  expect(sections.home.findings).toEqual([]);
  expect([...mine.examine()]).toMatchObject([{ code: 'inbox-waiting', session: id }]);
});
