import { type DeckConfig, defaultLimits, defineDeck, parseConfig, SessionError } from '@tapedeck/runtime';
import { limitsOf, mergeConfig } from '@tapedeck/runtime/internal';
import { tool } from 'ai';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { openStore } from '../support/store.ts';

const add = tool({
  inputSchema: z.object({ a: z.number() }),
  execute: ({ a }) => a + 1,
});
const model = { doStream: async () => ({}) };

test.each<{ name: string; config: object }>([
  { name: 'an empty one', config: {} },
  { name: 'a model by name', config: { model: 'openai-compatible/m', summarizer: 'script:a.json' } },
  { name: 'a model of the AI SDK', config: { model, summarizer: model } },
  {
    name: 'a model of a class',
    config: {
      model: new (class {
        doStream() {}
      })(),
    },
  },
  { name: 'tools', config: { tools: { add, shown: tool({ inputSchema: z.object({}) }) }, instructions: '' } },
  { name: 'instructions in parts', config: { instructions: { Role: 'You keep the shop.' } } },
  {
    name: 'what instructions hold',
    config: { prompt: { project: 'shop', skills: ['skills'], environment: true, tools: false } },
  },
  { name: 'the defaults', config: { limits: defaultLimits } },
  {
    name: 'the bounds',
    config: { limits: { maxSteps: Number.POSITIVE_INFINITY, retries: 0, retryDelayMs: 0 } },
  },
  { name: 'functions', config: { cost: () => 1, onApproval: async () => ({ approved: true }) } },
  { name: 'hooks', config: { hooks: { onMessage: () => undefined, onRewind: async () => {} } } },
  {
    name: 'settings of model calls',
    config: { settings: { temperature: 0.5, effort: 'low', providerOptions: { openai: { user: 'u' } } } },
  },
  { name: 'fields that say nothing', config: { model: undefined, limits: { retries: undefined } } },
])('$name is accepted unchanged', async ({ config }) => {
  expect(await parseConfig(config)).toBe(config);
  expect(defineDeck(config)).toBe(config);
});

const bad: readonly { config: unknown; field: string; says: string }[] = [
  { config: undefined, field: '', says: 'it must be an object' },
  { config: null, field: '', says: 'it must be an object' },
  { config: [], field: '', says: 'it must be an object' },
  { config: () => ({}), field: '', says: 'it must be an object' },
  { config: { modle: 'x/y' }, field: 'modle', says: 'modle: unknown field' },
  { config: { limits: { max: 1 } }, field: 'limits.max', says: 'limits.max: unknown field' },
  { config: { model: '' }, field: 'model', says: 'model must be a string PROVIDER/MODEL, or a model' },
  {
    config: { model: 'gpt-5' },
    field: 'model',
    says: 'model must be PROVIDER/MODEL or script:FILE, not "gpt-5"',
  },
  { config: { model: 'openai/' }, field: 'model', says: 'model must be PROVIDER/MODEL or script:FILE, not' },
  { config: { model: 'script:' }, field: 'model', says: 'model must be PROVIDER/MODEL or script:FILE, not' },
  {
    config: { summarizer: 'mini' },
    field: 'summarizer',
    says: 'summarizer must be PROVIDER/MODEL or script',
  },
  { config: { settings: [] }, field: 'settings', says: 'settings must be an object of temperature, effort' },
  { config: { settings: { temperature: 3 } }, field: 'settings.temperature', says: 'a number from 0 to 2' },
  {
    config: { settings: { effort: 'most' } },
    field: 'settings.effort',
    says: 'must be one of provider-default',
  },
  { config: { settings: { topK: 3 } }, field: 'settings.topK', says: 'settings.topK is not a setting' },
  { config: { model: () => model }, field: 'model', says: 'model must be' },
  { config: { summarizer: null }, field: 'summarizer', says: 'summarizer must be' },
  { config: { tools: [add] }, field: 'tools', says: 'tools must be an object of tools' },
  { config: { tools: { add: () => 1 } }, field: 'tools.add', says: 'tools.add must be a tool' },
  { config: { tools: { add: { inputSchema: {}, execute: 1 } } }, field: 'tools.add', says: 'must be a tool' },
  { config: { instructions: ['x'] }, field: 'instructions', says: 'instructions must be a string' },
  { config: { limits: 3 }, field: 'limits', says: 'limits must be an object of limits' },
  { config: { limits: { maxSteps: 0 } }, field: 'limits.maxSteps', says: 'whole number from 1, or Infinity' },
  { config: { limits: { maxSteps: '3' } }, field: 'limits.maxSteps', says: 'must be a whole number' },
  { config: { limits: { toolTimeoutMs: 1.5 } }, field: 'limits.toolTimeoutMs', says: 'whole number from 1' },
  {
    config: { limits: { toolTimeoutMs: 2 ** 31 } },
    field: 'limits.toolTimeoutMs',
    says: 'must be a whole number from 1 to 2147483647',
  },
  { config: { limits: { concurrentTools: 0 } }, field: 'limits.concurrentTools', says: 'from 1' },
  { config: { limits: { retries: -1 } }, field: 'limits.retries', says: 'from 0' },
  { config: { limits: { retryDelayMs: Number.NaN } }, field: 'limits.retryDelayMs', says: 'from 0' },
  {
    config: { limits: { abortGraceMs: Number.POSITIVE_INFINITY } },
    field: 'limits.abortGraceMs',
    says: 'to',
  },
  { config: { cost: 3 }, field: 'cost', says: 'cost must be a function' },
  { config: { instructions: 3 }, field: 'instructions', says: 'instructions must be a string, or an object' },
  { config: { instructions: { Role: 1 } }, field: 'instructions', says: 'instructions must be a string, or' },
  { config: { prompt: true }, field: 'prompt', says: 'prompt must be an object of project' },
  { config: { prompt: { skill: [] } }, field: 'prompt.skill', says: 'prompt.skill: unknown field' },
  { config: { prompt: { skills: 'a' } }, field: 'prompt.skills', says: 'prompt.skills must be a list of' },
  { config: { prompt: { skills: [''] } }, field: 'prompt.skills.0', says: 'prompt.skills.0 must be a path' },
  { config: { prompt: { project: 1 } }, field: 'prompt.project', says: 'prompt.project must be true, false' },
  { config: { prompt: { environment: 'x' } }, field: 'prompt.environment', says: 'must be true or false' },
  { config: { hooks: () => {} }, field: 'hooks', says: 'hooks must be an object of functions' },
  { config: { hooks: { onRewind: true } }, field: 'hooks.onRewind', says: 'must be a function' },
  { config: { hooks: { onMesage: () => {} } }, field: 'hooks.onMesage', says: 'unknown field' },
  { config: { onApproval: 'yes' }, field: 'onApproval', says: 'onApproval must be a function' },
];

test.each(bad)('a configuration with $field is refused by name: $says', async ({ config, field, says }) => {
  const refusal = expect.objectContaining({
    code: 'SESSION_BAD_CONFIG',
    message: expect.stringContaining(says),
    data: expect.objectContaining({ field }),
  });
  await expect(parseConfig(config, "'a.mts'")).rejects.toThrow(refusal);
  await expect(parseConfig(config, "'a.mts'")).rejects.toThrow("cannot use 'a.mts': ");
  // Options that are no object are a mistake of the program, which types find.
  if (field === '') return;
  using store = openStore();
  await expect(openDeck({ store, ...(config as DeckConfig) })).rejects.toEqual(refusal);
});

test('the check accepts any input or throws its own error', async () => {
  await fc.assert(
    fc.asyncProperty(fc.anything({ withNullPrototype: true }), async (value) => {
      try {
        await parseConfig(value);
      } catch (error) {
        expect(error).toBeInstanceOf(SessionError);
      }
    }),
  );
});

test('the command line overrides the file, and the file overrides the home; limits one by one', () => {
  const yaml = {
    model: 'yaml/m',
    summarizer: 'yaml/s',
    instructions: 'yaml',
    limits: { maxSteps: 1, retries: 1, abortGraceMs: 1 },
  };
  const file: DeckConfig = {
    model: 'file/m',
    instructions: 'file',
    tools: { add },
    limits: { maxSteps: 2, retries: 2 },
  };
  const flags: DeckConfig = { model: 'flags/m', limits: { maxSteps: 3 } };
  const frozen = structuredClone({ yaml, flags });
  expect(mergeConfig({ yaml, file, flags })).toEqual({
    model: 'flags/m',
    summarizer: 'yaml/s',
    instructions: 'file',
    tools: { add },
    limits: { maxSteps: 3, retries: 2, abortGraceMs: 1 },
  });
  expect({ yaml, flags }).toEqual(frozen);
  expect(mergeConfig({ yaml, file })).toMatchObject({ model: 'file/m', limits: { maxSteps: 2 } });
  expect(mergeConfig({})).toEqual({});
});

test('an undefined field is absent: the value below it counts', () => {
  const gaps = { model: undefined, limits: { retries: undefined } } as unknown as DeckConfig;
  const below: DeckConfig = { model: 'm/m', limits: { retries: 5 } };
  expect(mergeConfig({ flags: gaps, yaml: below })).toEqual(below);
  expect(mergeConfig({ flags: gaps })).not.toHaveProperty('model');
  expect(limitsOf(gaps)).toEqual(defaultLimits);
  expect(limitsOf(below)).toEqual({ ...defaultLimits, retries: 5 });
});
