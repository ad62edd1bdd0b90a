import { audit } from '@tapedeck/runtime';
import { result, type SqliteTapeStore, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { entryLines, type ScriptedDeck, scriptedDeck } from '../support/scripted.ts';

/** What the parent was told, in order: merges, messages about ends, and its own answers. */
function heard(store: SqliteTapeStore): string[] {
  return [...store.entries.read('main', { own: true, kind: 'message' })].flatMap(({ payload, meta }) => {
    const text = JSON.stringify(payload);
    if (meta.source === 'merge') return [/status=\\"(\w+)\\"/.exec(text)?.[1] ?? 'merge'];
    if (text.includes('has ended')) return ['news'];
    return isObject(payload) && payload.role === 'assistant' ? ['turn'] : [];
  });
}

const answers = [
  { text: 'Checked.', when: { session: 'kid' } },
  { text: 'Checked again.', when: { session: 'kid' } },
  { text: 'Noted.', when: { session: 'main' } },
  { text: 'Noted again.', when: { session: 'main' } },
];

/** Runs the child with another deck than the one that forked it, as another process does. */
async function runElsewhere(home: ScriptedDeck, prompt?: string): Promise<void> {
  await using other = await openDeck({ store: home.store, model: home.spec });
  await (await other.session('kid')).run(prompt);
  await other.idle();
}

describe.each([
  { deliver: 'merge' as const, ended: ['completed'], merged: ['completed'] },
  {
    deliver: 'merge+turn' as const,
    ended: ['completed', 'news', 'turn'],
    merged: ['completed', 'news', 'turn'],
  },
  { deliver: 'notify' as const, ended: ['news'], merged: ['completed'] },
  { deliver: undefined, ended: [], merged: ['completed'] },
])('a fork with deliver: $deliver', ({ deliver, ended, merged }) => {
  const fork = async (home: ScriptedDeck) =>
    await (await home.deck.session('main')).fork({
      name: 'kid',
      task: 'Check the docs.',
      onUnmerged: 'keep',
      ...(deliver !== undefined && { deliver }),
    });

  test('starts nothing by itself', async () => {
    await using home = await scriptedDeck(answers);
    await fork(home);
    await home.deck.idle();
    expect(entryLines(home.store.entries.read('kid', { own: true, kind: 'message' }))).toEqual([]);
    expect(home.store.sessions.find('kid')).not.toHaveProperty('task');
    expect(heard(home.store)).toEqual([]);
  });

  test('acts when the child ends, in the deck that forked it or in another', async () => {
    for (const run of [
      async (home: ScriptedDeck) => {
        await (await home.deck.session('kid')).run();
        await home.deck.idle();
      },
      runElsewhere,
    ]) {
      await using home = await scriptedDeck(answers);
      await fork(home);
      await run(home);
      expect(heard(home.store)).toEqual(ended);
      expect(home.store.inbox.list('main')).toEqual([]);
    }
  });

  test('acts on a merge by hand, of a child that nothing ran', async () => {
    for (const many of [false, true]) {
      await using home = await scriptedDeck(answers);
      const kid = await fork(home);
      home.store.entries.append('kid', [result('Checked by hand.')]);
      const main = await home.deck.session('main');
      if (many) await main.mergeAll([kid]);
      else await main.merge(kid);
      await home.deck.idle();
      expect(heard(home.store)).toEqual(merged);
    }
  });

  test('acts once when the caller merges at once after the run', async () => {
    await using home = await scriptedDeck(answers);
    const kid = await fork(home);
    await kid.run();
    await kid.finish();
    await home.deck.idle();
    const twice = deliver === 'notify' ? ['news', 'completed'] : merged;
    expect(heard(home.store)).toEqual(twice);
  });

  test('acts again when the child ends again', async () => {
    await using home = await scriptedDeck(answers);
    await fork(home);
    await runElsewhere(home);
    await runElsewhere(home, 'And once more.');
    expect(heard(home.store)).toEqual([...ended, ...ended]);
  });
});

test('a merge by hand leaves the turn of a parent that cannot run in its inbox, for its next run', async () => {
  await using home = await scriptedDeck(answers);
  await using bare = await openDeck({ store: home.store });
  const kid = await (await bare.session('main')).fork({ name: 'kid', deliver: 'merge+turn' });
  await kid.result('Checked by hand.');
  await kid.finish();
  await bare.idle();
  expect(heard(home.store)).toEqual(['completed']);
  await (await home.deck.session('main')).run();
  expect(heard(home.store)).toEqual(['completed', 'news', 'turn']);
});

test('a merge into a session above the parent gives no turn to either', async () => {
  await using home = await scriptedDeck(answers);
  const between = await (await home.deck.session('main')).fork({ name: 'between', onUnmerged: 'keep' });
  const kid = await between.fork({ name: 'kid', deliver: 'merge+turn', onUnmerged: 'keep' });
  await kid.result('Done.');
  await (await home.deck.session('main')).merge(kid);
  await home.deck.idle();
  expect(heard(home.store)).toEqual(['completed']);
  expect(home.store.inbox.list('between')).toEqual([]);
});

test('onComplete: notify_parent is deliver: merge+turn; another deliver beside it is refused', async () => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onComplete: 'notify_parent', onUnmerged: 'keep' });
  expect(await kid.info()).toMatchObject({ deliver: 'merge+turn' });
  await expect(main.fork({ onComplete: 'notify_parent', deliver: 'merge' })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: "cannot fork 'main': onComplete 'notify_parent' is deliver 'merge+turn', not 'merge'",
  });
  expect(home.store.sessions.list({ all: true })).toHaveLength(2);
});

test('recovery ends a child that only notifies, and leaves it unmerged; audit and a second recovery find nothing', async () => {
  await using home = await scriptedDeck(answers);
  const main = await home.deck.session('main');
  await main.fork({ name: 'kid', task: 'Check the docs.', deliver: 'notify', onUnmerged: 'keep' });
  home.store.entries.append('kid', [user('a message that a killed process left')]);
  home.store.sessions.update('kid', { task: 'running' });
  expect(await home.deck.recover()).toMatchObject({ resumed: ['kid'], merged: [], busy: [], failed: [] });
  expect(heard(home.store)).toEqual(['news']);
  expect((await audit(home.store)).findings).toEqual([]);
  expect(await home.deck.recover()).toMatchObject({ resumed: [], merged: [], busy: [], failed: [] });
  expect(heard(home.store)).toEqual(['news']);
});
