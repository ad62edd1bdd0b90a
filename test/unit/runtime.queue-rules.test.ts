import type { QueueMode } from '@tapedeck/runtime';
import { decide, defaultMode, type QueuePoint, queueModes } from '@tapedeck/runtime/internal';
import { user } from '@tapedeck/tape';
import type { InboxBody, InboxItem } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';

function item(id: string, body: InboxBody, mode = 'queue'): InboxItem {
  return { id, body, mode, source: 'user', key: id, queuedAt: 0 };
}

const message = (id: string, mode: QueueMode) => item(id, { type: 'input', drafts: [user(id)] }, mode);
const answer = (id: string) => item(id, { type: 'answer', toolCallId: 'c1', answer: { approved: true } });
const abort = (id: string, owner: string) => item(id, { type: 'abort', owner, reason: 'enough' });

/** The decision about the inbox, as a word and the ids of its items. */
function done(inbox: readonly InboxItem[], at: QueuePoint, owner?: string): string {
  const decision = decide(inbox, at, owner);
  if (decision.do === 'abort') return `abort: ${decision.reason}`;
  return 'items' in decision ? `${decision.do} ${decision.items.map(({ id }) => id).join(' ')}` : decision.do;
}

const interrupted = 'abort: interrupted by a new message';

test.each<[QueueMode, Record<QueuePoint, string>]>([
  [
    'interrupt',
    { streaming: interrupted, step: interrupted, last: interrupted, ended: 'start m', stopped: 'start m' },
  ],
  ['steer', { streaming: 'nothing', step: 'steer m', last: 'steer m', ended: 'start m', stopped: 'nothing' }],
  [
    'steer-backlog',
    { streaming: 'nothing', step: 'steer m', last: 'nothing', ended: 'start m', stopped: 'nothing' },
  ],
  [
    'followup',
    { streaming: 'nothing', step: 'nothing', last: 'nothing', ended: 'start m', stopped: 'nothing' },
  ],
  [
    'collect',
    { streaming: 'nothing', step: 'nothing', last: 'nothing', ended: 'start m', stopped: 'nothing' },
  ],
  ['queue', { streaming: 'nothing', step: 'nothing', last: 'nothing', ended: 'start m', stopped: 'nothing' }],
])('%s: its effect depends on the state of the session', (mode, expected) => {
  const points = Object.keys(expected) as QueuePoint[];
  const inbox = [message('m', mode)];
  expect(Object.fromEntries(points.map((at) => [at, done(inbox, at)]))).toEqual(expected);
});

test.each<[string, InboxItem[], QueuePoint, string]>([
  ['one followup at a time', [message('a', 'followup'), message('b', 'queue')], 'ended', 'start a'],
  [
    'all messages in mode collect share a run, whatever lies between them',
    [message('a', 'collect'), message('b', 'queue'), message('c', 'collect')],
    'ended',
    'start a c',
  ],
  ['but wait for their turn', [message('a', 'queue'), message('b', 'collect')], 'ended', 'start a'],
  [
    'interruptions come first, and together',
    [message('a', 'queue'), message('b', 'interrupt'), answer('c'), message('d', 'interrupt')],
    'ended',
    'start b d',
  ],
  ['an answer comes before messages', [message('a', 'queue'), answer('b')], 'ended', 'start b'],
  ['an answer continues from an aborted run', [answer('b')], 'stopped', 'start b'],
  ['an answer does not disturb a run', [answer('b')], 'step', 'nothing'],
  [
    'what steers is taken in order',
    [message('a', 'steer'), message('b', 'steer-backlog'), message('c', 'steer')],
    'step',
    'steer a b c',
  ],
  [
    'an interruption is not kept waiting by what steers',
    [message('a', 'steer'), message('b', 'interrupt')],
    'step',
    interrupted,
  ],
  ['nothing waits', [], 'ended', 'nothing'],
])('%s', (_, inbox, at, expected) => {
  expect(done(inbox, at)).toBe(expected);
});

test('an abort stops the run of the owner that it names, and no other', () => {
  for (const at of ['streaming', 'step', 'last'] as const) {
    expect(done([abort('x', 'me'), message('a', 'steer')], at, 'me')).toBe('abort: enough');
    expect(done([abort('x', 'someone before me')], at, 'me')).toBe('nothing');
  }
  expect(done([abort('x', 'me')], 'ended', 'me')).toBe('nothing');
});

test.each([
  [undefined, 'manager', 'queue'],
  ['user', 'manager', 'interrupt'],
  ['agent', 'manager', 'followup'],
  ['timer', 'manager', 'followup'],
  ['user', 'session', 'queue'],
  ['agent', 'subagent', 'queue'],
])('a message of %s to a session of kind %s is %s', (source, kind, mode) => {
  expect(defaultMode(source, kind)).toBe(mode);
});

/** The next move: a message arrives, or the session reaches a point of a run. */
type Move = QueueMode | 'step' | 'last';

/** Plays moves as a session does, and returns the order of the messages, and their runs. */
function play(moves: readonly Move[]): { readonly sent: InboxItem[]; readonly runs: InboxItem[][] } {
  const sent: InboxItem[] = [];
  const runs: InboxItem[][] = [];
  let inbox: InboxItem[] = [];
  let isRunning = false;
  const take = (items: readonly InboxItem[]) => {
    inbox = inbox.filter((one) => !items.includes(one));
  };
  const next = (at: 'ended' | 'stopped') => {
    const decision = decide(inbox, at);
    isRunning = decision.do === 'start';
    if (decision.do !== 'start') return;
    take(decision.items);
    runs.push([...decision.items]);
  };
  const look = (at: 'streaming' | 'step' | 'last') => {
    const decision = decide(inbox, at);
    if (decision.do === 'steer') {
      take(decision.items);
      runs.at(-1)?.push(...decision.items);
    } else if (decision.do === 'abort') next('stopped');
    else if (at === 'last') next('ended');
  };
  for (const [i, move] of moves.entries()) {
    if (move === 'step' || move === 'last') {
      if (isRunning) look(move);
      continue;
    }
    const posted = message(`m${i}`, move);
    sent.push(posted);
    inbox.push(posted);
    if (isRunning) look('streaming');
    else next('ended');
  }
  // The session runs again and again, until nothing waits.
  for (let turns = 0; inbox.length > 0 && turns <= moves.length; turns += 1) next('ended');
  return { sent, runs };
}

const move = fc.constantFrom<Move>(...queueModes, 'step', 'last', 'step', 'last');

test('in any order of events every message is taken once, and those of one mode in their order', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
      const { sent, runs } = play(moves);
      const taken = runs.flat();
      expect(taken.map(({ id }) => id).sort()).toEqual(sent.map(({ id }) => id).sort());
      for (const mode of queueModes) {
        const of = (items: readonly InboxItem[]) => items.filter((one) => one.mode === mode);
        expect(of(taken)).toEqual(of(sent));
      }
    }),
    { numRuns: sized(300, 600, 40_000) },
  );
});

test('in any order of events each queued message begins its own run', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
      for (const run of play(moves).runs) {
        const alone = run.filter(({ mode }) => mode === 'queue' || mode === 'followup');
        expect(alone.length).toBeLessThan(2);
        if (alone.length === 1) expect(run[0]).toBe(alone[0]);
      }
    }),
    { numRuns: sized(300, 600, 40_000) },
  );
});
