import { check } from '@tapedeck/runtime';
import {
  assistant,
  handoff,
  type JsonObject,
  note,
  openTapeStore,
  type SqliteTapeStore,
  toolCall,
  toolResult,
  user,
  type ViewPolicy,
  view,
} from '@tapedeck/tape';
import { omit, viewVersions } from '@tapedeck/tape/internal';
import { expect, test } from 'vitest';
import { forge } from '../support/forge.ts';
import { disagreements } from '../support/python.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The manifest of a session's view for a provider, as a run records it. */
function manifest(store: SqliteTapeStore, session: string, policy: ViewPolicy = 'last-boundary'): JsonObject {
  const target = { provider: 'anthropic.messages' };
  return view(store.views.entries(session, { policy }), {
    policy,
    target,
  }).manifest() as unknown as JsonObject;
}

/** Appends an answer that records the view that it was made of. */
function answer(store: SqliteTapeStore, session: string, text: string, policy?: ViewPolicy): void {
  store.entries.append(session, [assistant(text, { view: manifest(store, session, policy) })]);
}

/** The problems of a store after an act, and again after a forgery that also puts its new hashes into the lineage. */
function found(
  write: (store: SqliteTapeStore) => void,
  [session, seq, from, to]: readonly [session: string, seq: number, from: string, to: string],
  of?: string,
): [string, string | null, number | null][] {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    write(store);
    expect([...store.verify()]).toEqual([]);
  }
  forge(path, (db) => {
    db.rewrite(session, seq, (payload) => payload.replace(from, to));
    db.relink();
  });
  using store = openTapeStore(path, { readonly: true });
  expect(disagreements(path, [...store.verify()])).toEqual([]);
  return [...store.verify(of)].map((problem) => [problem.code, problem.session, problem.seq]);
}

test('an answer contradicts another history than the one that it was made of, which nothing else shows', () => {
  const write = (store: SqliteTapeStore) => {
    store.sessions.open('main');
    store.entries.append('main', [user('Is the sky blue?'), assistant([toolCall('c', 'look', {})])]);
    store.entries.append('main', [toolResult({ toolCallId: 'c', toolName: 'look' }, 'It is blue.')]);
    answer(store, 'main', 'Yes.');
    store.entries.append('main', [user('Sure?')]);
    answer(store, 'main', 'Quite.');
  };
  for (const of of ['main', undefined])
    expect(found(write, ['main', 4, 'blue', 'green'], of)).toEqual([
      ['view-contradicted', 'main', 7],
      ['view-contradicted', 'main', 5],
    ]);
  expect(found(write, ['main', 5, 'Yes', 'No'])).toEqual([['view-contradicted', 'main', 7]]);
  expect(found(write, ['main', 7, 'Quite', 'Never'])).toEqual([]);
});

test('so do a failed call, a summary, and an answer of a child that inherits', () => {
  const write = (store: SqliteTapeStore) => {
    store.sessions.open('main');
    store.entries.append('main', [user('Is the sky blue?'), assistant('Yes.')]);
    store.lineage.fork('main', { name: 'child' });
    answer(store, 'child', 'Indeed.');
    store.entries.append('main', [note('run/error', { message: 'busy', view: manifest(store, 'main') })]);
    store.lineage.fork('main', { name: 'summary', kind: 'summarizer' });
    store.entries.append('summary', [note('summary/asked', { view: manifest(store, 'main') })]);
  };
  expect(found(write, ['main', 2, 'blue', 'green'])).toEqual([
    ['view-contradicted', 'main', 4],
    ['view-contradicted', 'child', 5],
    ['view-contradicted', 'summary', 6],
  ]);
  expect(found(write, ['main', 2, 'blue', 'green'], 'child')).toEqual([['view-contradicted', 'child', 5]]);
});

test('so does the summary that was merged', () => {
  const write = (store: SqliteTapeStore) => {
    store.sessions.open('main');
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [assistant('The sky is blue.')]);
    const own = view(store.entries.read('child', { own: true }), { policy: 'full' }).manifest();
    const asked = { session: 'child', ...own } as unknown as JsonObject;
    store.lineage.merge('child', { strategy: 'summary', text: 'A colour.', asked });
  };
  const problems = found(write, ['child', 3, 'blue', 'green'], 'main');
  expect(problems).toContainEqual(['view-contradicted', 'main', 2]);
});

test('policies, rewinds, boundaries and erased entries are no contradiction', () => {
  using store = openTapeStore(':memory:');
  store.sessions.open('main');
  const policies: readonly ViewPolicy[] = [
    'last-boundary',
    'full',
    { window: 2 },
    { window: { tokens: 20 } },
  ];
  for (const policy of policies) {
    for (const text of ['One.', 'Two.', 'Three.']) {
      store.entries.append('main', [user(text)]);
      answer(store, 'main', `To ${text}`, policy);
    }
    store.history.rewind('main', (store.sessions.find('main')?.head ?? 0) - 1);
    store.entries.append('main', [user('Again.')]);
    answer(store, 'main', 'Well.', policy);
    store.entries.append('main', [handoff('next', { summary: 'All was said.' })]);
  }
  store.entries.append('main', [
    assistant('Old.', { view: { ...manifest(store, 'main'), version: 1, digest: 'x' } }),
  ]);
  store.entries.append('main', [assistant('Mine.', { view: 'from the hill' })]);
  expect([...store.verify()]).toEqual([]);
  for (const seq of [2, 5, 11, 16]) store.entries.redact('main', seq, 'private');
  expect([...store.verify('main')]).toEqual([]);
});

test('a recorded view that was copied from another session is named, and prevents no backup', async () => {
  using dir = tempDir();
  using store = openTapeStore(dir.file('tape.db'));
  for (const name of ['main', 'copy']) store.sessions.open(name);
  store.entries.append('main', [user('One.')]);
  answer(store, 'main', 'Two.');
  store.entries.append('copy', [user('Another.')]);
  const [copied] = store.entries.read('main', { last: 1 });
  store.entries.append('copy', [assistant('Two.', copied?.meta)]);
  expect([...store.verify()].map(({ code, session }) => [code, session])).toEqual([
    ['view-contradicted', 'copy'],
  ]);
  await store.backup(dir.file('backup.db'));
  using backup = openTapeStore(dir.file('backup.db'), { readonly: true });
  expect(backup.sessions.find('copy')?.head).toBe(3);
});

test('a view of entries that were cut off is contradicted', () => {
  using dir = tempDir();
  const path = dir.file('tape.db');
  {
    using store = openTapeStore(path);
    store.sessions.open('main');
    store.entries.append('main', [user('One.'), assistant('Two.'), user('Three.')]);
    store.lineage.fork('main', { name: 'summary', kind: 'summarizer', cut: 2 });
    store.entries.append('summary', [note('summary/asked', { view: manifest(store, 'main') })]);
  }
  forge(path, (db) => db.cut('main', 1));
  using store = openTapeStore(path, { readonly: true });
  expect([...store.verify()].map(({ code, session, seq }) => [code, session, seq])).toEqual([
    ['view-contradicted', 'summary', 4],
  ]);
});

test('a long session whose every answer has a view is verified in time that grows with its length', () => {
  using store = openTapeStore(':memory:', { durability: 'fast' });
  store.sessions.open('main');
  const drafts = Array.from({ length: 1500 }, (_, n) => {
    const seqs = 2 * n + 2;
    const recorded = {
      policy: 'full',
      version: viewVersions[0],
      head: seqs,
      in: [[1, seqs]],
      out: [],
      tokens: 1,
      digest: 'x',
    };
    return [user(`Question ${n}`), assistant(`Answer ${n}`, { view: recorded })];
  });
  store.entries.append('main', drafts.flat());
  // All of them are wrong; the newest covers the others, and a few more are made for good measure.
  const codes = [...store.verify('main')].map(({ code }) => code);
  expect(new Set(codes)).toEqual(new Set(['view-contradicted']));
  expect(codes.length).toBeGreaterThan(3);
  expect(codes.length).toBeLessThan(150);
});

test('a view after an omission is made by the rules that it records', () => {
  const verified = (version: number, rules: number) => {
    using store = openTapeStore(':memory:');
    store.sessions.open('main');
    store.entries.append('main', [user('One.'), user('Two.'), omit([2])]);
    const entries = [...store.views.entries('main')];
    const made = view(rules === 5 ? entries.slice(0, 3) : entries).manifest();
    store.entries.append('main', [assistant('So.', { view: { ...made, version, head: 4 } as never })]);
    return [...store.verify()].map(({ code }) => code);
  };
  expect(viewVersions).toEqual([5, 6]);
  // An older build records what it makes of the entries: it knows no omissions.
  expect([verified(5, 5), verified(6, 6)]).toEqual([[], []]);
  expect([verified(5, 6), verified(6, 5)]).toEqual([['view-contradicted'], ['view-contradicted']]);
});

test('views of other rules are counted, and not damage: an answer, a failed call and a summary for a merge', async () => {
  using store = openTapeStore(':memory:');
  store.sessions.open('main');
  const older = (version?: number) => {
    const { version: _, ...rest } = manifest(store, 'main');
    return { ...rest, ...(version !== undefined && { version }) };
  };
  const unproved = async () => {
    const { ok, sections } = await check(store);
    expect([...store.verify()]).toEqual([]);
    return [
      ok,
      sections.integrity.findings.map(({ code, session, weight, message }) => [
        code,
        session,
        weight,
        message,
      ]),
    ];
  };
  store.entries.append('main', [user('Look: "view":{"version":1}')]);
  answer(store, 'main', 'It is.');
  expect(await unproved()).toEqual([true, []]);
  store.entries.append('main', [assistant('So.', { view: older(3) }), assistant('Yes.', { view: older() })]);
  store.entries.append('main', [note('run/retrying', { view: older(2) }), user('Ok.'), assistant('Ok.')]);
  expect(await unproved()).toEqual([
    true,
    [
      [
        'views-unproved',
        'main',
        'note',
        `3 views of 'main' by other rules (version 2, 3, none) cannot be compared; this build has ${viewVersions.join(' and ')}`,
      ],
    ],
  ]);
  store.entries.redact('main', 4, 'private');
  // An answer in the copy of a log has lost the digest of its view, and with that all that could be compared.
  store.entries.append('main', [assistant('Copied.', { view: { policy: 'last-boundary', head: 2 } })]);
  expect(JSON.stringify(await unproved())).toContain(`2 views of 'main' by other rules (version 2, none)`);
});
