import { cutPoint, validCuts } from '@tapedeck/runtime/internal';
import {
  assistant,
  compaction,
  type Draft,
  type Entry,
  type Target,
  toolCall,
  toolResult,
  user,
  type ViewOptions,
  view,
} from '@tapedeck/tape';
import { entryTokens, select } from '@tapedeck/tape/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';
import { anyHistory } from '../support/golden/arbitrary-history.ts';
import { History } from '../support/histories/history.ts';
import { anySteps } from '../support/histories/steps.ts';
import { Tally } from '../support/histories/tally.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

const calls = (...ids: string[]) => assistant(ids.map((id) => toolCall(id, 'read', {})));
const result = (id: string, text = 'fine') => toolResult({ toolCallId: id, toolName: 'read' }, text);
const tokens = (entry: Entry) => entryTokens(entry);
const cut = (drafts: readonly Draft[], keep: Parameters<typeof cutPoint>[1]['keep'], usable?: number) =>
  cutPoint(entriesOf(drafts), { keep, usable, tokens });
/** A turn of about this many tokens. */
const turn = (text: string, size: number) => [user(text), assistant('x'.repeat(size * 4))];

const seed = Number(process.env.TAPEDECK_SEED ?? 20261121);

/**
 * The outputs of the calls that a view shows, in order: each call of ours has one, if only that nothing was recorded.
 */
function outputs(
  entries: readonly Entry[],
  { policy = 'full', target = {} }: ViewOptions = {},
): readonly string[] {
  return view(entries, { policy, target })
    .messages.flatMap(({ content }) => content.filter(({ type }) => type === 'tool-result'))
    .map(({ output }) => JSON.stringify(output));
}

/** Client calls, and those that Anthropic ran: other targets receive their results as text. */
const targets: readonly Target[] = [{}, { provider: 'anthropic.messages' }];

/** The faults of the cuts of a view; a call that is separated from its result loses it. */
function badCuts(entries: readonly Entry[]): readonly string[] {
  return targets.flatMap((target) => {
    const whole = outputs(entries, { target });
    return validCuts(entries).flatMap((at) => {
      const before = entries.filter(({ seq }) => seq < at);
      const after = entries.filter(({ seq }) => seq >= at);
      const parted = [...outputs(before, { target }), ...outputs(after, { target })];
      // A call that a provider ran twice under one id is text once; separated, it is not.
      const lost = whole.filter((output) => !parted.includes(output));
      const same = target.provider !== undefined || parted.join() === whole.join();
      return [
        ...(lost.length === 0 && same ? [] : [`at ${at} ${parted}, not ${whole}`]),
        ...(after[0]?.kind === 'message' ? [] : [`a ${after[0]?.kind} comes after ${at}`]),
      ];
    });
  });
}

test('a cut never separates a call from its result, in any history', () => {
  fc.assert(
    fc.property(anyHistory, (drafts) => {
      expect(badCuts(entriesOf(drafts).filter(({ mark }) => mark === undefined))).toEqual([]);
    }),
    { numRuns: sized(60, 80, 10_000), seed },
  );
});

test('a cut never does in a session that was forked, rewound, merged into and summarised before', () => {
  using store = openStore();
  let [n, cuts, calls] = [0, 0, 0];
  fc.assert(
    fc.property(anySteps, (steps) => {
      n += 1;
      const history = new History(store, `h${n}`, new Tally());
      history.play(steps);
      for (const session of history.sessions) {
        const all = session.all();
        const { entries } = select(all, 'last-boundary');
        expect(badCuts(entries)).toEqual([]);
        const chosen = validCuts(entries).at(-1);
        if (chosen === undefined) continue;
        cuts += 1;
        // After a summary up to there the kept entries have their results, and no other entry stays.
        const kept = outputs(entries.filter(({ seq }) => seq >= chosen));
        store.entries.append(session.name, [
          compaction({ summary: 'So far.', range: [1, chosen - 1] }, { keepFrom: chosen }),
        ]);
        const shown = outputs([...store.views.entries(session.name)], { policy: 'last-boundary' });
        // Outputs that were pruned before stay pruned.
        expect(shown.map((output, i) => (output.includes('<output pruned') ? kept[i] : output))).toEqual(
          kept,
        );
        calls += kept.length;
      }
    }),
    { numRuns: sized(80, 100, 20_000), seed },
  );
  expect(cuts).toBeGreaterThan(sized(40, 50, 10_000));
  expect(calls).toBeGreaterThan(sized(12, 15, 3_000));
});

test('for every `keep` the cut is valid, and a message precedes it', () => {
  const keeps = fc.oneof(
    fc.record({
      turns: fc.integer({ min: 1, max: 4 }),
      over: fc.constantFrom('fewer' as const, 'split' as const),
    }),
    fc.record({ tokens: fc.integer({ min: 1, max: 500 }) }),
    fc.record({ ratio: fc.double({ min: 0.01, max: 0.99, noNaN: true }) }),
  );
  fc.assert(
    fc.property(
      anyHistory,
      keeps,
      fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined }),
      (drafts, keep, usable) => {
        const entries = entriesOf(drafts).filter(({ mark }) => mark === undefined);
        const found = cutPoint(entries, { keep, usable, tokens });
        if (found === undefined) return;
        expect(validCuts(entries)).toContain(found.at);
        expect(entries.some(({ seq, kind }) => kind === 'message' && seq < found.at)).toBe(true);
      },
    ),
    { numRuns: sized(60, 80, 10_000) },
  );
});

test('an open call stays with what follows it', () => {
  const open = [user('a'), assistant('b'), user('c'), calls('1', '2'), result('1')];
  expect(validCuts(entriesOf(open))).toEqual([2, 3, 4]);
  // One that nothing can answer any more holds nothing up.
  expect(validCuts(entriesOf([user('a'), calls('1'), user('b'), assistant('c')]))).toEqual([2, 3, 4]);
});

test('a result that a provider sends in its next message stays with its call', () => {
  const search = { toolCallId: 's', toolName: 'web_search' };
  const asked = assistant([{ type: 'tool-call', ...search, input: {}, providerExecuted: true }]);
  const found = assistant([{ type: 'tool-result', ...search, output: { type: 'text', value: 'x' } }]);
  expect(validCuts(entriesOf([user('a'), asked, found, user('b')]))).toEqual([2, 4]);
});

test('a call stays with its result, though the provider ran one of the same id in between', () => {
  const ran = assistant([
    { type: 'tool-call', toolCallId: '1', toolName: 'web_search', input: {}, providerExecuted: true },
  ]);
  expect(validCuts(entriesOf([user('a'), calls('1'), ran, result('1'), user('b')]))).toEqual([2, 5]);
  // Nor does what the provider found answer the call that a client has to.
  const both = assistant([
    { type: 'tool-call', toolCallId: '1', toolName: 'web_search', input: {}, providerExecuted: true },
    toolCall('1', 'read', {}),
  ]);
  const found = assistant([
    { type: 'tool-result', toolCallId: '1', toolName: 'web_search', output: { type: 'text', value: 'x' } },
  ]);
  expect(validCuts(entriesOf([user('a'), both, found, assistant('b'), result('1'), user('c')]))).toEqual([
    2, 6,
  ]);
});

test('a provider’s result stays with the call of each provider under that id, up to the next user message', () => {
  const search = { toolCallId: 's', toolName: 'web_search' };
  const asked = (provider: string) =>
    assistant([{ type: 'tool-call', ...search, input: {}, providerExecuted: true }], { provider });
  const found = assistant([{ type: 'tool-result', ...search, output: { type: 'text', value: 'x' } }], {
    provider: 'anthropic',
  });
  expect(validCuts(entriesOf([user('a'), asked('anthropic'), asked('openai'), found]))).toEqual([2]);
  expect(validCuts(entriesOf([user('a'), asked('anthropic'), user('b'), found]))).toEqual([2, 3, 4]);
});

test('an unfinished provider call stays with the client calls after it', () => {
  const both = assistant([
    { type: 'tool-call', toolCallId: 's', toolName: 'code_execution', input: {}, providerExecuted: true },
    toolCall('1', 'read', {}),
  ]);
  const steps = [user('a'), both, result('1'), calls('2'), result('2')];
  expect(validCuts(entriesOf(steps))).toEqual([2]);
  // Once another answer is whole, the provider has given it up.
  expect(validCuts(entriesOf([...steps, assistant('b')]))).toEqual([2, 4, 6]);
});

describe('the kept tail', () => {
  const three = [...turn('one', 100), ...turn('two', 100), ...turn('three', 100)];

  test('is two turns, if they take at most a quarter of the usable window', () => {
    expect(cut(three, { turns: 2, share: 0.25 }, 1_000)).toEqual({ at: 3 });
    expect(cut(three, { turns: 2 }, 1_000)).toEqual({ at: 3 });
  });

  test('else is one turn, with a warning', () => {
    expect(cut(three, { turns: 2 }, 600)).toEqual({ at: 5, warning: expect.stringContaining('fewer stay') });
    expect(cut(three, { turns: 2 }, 300)).toEqual({
      at: 5,
      warning: expect.stringContaining('it alone stays'),
    });
  });

  test('is a part of the last turn, on request or for lack of room', () => {
    const long = [
      ...turn('one', 100),
      user('two'),
      ...Array.from({ length: 10 }, () => assistant('x'.repeat(400))),
    ];
    const parted = {
      at: expect.toSatisfy((at: number) => at > 3 + 5),
      warning: expect.stringContaining('a part of it'),
    };
    expect(cut(long, { turns: 1, over: 'split' }, 1_200)).toEqual(parted);
    expect(cut(long, { turns: 1 }, 1_200)).toEqual(parted);
    expect(cut(long, { turns: 1 }, 2_400)?.at).toBe(3);
  });

  test('is the last step of a single turn, where the usable window is unknown', () => {
    const steps = [user('go'), calls('1'), result('1'), calls('2'), result('2'), calls('3'), result('3')];
    expect(cut(steps, { turns: 1 })).toEqual({ at: 6 });
  });

  test('is a number of tokens, from the next valid cut on', () => {
    const drafts = [
      ...turn('one', 100),
      user('two'),
      calls('1'),
      result('1', 'y'.repeat(800)),
      assistant('x'.repeat(400)),
    ];
    expect(cut(drafts, { tokens: 100 }, 10_000)).toEqual({ at: 6 });
    // 250 tokens begin within the result: its call is left behind with it.
    expect(cut(drafts, { tokens: 250 }, 10_000)).toEqual({ at: 6 });
    expect(cut(drafts, { tokens: 330 }, 10_000)).toEqual({ at: 4 });
  });

  test('is a share of the usable window', () => {
    expect(cut(three, { ratio: 0.25 }, 400)).toEqual({ at: 6 });
    expect(cut(three, { ratio: 0.25 }, 800)).toEqual({ at: 4 });
  });

  test('needs something before it: else nothing is cut', () => {
    expect(cut([user('a')], { turns: 1 })).toBeUndefined();
    expect(cut([], { turns: 1 })).toBeUndefined();
    expect(cut(three, { tokens: 20_000 })).toBeUndefined();
  });

  test('counts a merge report as no turn', () => {
    const drafts = [
      ...turn('one', 10),
      ...turn('two', 10),
      user('merged', { source: 'merge' }),
      assistant('so'),
    ];
    expect(cut(drafts, { turns: 1 })).toEqual({ at: 3 });
  });
});
