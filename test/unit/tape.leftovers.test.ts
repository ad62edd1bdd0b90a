import { readdirSync, readFileSync } from 'node:fs';
import { type SqliteTapeStore, user } from '@tapedeck/tape';
import { onCrashPoint } from '@tapedeck/tape/crash-point';
import { expect, test } from 'vitest';
import { rawDb } from '../support/raw-db.ts';
import { entryLines } from '../support/scripted.ts';
import { atFullSize, sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

/** `main`, whose process died in the middle of its answer to "Go". */
function killedInAnswer(): SqliteTapeStore {
  const store = openStore();
  store.sessions.open('main');
  store.entries.append('main', [user('Go', { run: 'killed' })]);
  const chunks = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'I beg' },
  ].map((chunk, index) => ({ index, chunk }));
  store.live.save([{ session: 'main', run: 'killed', chunks }]);
  return store;
}

const saved = ['user: Go', 'assistant: I beg', 'event run/interrupted'];

test('archiving a session records what was saved of its answer, once', () => {
  using store = killedInAnswer();
  const { head } = store.sessions.update('main', { lifecycle: 'archived' });
  expect(store.live.read('main')).toEqual([]);
  expect(entryLines(store.entries.read('main')).slice(1)).toEqual(saved);
  expect(store.sessions.update('main', { lifecycle: 'archived' }).head).toBe(head);
  expect([...store.verify()]).toEqual([]);
});

test('redacting an entry records what was saved of an answer before it, and a repeated redaction nothing', () => {
  using store = killedInAnswer();
  const { by } = store.entries.redact('main', 2, 'secret');
  expect(store.live.read('main')).toEqual([]);
  const lines = entryLines(store.entries.read('main')).slice(2);
  expect(lines).toEqual([...saved.slice(1), 'redaction']);
  expect(by).toBe(5);
  store.live.save([
    { session: 'main', run: 'other', chunks: [{ index: 0, chunk: { type: 'text-start', id: 't' } }] },
  ]);
  expect(store.entries.redact('main', 2, 'secret')).toMatchObject({ by, repeated: true });
  expect(store.sessions.find('main')?.head).toBe(by);
  expect([...store.verify()]).toEqual([]);
});

test('a check says of what a killed import left whether the session was imported since, and then erases it', () => {
  using store = openStore();
  const staged = () => {
    const { id } = store.imports.stage('main', { keys: [] });
    store.imports.append(id, [{ ...user('a word of the first one'), key: 'u1' }]);
    return id;
  };
  const said = () => [...store.examine()].map(({ code, message }) => [code, message]);
  staged();
  expect(said()).toEqual([['staging-left', "the import of 'main' is not finished: import it again"]]);
  expect([...store.examine()].map((found) => store.mend(found))).toEqual([false]);
  store.sessions.open('main');
  const message =
    "an import of 'main' that is not finished left entries that nothing shows: another session has the name";
  expect(said()).toEqual([['staging-left', message]]);
  expect([...store.examine()].map((found) => store.mend(found))).toEqual([true]);
  expect(said()).toEqual([]);
  expect([...store.verify()]).toEqual([]);
});

test('nothing of what a killed import left is in the file once it is discarded, and nothing of it can be used', () => {
  using dir = tempDir();
  const secret = 'a word of the first one';
  const bytes = () => readdirSync(dir.path).some((name) => readFileSync(dir.file(name)).includes(secret));
  using store = openStore(dir.file('tape.db'));
  const { id } = store.imports.stage('main', { keys: [], title: secret });
  // With the entry that begins it, these are as many as one transaction erases.
  const drafts = Array.from({ length: sized(30, 19_999, 19_999) }, (_, n) => ({
    ...user(`${secret} ${n}`),
    key: `u${n}`,
  }));
  store.imports.append(id, drafts);
  expect(bytes()).toBe(true);
  expect(store.imports.discard([id])).toEqual({ erased: drafts.length + 1, wiped: true });
  expect(bytes()).toBe(false);
  expect(store.imports.stage('main', { keys: drafts.map(({ key }) => key) }).id).not.toBe(id);
  expect([...store.examine()].map(({ session }) => session)).toEqual(['main']);
  expect([...store.verify()]).toEqual([]);
});

test('a discard without ids writes the file anew where one before could not, and has nothing to do else', () => {
  using dir = tempDir();
  using store = openStore(dir.file('tape.db'));
  store.lockWaitMs = 0;
  const { id } = store.imports.stage('main', { keys: [] });
  store.imports.append(id, [user('a word of the first one')]);
  using reader = rawDb(dir.file('tape.db'));
  const hold = () => {
    reader.exec('BEGIN');
    reader.all('SELECT count(*) FROM entry');
  };
  const other = store.imports.stage('other', { keys: [] });
  expect(store.imports.discard([other.id], { wipe: false })).toEqual({ erased: 1, wiped: false });
  expect([...store.examine()].map(({ code }) => code)).toEqual(['staging-left']);
  hold();
  expect(store.imports.discard([id])).toEqual({ erased: 2, wiped: false });
  expect(store.imports.discard([])).toEqual({ erased: 0, wiped: false });
  reader.exec('COMMIT');
  expect(store.imports.discard([])).toEqual({ erased: 0, wiped: true });
  expect([...store.examine()]).toEqual([]);
  hold();
  expect(store.imports.discard([])).toEqual({ erased: 0, wiped: true });
});

test.runIf(atFullSize)(
  'what a process left that was killed while it discarded an import is listed, erased, and never published',
  () => {
    using store = openStore();
    const { id } = store.imports.stage('main', { keys: [], title: 'a word' });
    const drafts = Array.from({ length: 20_001 }, (_, n) => ({ ...user(`a word ${n}`), key: `u${n}` }));
    store.imports.append(id, drafts);
    let erasures = 0;
    onCrashPoint((point) => {
      if (point === 'purge/bodies') erasures += 1;
      if (erasures === 2) throw new Error('killed');
    });
    try {
      expect(() => store.imports.discard([id])).toThrow('killed');
    } finally {
      onCrashPoint(undefined);
    }
    expect([...store.verify()]).toEqual([]);
    expect(store.imports.unfinished()).toMatchObject([{ id, title: 'a word' }]);
    for (const act of [() => store.imports.publish([id]), () => store.imports.append(id, [user('x')])])
      expect(act).toThrow(expect.objectContaining({ code: 'TAPE_NO_SESSION' }));
    expect(store.imports.stage('main', { keys: drafts.map(({ key }) => key) }).id).not.toBe(id);
    expect(store.imports.discard([id])).toMatchObject({ erased: 2 });
    expect(store.imports.unfinished({ session: 'main' }).map((one) => one.title)).toEqual([undefined]);
    expect([...store.verify()]).toEqual([]);
  },
);
