import { assistant, note, result, user } from '../entry/entry.js';
import { all,               finishedChild, sessionOf, textOf } from './contract.js';

/** What a merge delivers: the result of a child, or of a range of it. */
export const resultChapter          = ({ test, expect }, open) => {
  test('the result is the explicit one, else the last text of the model, after rewinds', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.entries.append('child', [assistant('wrong')]);
    await store.history.rewind('child', 6);
    await store.lineage.merge('child');
    expect(textOf((await all(store.entries.read('main', { last: 1 })))[0])).toMatch(/\ndone\n/);
    await store.entries.append('child', [result({ answer: 42 })]);
    await store.entries.append('child', [assistant('chatter')]);
    await store.lineage.merge('child');
    expect(textOf((await all(store.entries.read('main', { last: 1 })))[0])).toMatch(/\n\{"answer":42\}\n/);
  });

  test('a long result is cut, with a pointer to the whole', async () => {
    await using store = await open();
    await sessionOf(store, 'main', 1);
    await store.lineage.fork('main', { name: 'child' });
    await store.entries.append('child', [assistant('x'.repeat(500))]);
    await store.lineage.merge('child', { charsMax: 100 });
    const text = textOf((await all(store.entries.read('main', { last: 1 })))[0]);
    expect(text).toMatch(/\nx{100}\n\[400 more characters; the whole text: tape show child@4\]\n/);
  });

  test('collecting a range returns what a merge of it delivers, and its position', async () => {
    await using store = await open();
    await finishedChild(store);
    expect(await store.lineage.collect('child', [4, 6])).toMatchObject({
      text: 'done',
      textSeq: 6,
      complete: true,
    });
    await store.entries.append('child', [assistant('wrong')]);
    await store.history.rewind('child', 6);
    expect(await store.lineage.collect('child', [4, 8])).toMatchObject({ text: 'done', textSeq: 6 });
    expect(await store.lineage.collect('child', [4, 4])).toMatchObject({ textSeq: undefined });
  });

  test('the pieces of an interrupted answer are delivered together', async () => {
    await using store = await open();
    await finishedChild(store);
    const cut = (text        ) => assistant(text, { partial: true });
    await store.entries.append('child', [
      user('Tell all.'),
      cut('One, '),
      note('run/interrupted', {}),
      cut('two, '),
      note('run/error', { message: 'overloaded' }),
    ]);
    expect(await store.lineage.collect('child')).toMatchObject({
      text: 'One, two, \n\nError: overloaded',
      textFrom: 8,
    });
    await store.entries.append('child', [assistant('three.')]);
    expect(await store.lineage.collect('child')).toMatchObject({
      text: 'One, two, three.',
      textSeq: 12,
      textFrom: 8,
    });
    await store.lineage.merge('child');
    const [mark, message] = await all(store.entries.read('main', { last: 2 }));
    expect(textOf(message).includes('>\nOne, two, three.\n<')).toBe(true);
    expect(JSON.stringify(mark?.payload).includes('"partial"')).toBe(false);
    // A model that began again has given the whole answer itself.
    await store.entries.append('child', [user('Again.'), cut('One, '), assistant('One, two.')]);
    expect(await store.lineage.collect('child')).toMatchObject({ text: 'One, two.' });
  });

  test('a merge whose text lacks pieces of an interrupted answer is partial, and says where they are', async () => {
    await using store = await open();
    await finishedChild(store);
    const cut = (text        ) => assistant(text, { partial: true });
    const rest = '[An interrupted answer came before this one: tape show child@';
    const merged = async () => {
      await store.lineage.merge('child');
      const [mark, message] = await all(store.entries.read('main', { last: 2 }));
      return { state: (mark?.payload                                   )?.state, text: textOf(message) };
    };
    await store.entries.append('child', [cut('One, '), user('Go on.'), assistant('two.')]);
    expect(await store.lineage.collect('child')).toMatchObject({ text: `${rest}7]\ntwo.`, rest: [7] });
    const first = await merged();
    expect(first.state).toMatchObject({ partial: true, rest: [7] });
    expect(first.text.includes(`partial="true">\n${rest}7]\ntwo.\n<`)).toBe(true);
    // A piece that was merged before is not delivered twice.
    await store.entries.append('child', [user('More.'), cut('Three, ')]);
    await merged();
    await store.entries.append('child', [note('run/interrupted', {}), assistant('four.')]);
    expect((await merged()).text.includes(`${rest}11]\nfour.\n<`)).toBe(true);
    // What follows another request is another answer.
    await store.entries.append('child', [user('More.'), cut('Five, ')]);
    await merged();
    await store.entries.append('child', [user('Now six.'), assistant('Six.')]);
    expect(await store.lineage.collect('child')).toMatchObject({ text: 'Six.' });
    expect(JSON.stringify(await merged()).includes('partial')).toBe(false);
  });

  test('a text in pieces that is cut names all of them', async () => {
    await using store = await open();
    await finishedChild(store);
    await store.entries.append('child', [assistant('One, ', { partial: true }), assistant('two.')]);
    await store.lineage.merge('child', { charsMax: 4 });
    const [message] = await all(store.entries.read('main', { last: 1 }));
    const cut = 'One,\n[5 more characters; the whole text: tape log child --from 7 --to 8]';
    expect(textOf(message).includes(cut)).toBe(true);
  });
};
