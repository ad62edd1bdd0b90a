import { anchor, assistant, type Draft, handoff, note, user } from '@tapedeck/tape';
import { Output } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { entryLines, type ScriptedDeck, scriptedDeck } from '../support/scripted.ts';

const answers = [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }];

const linesOf = ({ store }: ScriptedDeck, name: string) => entryLines(store.entries.read(name));

const nothing = { text: '', finish: 'stop', steps: 0, nothingToContinue: true };

test('a run without input of a session that was answered calls no model and writes nothing', async () => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  const { to } = await main.run('Hi');
  const before = linesOf(home, 'main');
  expect(await main.run()).toMatchObject({ ...nothing, from: to + 1, to });
  // Marks ask a model nothing.
  home.store.entries.append('main', [anchor('here'), handoff('next', { summary: 'All done.' })]);
  expect(await main.run()).toMatchObject(nothing);
  expect(linesOf(home, 'main').slice(0, before.length)).toEqual(before);
  expect(linesOf(home, 'main')).toHaveLength(before.length + 2);
  expect(await main.status()).toMatchObject({ state: 'idle' });
  expect(await main.run('And?')).toMatchObject({ text: 'Two.' });
});

test('a session without messages has nothing to continue', async () => {
  await using home = await scriptedDeck(answers);
  expect(await (await home.deck.session('main')).run()).toMatchObject(nothing);
});

test.each<[string, readonly Draft[]]>([
  ['a message without an answer', [user('And?')]],
  ['the note of a run that failed', [note('run/error', { message: 'gone' })]],
  ['the note of a run that was aborted', [note('run/aborted', { reason: 'not now' })]],
  ['the note of a run that a limit halted', [note('run/halted', { limit: 'steps' })]],
  ['the note of a run that died', [note('run/interrupted', {})]],
  ['a partial answer', [assistant('I th', { partial: true })]],
  ['an answer that was too long', [assistant('And so', { finish: 'length' })]],
  ['an answer that a content filter cut off', [assistant('And so', { finish: 'content-filter' })]],
])('a run without input continues a session that ends with %s', async (_, drafts) => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  await main.run('Hi');
  home.store.entries.append('main', drafts);
  expect(await main.run()).toMatchObject({ text: 'Two.', steps: 1 });
  expect(await main.run()).toMatchObject(nothing);
});

test('after a rewind a run without input continues what is visible', async () => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  await main.run('Hi');
  const { from } = await main.run('How are you?');
  await main.rewind(from);
  expect(await main.run()).toMatchObject(nothing);
  await main.undo();
  await main.rewind(from, { mode: 'resend', start: false });
  expect(await main.run()).toMatchObject({ text: 'Three.' });
});

test('a run without input takes what waits in the inbox, and answers it', async () => {
  await using home = await scriptedDeck(answers);
  const { store } = home;
  const main = await home.deck.session('main');
  await main.run('Hi');
  store.leases.acquire('main', { id: 'other' }, { ttlMs: 20 });
  store.inbox.post('main', { body: { type: 'append', drafts: [user('From elsewhere.')] } });
  await expect.poll(() => store.leases.list()).toEqual([]);
  expect(store.inbox.list('main')).toHaveLength(1);
  expect(await main.run()).toMatchObject({ text: 'Two.' });
});

test.each(['merge', 'merge+turn', 'notify'] as const)(
  'a child forked with deliver %s runs once, and its end is delivered once',
  async (deliver) => {
    await using home = await scriptedDeck([
      { text: 'Checked.', when: { session: 'kid' } },
      { text: 'Noted.', when: { session: 'main' } },
    ]);
    const main = await home.deck.session('main');
    const kid = await main.fork({ name: 'kid', task: 'Check.', deliver, onUnmerged: 'keep' });
    expect(await kid.run()).toMatchObject({ text: 'Checked.' });
    await home.deck.idle();
    const before = [linesOf(home, 'main'), linesOf(home, 'kid')];
    expect(before[0]?.length).toBeGreaterThan(1);
    expect(await kid.run()).toMatchObject(nothing);
    expect(await (await home.deck.session('kid')).run()).toMatchObject(nothing);
    await home.deck.idle();
    expect([linesOf(home, 'main'), linesOf(home, 'kid')]).toEqual(before);
  },
);

test('the end of a child that only its tape shows is recorded and delivered, without another model call', async () => {
  await using home = await scriptedDeck([{ text: 'Checked.', when: { session: 'kid' } }]);
  const main = await home.deck.session('main');
  await main.fork({ name: 'kid', task: 'Check.', deliver: 'merge', onUnmerged: 'keep' });
  // Its process died after the answer.
  home.store.sessions.update('kid', { task: 'running' });
  home.store.entries.append('kid', [assistant('Checked before.', { run: 'R1', finish: 'stop' })]);
  expect(await (await home.deck.session('kid')).run()).toMatchObject(nothing);
  await home.deck.idle();
  expect(home.store.sessions.find('kid')).toMatchObject({ task: 'completed', delivery: 'merged' });
  expect(linesOf(home, 'main').at(-1)).toContain('Checked before.');
});

test('a child that owes a structured result is not complete with a text', async () => {
  await using home = await scriptedDeck([{ text: '{"ok":true}' }, { text: '{"ok":true}' }]);
  const main = await home.deck.session('main');
  const output = Output.object({ schema: z.object({ ok: z.boolean() }) });
  const kid = await main.fork({ name: 'kid', task: 'Check.', output, onUnmerged: 'keep' });
  home.store.entries.append('kid', [assistant('Well.', { run: 'R1', finish: 'stop' })]);
  expect(await kid.run()).toMatchObject({ finish: 'stop' });
  expect(linesOf(home, 'kid').at(-1)).toBe('result');
  expect(await kid.run()).toMatchObject(nothing);
});
