import { type CompactionPolicy, parseConfig } from '@tapedeck/runtime';
import { isToBePruned, isTooFull, resolvePolicy, usableOf } from '@tapedeck/runtime/internal';
import { assistant, compaction, note, toolResult, user } from '@tapedeck/tape';
import { usedSinceStep } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';

const large = { window: 100_000, maxOutput: 8_000 };

describe('each preset triggers where its rule says, and not a token earlier', () => {
  test.each([
    { policy: 'reserve', model: large, at: 92_000, why: 'at the reserve' },
    {
      policy: 'reserve',
      model: { window: 200_000, maxOutput: 64_000 },
      at: 180_000,
      why: 'of 20,000 at most',
    },
    {
      policy: 'reserve',
      model: { window: 200_000 },
      at: 180_000,
      why: 'also where the longest answer is unknown',
    },
    { policy: 'reserve', model: { window: 8_000 }, at: 4_000, why: 'of half a small window at most' },
    { policy: 'reserve-16k', model: large, at: 100_000 - 16_384 + 1, why: 'above window − reserve' },
    { policy: 'at-85', model: large, at: 85_001, why: 'above 85 % of the window' },
    { policy: 'at-90', model: { window: 100_000 }, at: 90_001, why: 'above 90 %' },
    { policy: 'at-90', model: large, at: 82_801, why: 'of what the answer leaves' },
    { policy: { reserveTokens: 30_000 }, model: large, at: 70_000, why: 'at a reserve that is given' },
    {
      policy: { preset: 'reserve-16k', reserveTokens: 30_000 },
      model: large,
      at: 70_001,
      why: 'above it for reserve-16k',
    },
    { policy: { threshold: 0.5 }, model: large, at: 50_000, why: 'at a share that is given' },
    { policy: { preset: 'at-85', threshold: 0.5 }, model: large, at: 50_001, why: 'above it for at-85' },
  ] as const)('$policy: $why', ({ policy, model, at }) => {
    const resolved = resolvePolicy(policy as CompactionPolicy);
    expect([at - 1, at].map((used) => isTooFull(resolved, model, used))).toEqual([false, true]);
    expect(Math.abs(usableOf(resolved, model) - at)).toBeLessThanOrEqual(1);
  });
});

test('outputs are pruned from 60 % of the window on, by the preset reserve alone, unless a policy requests it', () => {
  const prunes = (policy?: Parameters<typeof resolvePolicy>[0]) =>
    [59_999, 60_000].map((used) => isToBePruned(resolvePolicy(policy), large, used));
  expect(prunes()).toEqual([false, true]);
  expect(prunes('reserve-16k')).toEqual([false, false]);
  expect(prunes({ preset: 'reserve-16k', prune: {} })).toEqual([false, true]);
  expect(prunes({ prune: false })).toEqual([false, false]);
});

test('usage is that of the last step, plus an estimate of later entries', () => {
  const usage = { input: 900, output: 50, reasoning: 30, cacheRead: 15, cacheWrite: 5 };
  const said = assistant('x'.repeat(4_000), { usage });
  const used = (...drafts: Parameters<typeof entriesOf>[0]) => usedSinceStep(entriesOf(drafts));
  expect(used(user('a'), said)).toBe(1_000);
  expect(used(user('a'), assistant('b', { usage: { input: 5 } }), said)).toBe(1_000);
  expect(used(user('a'), said, user('x'.repeat(400)))).toBe(1_100);
  expect(used(user('a'), said, note('x', 'y'.repeat(400)), user('not shown', { context: false }))).toBe(
    1_000,
  );
  expect(
    usedSinceStep(entriesOf([user('a'), said, user('one two three')]), {
      count: (text) => text.split(' ').length,
    }),
  ).toBe(1_003);
  // Another prompt since: its tokens are not counted yet.
  expect(used(user('a'), said, compaction({ summary: 'S', range: [1, 1] }))).toBeUndefined();
  expect(used(user('a'), said, note('context/pruned', {}))).toBeUndefined();
  expect(used(user('a'), assistant('b'))).toBeUndefined();
  expect(
    usedSinceStep(entriesOf([user('a'), said]).map((entry) => ({ ...entry, inherited: true }))),
  ).toBeUndefined();
});

test('an output that follows the step counts', () => {
  const call = { toolCallId: 'c', toolName: 'read' };
  const entries = entriesOf([assistant('x', { usage: { input: 10 } }), toolResult(call, 'y'.repeat(4_000))]);
  expect(usedSinceStep(entries)).toBeGreaterThan(1_000);
  expect(usedSinceStep(entries)).toBeLessThan(1_050);
});

test.each<{ config: object }>([
  { config: { compaction: 'at-90' } },
  {
    config: {
      compaction: { preset: 'reserve-16k', keep: { tokens: 1 }, prune: false, smartRecovery: false },
    },
  },
  { config: { compaction: { keep: { turns: 1, share: 0.5, over: 'split' }, countTokens: () => 1 } } },
  {
    config: { compaction: { summary: { timeoutMs: 1, temperature: 0, maxOutputTokens: 1 }, threshold: 0.9 } },
  },
  { config: { windows: { 'gpt-oss': { window: 100, maxOutput: 10 }, small: { window: 1 } } } },
  { config: { windows: () => undefined } },
])('$config is accepted', async ({ config }) => {
  expect(await parseConfig(config)).toBe(config);
});

test.each([
  {
    config: { compaction: 'guise' },
    field: 'compaction',
    says: 'must be one of reserve, reserve-16k, at-85, at-90, or a policy',
  },
  {
    config: { compaction: { threshold: 0.5, prune: { threshold: 0.5 } } },
    field: 'compaction.prune.threshold',
    says: 'must be less than threshold',
  },
  ...['guide', 'jsonl', 'nexus', 'nexus3'].map((former) => ({
    config: { compaction: former },
    field: 'compaction',
    says: 'must be one of reserve, reserve-16k, at-85, at-90, or a policy',
  })),
  {
    config: { compaction: { preset: 'guide' } },
    field: 'compaction.preset',
    says: 'must be one of reserve, reserve-16k, at-85, at-90',
  },
  { config: { compaction: [] }, field: 'compaction', says: 'must be one of' },
  {
    config: { compaction: { present: 'reserve' } },
    field: 'compaction.present',
    says: 'unknown field',
  },
  { config: { compaction: { preset: 'x' } }, field: 'compaction.preset', says: 'must be one of' },
  {
    config: { compaction: { reserveTokens: 1, threshold: 0.5 } },
    field: 'compaction.threshold',
    says: 'cannot be given with reserveTokens',
  },
  { config: { compaction: { threshold: 90 } }, field: 'compaction.threshold', says: 'between 0 and 1' },
  {
    config: { compaction: { keep: { turns: 1, tokens: 1 } } },
    field: 'compaction.keep',
    says: 'must have one of turns, tokens and ratio',
  },
  {
    config: { compaction: { keep: { tokens: 1, share: 0.5 } } },
    field: 'compaction.keep.share',
    says: 'is valid only with turns',
  },
  { config: { compaction: { keep: { turns: 0 } } }, field: 'compaction.keep.turns', says: 'from 1' },
  { config: { compaction: { prune: true } }, field: 'compaction.prune', says: 'must be false or an object' },
  {
    config: { compaction: { prune: { protect: 'todo' } } },
    field: 'compaction.prune.protect',
    says: 'list of tool names',
  },
  {
    config: { compaction: { smartRecovery: { all: true } } },
    field: 'compaction.smartRecovery.all',
    says: 'unknown field',
  },
  {
    config: { compaction: { summary: { timeoutMs: 0 } } },
    field: 'compaction.summary.timeoutMs',
    says: 'from 1 to',
  },
  { config: { windows: { m: {} } }, field: 'windows.m.window', says: 'whole number from 1' },
  {
    config: { windows: { m: { window: 10, maxOutput: 10 } } },
    field: 'windows.m.maxOutput',
    says: 'less than window',
  },
  { config: { windows: { m: 3 } }, field: 'windows.m', says: 'must be an object of window and maxOutput' },
  {
    config: { compaction: { reserveTokens: 100 }, windows: { m: { window: 100 } } },
    field: 'compaction.reserveTokens',
    says: "must be less than the window of 'm'",
  },
])('$config is refused at $field', async ({ config, field, says }) => {
  await expect(parseConfig(config)).rejects.toThrow(
    expect.objectContaining({
      code: 'SESSION_BAD_CONFIG',
      message: expect.stringContaining(says),
      data: expect.objectContaining({ field }),
    }),
  );
});
