import { copyFileSync } from 'node:fs';
import { anchor, assistant, type HomeStore, note, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { countedIds } from '../support/ids.ts';
import { connected, serverPlace } from '../support/postgres.ts';
import { type Change, changesOf, foundIn, foundInFile, serverForger } from '../support/same-forgery.ts';
import { sized } from '../support/size.ts';
import { fixedSources, openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

const homeId = '01JD000000000000000000H0ME';

/** A home of a bundle that others take in, one session of it without content. */
function bundle(): string {
  using other = openStore(':memory:', { homeId: '01JD0000000000000000000THER', newId: countedIds('01JE') });
  other.sessions.open('given');
  other.entries.append('given', [user('A'), assistant('B')]);
  return bundleOf(other as unknown as HomeStore, 'given');
}

/** Fills each table of a home, with the same rows wherever it is. */
async function fill(store: HomeStore, given: string): Promise<void> {
  store.sessions.open('main', { title: 'Main' });
  const usage = { input: 10, output: 5, reasoning: 0, cacheRead: 0, cacheWrite: 0 };
  store.entries.append('main', [user('Look.'), anchor('task', { goal: 'x' }), assistant('Hm.')], {
    key: 'k',
  });
  store.lineage.fork('main', { name: 'child', intention: { nextSteps: 'Go' } });
  store.entries.append('child', [
    assistant('Blue.', { model: 'a/b', usage, cost: 0.5 }),
    note('run/x', { a: 1 }),
  ]);
  store.lineage.fork('child', { name: 'grand', inherit: { since: 'task' } });
  store.entries.append('grand', [assistant('x'.repeat(300_000))]);
  store.lineage.merge('grand');
  store.lineage.merge('child');
  store.sessions.update('main', { alias: { name: 'other', reason: 'y' } });
  store.history.rewind('main', 3);
  store.entries.append('main', [
    assistant([toolCall('c', 'read', {})], { usage }),
    toolResult({ toolCallId: 'c', toolName: 'read' }, 'x', { paths: { read: ['a'] } }),
    assistant([toolCall('d', 'read', {})], { usage }),
    note('run/start', { run: 'r' }),
  ]);
  store.entries.redact('main', 2, 'z');
  const lease = store.leases.acquire('main', { id: 'me' });
  store.inbox.post('main', { body: { type: 'input', drafts: [user('Later')] } });
  store.live.save([{ session: lease.id, run: 'r', chunks: [{ index: 0, chunk: '{}' }], epoch: lease.epoch }]);
  store.sessions.open('old');
  store.sessions.update('old', { lifecycle: 'archived' });
  await adopt(store, given);
}

/** A part of the changes at the sizes that are not to take long. */
const every = sized(40, 48, 1);

test('what is found of a forged row of a file is found of the same row on a server', {
  timeout: 1_200_000,
}, async () => {
  using dir = tempDir();
  const given = bundle();
  const sound = dir.file('sound.db');
  {
    using store = openStore(sound, { homeId });
    await fill(store, given);
  }
  await using place = await serverPlace();
  const home = await place.openHome({ homeId, ...fixedSources() });
  await fill(home, given);
  await using client = await connected(place.url);
  const forger = await serverForger(client);
  const differing: unknown[] = [];
  let count = 0;
  const isDangling = ({ table, set }: Change) => table === 'lineage' && set?.column === 'peer_id';
  for (const change of changesOf(sound)) {
    count += 1;
    if (count % every !== 0 && !isDangling(change)) continue;
    const path = dir.file('forged.db');
    copyFileSync(sound, path);
    const inFile = foundInFile(path, change);
    if (inFile === undefined) continue;
    const isMade = await forger.make(change);
    const onServer = isMade ? foundIn(home) : undefined;
    if (isMade) await forger.undo(change);
    if (isMade && JSON.stringify(onServer) !== JSON.stringify(inFile))
      differing.push({ ...change, inFile, onServer });
  }
  expect(differing).toEqual([]);
  home.close();
});

test('the server refuses to empty a table of recorded facts, to its owner too', async () => {
  await using place = await serverPlace();
  await using store = await place.open();
  await store.sessions.open('main');
  await store.entries.append('main', [user('One')]);
  await using client = await connected(place.url);
  for (const table of ['entry', 'tape', 'blob', 'blob_ref', 'lineage'])
    await expect(client.query(`TRUNCATE ${table} CASCADE`)).rejects.toMatchObject({ code: 'TD002' });
  expect(await Array.fromAsync(store.verify())).toEqual([]);
  expect((await store.sessions.find('main'))?.head).toBe(2);
});

test('a trigger of a server that is missing, disabled, changed or added is found, and made anew', async () => {
  await using place = await serverPlace({ isNew: true });
  using home = await place.openHome();
  home.sessions.open('main');
  await using client = await connected(place.url);
  const wrong = () => [...home.verifyDatabase()].map(({ code, message }) => `${code}: ${message}`);
  const mended = () => [...home.verifyDatabase()].map((problem) => home.mend(problem));
  expect(wrong()).toEqual([]);

  await client.query('DROP TRIGGER entry_delete ON entry');
  await client.query('ALTER TABLE tape DISABLE TRIGGER tape_delete');
  await client.query('ALTER TABLE blob ENABLE REPLICA TRIGGER blob_update');
  await client.query('DROP TRIGGER lineage_truncate ON lineage');
  await client.query('CREATE TRIGGER lineage_truncate AFTER TRUNCATE ON lineage EXECUTE FUNCTION refuse()');
  await client.query(
    'CREATE OR REPLACE FUNCTION entry_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$',
  );
  expect(wrong().toSorted()).toEqual([
    'trigger-wrong: trigger blob_update is disabled',
    'trigger-wrong: trigger entry_delete is missing',
    'trigger-wrong: trigger entry_guard is changed',
    'trigger-wrong: trigger lineage_truncate is changed',
    'trigger-wrong: trigger tape_delete is disabled',
  ]);
  expect(new Set(mended())).toEqual(new Set([true]));
  expect(wrong()).toEqual([]);
  await expect(client.query('UPDATE entry SET at = 1')).rejects.toMatchObject({ code: 'TD002' });
  await expect(client.query('DELETE FROM tape')).rejects.toMatchObject({ code: 'TD002' });

  await client.query(
    'CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$',
  );
  await client.query('CREATE TRIGGER seen AFTER INSERT ON entry FOR EACH ROW EXECUTE FUNCTION seen()');
  const added = ['trigger-wrong: trigger seen on entry does not belong in a tape home'];
  expect(wrong()).toEqual(added);
  await client.query('ALTER TABLE tape DISABLE TRIGGER tape_delete');
  expect(mended()).toEqual([true, false]);
  expect(wrong()).toEqual(added);
});
