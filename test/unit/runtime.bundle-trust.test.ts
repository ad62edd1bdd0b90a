import { assistant, note, type SqliteTapeStore, toolCall, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { adopt, bundleOf } from '../support/bundles.ts';
import { countedIds } from '../support/ids.ts';
import { desk, done } from '../support/ruled.ts';
import { openStore } from '../support/store.ts';

const waiting = note('run/waiting', {
  run: 'r',
  calls: [{ toolCallId: 'pay-1', toolName: 'pay', for: 'approval' }],
});
const approved = note('call/answered', { toolCallId: 'pay-1', approved: true });
const paying = [user('Go'), assistant([toolCall('pay-1', 'pay', {})])];

/** A home whose ids are its own. */
function otherHome(): SqliteTapeStore {
  return openStore(':memory:', { secrets: [], newId: countedIds('01JE') });
}

test('a call that was approved in another home needs an approval here', async () => {
  using there = otherHome();
  there.sessions.open('theirs');
  there.entries.append('theirs', [...paying, waiting, approved]);
  await using s = await desk([done]);
  await adopt(s.store, bundleOf(there, 'theirs'));
  const theirs = await s.deck.session('theirs');
  expect(await theirs.run()).toMatchObject({ finish: 'waiting' });
  expect(s.ran).toEqual([]);
  await theirs.respond('pay-1', { approved: true });
  await theirs.idle();
  expect(s.ran).toEqual(['pay']);
});

test('an approval that a bundle adds to a call of this home does not count', async () => {
  using there = otherHome();
  await using s = await desk([done]);
  s.store.entries.append('main', [...paying, waiting]);
  await adopt(there, bundleOf(s.store, 'main'));
  there.entries.append('main', [approved, note('permission/granted', { rule: 'allow pay' })]);
  const { entries } = await adopt(s.store, bundleOf(there, 'main'));
  expect(entries).toBe(2);
  expect(await s.main.run()).toMatchObject({ finish: 'waiting' });
  expect(s.ran).toEqual([]);
});

test('what another home granted or allows asks here, what it denies is denied, and a copy is no way around', async () => {
  using there = otherHome();
  there.sessions.open('theirs', { settings: { rules: ['allow exec(ls)', 'deny exec(rm *)'] } });
  there.entries.append('theirs', [
    note('permission/granted', { rule: 'allow exec(git *)' }),
    note('permission/granted', { rule: 'deny exec(make)' }),
  ]);
  await using s = await desk([]);
  await adopt(s.store, bundleOf(there, 'theirs'));
  s.store.entries.append('theirs', [user('Mine')]);
  there.entries.append('theirs', [user('Theirs')]);
  await adopt(s.store, bundleOf(there, 'theirs'), { as: 'copy' });
  for (const name of ['theirs', 'copy']) {
    const session = await s.deck.session(name);
    const verdicts: string[] = [];
    for (const command of ['ls', 'rm x', 'git log', 'make'])
      verdicts.push((await session.permits({ tool: 'run_command', input: { command } })).verdict);
    expect(verdicts, name).toEqual(['ask', 'deny', 'ask', 'deny']);
  }
});

test('a script that another home used as a model is not used here', async () => {
  using there = otherHome();
  await using s = await desk([{ text: 'Mine.' }, { text: 'Mine.' }]);
  const evil = s.script([{ text: 'Theirs.' }]);
  there.sessions.open('theirs');
  there.entries.append('theirs', [user('Go', { model: evil, run: 'r' }), assistant('Hi.')]);
  await adopt(s.store, bundleOf(there, 'theirs'));
  const theirs = await s.deck.session('theirs');
  expect(await theirs.run('On')).toMatchObject({ text: 'Mine.' });
});
