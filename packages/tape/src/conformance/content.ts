import { isTextRef } from '../entry/blob.ts';
import { assistant, user } from '../entry/entry.ts';
import { isObject } from '../entry/json.ts';
import { all, answers, asks, type Chapter, refusal, textOf } from './contract.ts';

/** Search, redaction, and outputs too large for an entry. */
export const contentChapter: Chapter = ({ test, expect }, open) => {
  test('a search takes every character literally, and finds an inherited entry once', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [user('the "quick" (brown) fox*'), assistant('a quick fox')]);
    await store.lineage.fork('main', { name: 'child' });
    const found = async (text: string) => (await store.entries.search({ text })).hits.map(({ seq }) => seq);
    expect(await found('"quick" (brown) fox*')).toEqual([2]);
    expect(await found('quick')).toEqual([3, 2]);
    expect(await found('quick OR slow')).toEqual([]);
    const [hit] = (await store.entries.search({ text: 'a quick fox' })).hits;
    expect(hit).toMatchObject({ session: 'main', seq: 3, sessions: ['main', 'child'] });
    expect((await store.entries.search({ text: 'a quick fox', session: 'child' })).hits.length).toBe(1);
  });

  test('a redacted entry is neither read nor found, and the tape still verifies', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [user('my secret'), assistant('I will not tell')]);
    expect((await store.entries.search({ text: 'secret' })).hits.length).toBe(1);
    const found = { session: 'main', seq: 2, repeated: false, quotedBy: [] };
    expect(await store.entries.previewRedact('main', 2)).toEqual(found);
    expect((await all(store.entries.read('main', { from: 2, to: 2 })))[0]?.payload === null).toBe(false);
    await store.entries.redact('main', 2, 'a secret');
    expect(await store.entries.previewRedact('main', 2)).toEqual({ ...found, repeated: true });
    expect((await all(store.entries.read('main', { from: 2, to: 2 })))[0]?.payload).toBe(null);
    expect((await store.entries.search({ text: 'my secret' })).hits).toEqual([]);
    const [receipt] = await all(store.entries.read('main', { last: 1 }));
    expect(receipt).toMatchObject({ kind: 'redaction', payload: { seq: 2, reason: 'a secret' } });
    expect(await all(store.verify())).toEqual([]);
    expect((await refusal(() => store.entries.redact('main', 99, 'x'))).code).toBe('TAPE_NO_SEQ');
  });

  test('several entries are redacted in one act, all or none', async () => {
    await using store = await open();
    await store.sessions.open('main');
    await store.entries.append('main', [user('one secret'), assistant('no'), user('other secret')]);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [user('third secret')]);
    const redact = async (points: readonly (number | string)[]) =>
      await store.entries.redact('child', points, 'secrets');
    expect((await refusal(() => redact([2, 99]))).code).toBe('TAPE_NO_SEQ');
    expect((await store.sessions.find('main'))?.head).toBe(4);
    const done = await redact([2, '@4', 'head', 2]);
    expect(done.map(({ session, seq, by, repeated }) => [session, seq, by, repeated])).toEqual([
      ['main', 2, 5, false],
      ['main', 4, 6, false],
      ['child', 6, 7, false],
      ['main', 2, 5, true],
    ]);
    expect((await store.entries.search({ text: 'secret' })).hits.map(({ kind }) => kind)).toEqual([]);
    expect(await redact([])).toEqual([]);
    expect(await all(store.verify())).toEqual([]);
  });

  test('names of models, titles and ids of calls may be texts that no column and no bundle keeps', async () => {
    await using store = await open();
    for (const [n, odd] of ['a\0b', 'half \ud800 of a character', 'x'.repeat(5000)].entries()) {
      const name = `s${n}`;
      await store.sessions.open(name, { title: odd });
      const meta = { model: odd, usage: { input: 3, output: 5 } };
      await store.entries.append(name, [user('Hello'), { ...assistant('Hi'), meta }, asks(odd)]);
      expect((await store.sessions.calls({ session: name })).map(({ usage }) => usage.output)).toEqual([5]);
      await store.lineage.fork(name, { name: `${name}-child`, title: odd, spawnCall: odd });
      await store.lineage.link(`${name}-child`, null, { call: odd, evidence: odd });
      expect((await all(store.entries.read(name, { from: 3, to: 3 })))[0]?.meta.model).toBe(odd);
    }
    expect(await all(store.verify())).toEqual([]);
  });

  test('a large output is stored as a blob, and read whole and in ranges', async () => {
    await using store = await open();
    await store.sessions.open('main');
    const text = Array.from({ length: 100_000 }, (_, i) => String(i).padStart(6, '0')).join('');
    await store.entries.append('main', [asks('c1')]);
    await store.entries.append('main', [answers('c1', text)]);
    const [entry] = await all(store.entries.read('main', { last: 1 }));
    const output = isObject(entry?.payload) && isObject(entry.payload.output) ? entry.payload.output : {};
    const ref = output.value;
    expect(isTextRef(ref)).toBe(true);
    const hash = isTextRef(ref) ? ref.hash : '';
    const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    expect(decode(await store.entries.blob(hash)) === text).toBe(true);
    expect(decode(await store.entries.blob(hash, { from: 600, to: 612 }))).toBe('000100000101');
    expect(textOf(entry)).toBe('tool-result');
  });
};
