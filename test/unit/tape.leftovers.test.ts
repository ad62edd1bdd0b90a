import { type SqliteTapeStore, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { entryLines } from '../support/scripted.ts';
import { openStore } from '../support/store.ts';

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

test('a check says of what a killed import left whether the session was imported since', () => {
  using store = openStore();
  const staged = () => {
    const { id } = store.imports.stage('main', { keys: [] });
    store.imports.append(id, [{ ...user('Hello'), key: 'u1' }]);
    return id;
  };
  const said = () => [...store.examine()].map(({ code, message }) => [code, message]);
  staged();
  expect(said()).toEqual([['staging-left', "the import of 'main' is not finished: import it again"]]);
  store.imports.publish([staged()]);
  expect(said()).toEqual([
    [
      'staging-left',
      "an import of 'main' that is not finished left entries that nothing shows: it was imported since",
    ],
  ]);
});
