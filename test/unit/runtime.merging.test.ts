import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { assistant, type SqliteTapeStore, toolCall, toolResult } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { Output, tool } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, scriptedDeck } from '../support/scripted.ts';

const mergesOf = (store: SqliteTapeStore, session = 'main') =>
  [...store.entries.read(session, { own: true })].filter(({ meta }) => meta.source === 'merge');

const textOf = (store: SqliteTapeStore) => {
  const [merge] = mergesOf(store);
  const content =
    isObject(merge?.payload) && Array.isArray(merge.payload.content) ? merge.payload.content : [];
  return content.map((part) => (isObject(part) ? String(part.text) : '')).join('');
};

const answersIn = (session: string, ...texts: string[]): ScriptAnswer[] =>
  texts.map((text) => ({ text, when: { session } }));

describe('a structured result', () => {
  const output = Output.object({ schema: z.object({ ports: z.array(z.number()) }) });

  test('is requested in the last step, recorded, merged unchanged, and reported', async () => {
    await using home = await scriptedDeck(answersIn('kid', 'I have looked.', '{"ports":[80,443]}'));
    const main = await home.deck.session('main');
    const [outcome] = await main.delegate({ task: 'Which ports?', name: 'kid', output });
    expect(outcome).toMatchObject({
      status: 'completed',
      output: { ports: [80, 443] },
      merged: { state: 'merged' },
    });
    expect(entryLines(home.store.entries.read('kid', { own: true })).slice(2)).toEqual([
      'assistant: I have looked.',
      expect.stringMatching(/^user: Return the result of your task now, as JSON/),
      'assistant: {"ports":[80,443]}',
      'result',
    ]);
    expect(textOf(home.store)).toContain('\n{"ports":[80,443]}\n');
    expect([...home.store.entries.read('main', { kind: 'anchor' })].at(-1)?.payload).toMatchObject({
      state: { strategy: 'structured' },
    });
  });

  test.each([
    { name: 'no JSON', text: 'ports 80 and 443', says: /it is not JSON/ },
    { name: 'something else', text: '{"ports":["http"]}', says: /ports\.0: / },
  ])('that is $name fails the child, and its parent receives the reason', async ({ text, says }) => {
    await using home = await scriptedDeck(answersIn('kid', 'I have looked.', text));
    const main = await home.deck.session('main');
    const [outcome] = await main.delegate({ task: 'Which ports?', name: 'kid', output });
    expect(outcome).toMatchObject({ status: 'failed', error: expect.stringMatching(says) });
    expect(textOf(home.store)).toMatch(/status="failed"/);
    expect(textOf(home.store)).toMatch(says);
    expect(mergesOf(home.store)).toHaveLength(1);
  });

  test('is not requested again when the tape contains it', async () => {
    await using home = await scriptedDeck(answersIn('kid', 'I have looked.', '{"ports":[80]}'));
    const main = await home.deck.session('main');
    await main.delegate({ task: 'Which ports?', name: 'kid', key: 'k', output });
    const before = home.store.sessions.find('kid')?.head;
    const [again] = await main.delegate({ task: 'Which ports?', name: 'kid', key: 'k', output });
    expect(again).toMatchObject({ status: 'completed', output: { ports: [80] }, merged: { repeated: true } });
    expect(home.store.sessions.find('kid')?.head).toBe(before);
  });

  test('that a delegated child did not give is reported as a failure to the delegation and the parent', async () => {
    await using home = await scriptedDeck(answersIn('kid', 'Just words.'));
    const main = await home.deck.session('main');
    const [outcome] = await main.delegate({ task: 'Go', name: 'kid' }, { strategy: 'structured' });
    const why = "cannot merge 'kid' as structured: it has recorded no result";
    expect(outcome).toMatchObject({ status: 'failed', error: why, merged: { state: 'merged' } });
    expect(textOf(home.store)).toContain(`status="failed">\nError: ${why}`);
  });

  test('is refused as structured when none was given, and nothing is merged', async () => {
    await using home = await scriptedDeck(answersIn('kid', 'Just words.'));
    const main = await home.deck.session('main');
    const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
    await kid.run('Go');
    await expect(kid.finish({ strategy: 'structured' })).rejects.toMatchObject({
      code: 'SESSION_BAD_RESULT',
    });
    expect(mergesOf(home.store)).toEqual([]);
    await kid.result({ words: 2 });
    expect(await kid.finish({ strategy: 'structured' })).toMatchObject({ state: 'merged' });
    expect(textOf(home.store)).toContain('{"words":2}');
  });
});

test('summary: a model writes it, it cites its range, and its usage counts in the parent', async () => {
  const [tell, shorten] = answersIn('kid', 'A long story.', 'Short.');
  await using home = await scriptedDeck([{ ...tell }, { ...shorten, usage: { input: 7, output: 2 } }]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.run('Tell');
  const { range, seq } = await kid.finish({ strategy: 'summary' });
  expect(textOf(home.store)).toMatch(new RegExp(`Summary of kid:${range[0]}-${range[1]} by \\S+:\nShort\\.`));
  expect(await main.usage()).toMatchObject({ steps: 1, total: 9 });
  // A repetition returns the same receipt without a model call: the script has no answer left.
  const [mark] = home.store.entries.read('main', { name: 'merge/kid' });
  expect(mark?.payload).toMatchObject({
    state: {
      asked: { session: 'kid', policy: 'full', in: [range], prompt: expect.stringMatching(/^[0-9a-f]{64}$/) },
    },
  });
  expect(await kid.finish({ strategy: 'summary' })).toMatchObject({ repeated: true, seq });
  expect(await main.usage()).toMatchObject({ steps: 1, total: 9 });
});

test.each([
  { name: 'fails', answer: { error: 'no summaries today' }, says: 'no summaries today' },
  { name: 'says nothing', answer: { text: ' ' }, says: 'the model returned no text' },
])('summary: a model that $name merges nothing', async ({ answer, says }) => {
  await using home = await scriptedDeck([...answersIn('kid', 'A long story.'), answer]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.run('Tell');
  await expect(kid.finish({ strategy: 'summary' })).rejects.toMatchObject({
    code: 'SESSION_MODEL_FAILED',
    message: expect.stringContaining(says),
  });
  expect(mergesOf(home.store)).toEqual([]);
});

test('pick: chosen entries, quoted with their positions', async () => {
  await using home = await scriptedDeck(answersIn('kid', 'First.', 'Second.'));
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.run('One');
  await kid.run('Two');
  const own = [...home.store.entries.read('kid', { own: true, kind: 'message' })];
  const [one, first, , second] = own.map(({ seq }) => seq);
  await expect(kid.finish({ strategy: 'pick' })).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  await expect(kid.finish({ strategy: 'pick', pick: [1] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  await expect(kid.finish({ strategy: 'pick', pick: [[9, 3]] })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  await kid.finish({ strategy: 'pick', pick: [[one ?? 0, first ?? 0], second ?? 0] });
  expect(textOf(home.store)).toContain(
    `kid@${one} user: One\n\nkid@${first} assistant: First.\n\nkid@${second} assistant: Second.`,
  );
});

test('a custom function makes the text', async () => {
  await using home = await scriptedDeck(answersIn('kid', 'Seven.'));
  const main = await home.deck.session('main');
  await main.delegate(
    { task: 'Count', name: 'kid' },
    {
      strategy: async ({ session, text, entries }) => {
        const count = (await Array.fromAsync(entries())).length;
        return `${session} said ${text} in ${count} entries`;
      },
    },
  );
  expect(textOf(home.store)).toContain('kid said Seven. in 3 entries');
});

test('mergeAll merges children in one act and in the given order, all or none', async () => {
  await using home = await scriptedDeck(['a', 'b', 'c'].flatMap((name) => answersIn(name, `from ${name}`)));
  const main = await home.deck.session('main');
  for (const name of ['a', 'b', 'c']) await (await main.fork({ name, onUnmerged: 'keep' })).run('Go');
  await home.deck.session('stranger');
  const before = home.store.sessions.find('main')?.head;
  await expect(main.mergeAll(['a', 'stranger'])).rejects.toMatchObject({ code: 'TAPE_CONFLICT' });
  expect(home.store.sessions.find('main')?.head).toBe(before);
  expect((await main.mergeAll(['c', 'a', 'b'])).map(({ child }) => child)).toEqual(['c', 'a', 'b']);
  expect(mergesOf(home.store).map(({ meta }) => meta.session)).toEqual(['c', 'a', 'b']);
  expect((await main.mergeAll(['a', 'b', 'c'])).map(({ repeated }) => repeated)).toEqual([true, true, true]);
});

test('checkMerge reports what both sides wrote, and writes nothing', async () => {
  await using home = await scriptedDeck(answersIn('kid', 'Done.'));
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.anchor('mine', { color: 'red' });
  await main.anchor('ours', { color: 'blue' });
  const before = home.store.sessions.find('main')?.head;
  expect(await main.checkMerge(kid)).toMatchObject({ conflicts: [{ what: 'state:color' }] });
  expect(home.store.sessions.find('main')?.head).toBe(before);
});

/** A parent whose run waits in a tool, and is let go by the test. */
async function busyParent(more: readonly ScriptAnswer[]) {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const wait = tool({
    inputSchema: z.object({}),
    execute: async () => {
      begun.resolve();
      await gate.promise;
      return 'waited';
    },
  });
  const home = await scriptedDeck(
    [
      { toolCalls: [{ name: 'wait', input: {}, id: 'w1' }], when: { session: 'main' } },
      { toolCalls: [{ name: 'look', input: {}, id: 'l1' }], when: { session: 'main' } },
      { text: 'End.', when: { session: 'main' } },
      ...more,
    ],
    { tools: { wait, look: tool({ inputSchema: z.object({}), execute: async () => 'looked' }) } },
  );
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.run('Go');
  const run = main.run('Start');
  await begun.promise;
  return { home, main, kid, run, open: gate.resolve };
}

const kinds = (store: SqliteTapeStore) =>
  [...store.entries.read('main', { own: true })].flatMap(({ kind, name, meta }) =>
    name?.startsWith('merge/')
      ? ['merge']
      : kind === 'tool-result'
        ? ['result']
        : kind === 'message' && meta.source !== 'merge'
          ? ['message']
          : [],
  );

test.each([
  { at: undefined, where: ['message', 'message', 'result', 'message', 'result', 'message', 'merge'] },
  { at: 'step' as const, where: ['message', 'message', 'result', 'merge', 'message', 'result', 'message'] },
  { at: 'idle' as const, where: ['message', 'message', 'result', 'message', 'result', 'message', 'merge'] },
])(
  'a child that the current run did not start is merged at its end, or where `at` says: $at',
  async ({ at, where }) => {
    const { home, kid, run, open } = await busyParent(answersIn('kid', 'Mine.'));
    const merging = kid.finish(at === undefined ? {} : { at });
    await expect.poll(() => home.store.inbox.list('main')).toHaveLength(1);
    open();
    await run;
    expect(await merging).toMatchObject({ state: 'merged' });
    expect(kinds(home.store)).toEqual(where);
    await home[Symbol.asyncDispose]();
  },
);

test('a queued merge that turns out to be impossible leaves a note with the reason', async () => {
  const { home, main, kid, run, open } = await busyParent(answersIn('kid', 'Mine.'));
  const merging = main.merge(kid, { onConflict: 'refuse' });
  await expect.poll(() => home.store.inbox.list('main')).toHaveLength(1);
  // A tool that did not say what it wrote has run in the child meanwhile: conflicts cannot be ruled out any more.
  home.store.entries.append('kid', [
    assistant([toolCall('x1', 'write', {})]),
    toolResult({ toolCallId: 'x1', toolName: 'write' }, 'ok'),
  ]);
  open();
  await run;
  await expect(merging).rejects.toMatchObject({ code: 'TAPE_CONFLICT' });
  const [note] = [...home.store.entries.read('main', { kind: 'event' })].filter(
    ({ name }) => name === 'merge/refused',
  );
  expect(note?.payload).toMatchObject({
    type: 'merge',
    code: 'TAPE_CONFLICT',
    message: expect.stringContaining('kid'),
  });
  expect(mergesOf(home.store)).toEqual([]);
  expect(home.store.inbox.list('main')).toEqual([]);
  await home[Symbol.asyncDispose]();
});
