import type { CallSettings } from '@tapedeck/runtime';
import type { JsonObject } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { openDeck } from '../support/deck.ts';
import { modeOf } from '../support/provider/modes.ts';
import { startProvider } from '../support/provider.ts';
import { served } from '../support/served.ts';
import { openStore } from '../support/store.ts';

/** The settings in a request of a compatible server. */
const sent = (request: JsonObject | undefined) => ({
  temperature: request?.temperature,
  effort: request?.reasoning_effort,
  user: request?.user,
});

const userOf = (user: string) => ({ openaiCompatible: { user } });

test.each<[string, CallSettings, JsonObject]>([
  [
    'anthropic',
    { temperature: 0.25, providerOptions: { anthropic: { metadata: { userId: 'u-1' } } } },
    { temperature: 0.25, metadata: { user_id: 'u-1' } },
  ],
  [
    'anthropic',
    { effort: 'medium', providerOptions: { anthropic: { sendReasoning: true } } },
    { thinking: { type: 'enabled' } },
  ],
  [
    'openai chat',
    { temperature: 0, providerOptions: { openai: { user: 'u-1' } } },
    { temperature: 0, user: 'u-1' },
  ],
  [
    'openai responses',
    { effort: 'low', providerOptions: { openai: { user: 'u-1' } } },
    { reasoning: { effort: 'low' }, user: 'u-1' },
  ],
  [
    'compatible',
    { temperature: 1.5, effort: 'high', providerOptions: { openaiCompatible: { top_k: 40 } } },
    { temperature: 1.5, reasoning_effort: 'high', top_k: 40 },
  ],
])('settings reach %s in the body of its requests: %j', async (name, settings, body) => {
  const mode = modeOf(name);
  await using provider = await startProvider(() => ({ text: 'Fine.' }), mode.protocol);
  using store = openStore();
  await using deck = await openDeck({ store, model: mode.model({ baseURL: provider.url }) });
  const main = await deck.session('main');
  expect(await main.run('Hi', { settings })).toMatchObject({ finish: 'stop' });
  expect(provider.requests[0]).toMatchObject(body);
  // What the call was made with is on the tape, with the turn.
  const [asked, answer] = (await Array.fromAsync(main.entries({ kind: 'message' }))).map(
    ({ meta }) => meta.settings,
  );
  expect([asked, answer]).toEqual([settings, settings]);
});

test('settings of a run override those of the session, and those override the deck, one by one', async () => {
  await using s = await served(() => ({ text: 'Fine.' }), { settings: { temperature: 1, effort: 'low' } });
  const last = () => sent(s.provider.requests.at(-1));
  await s.main.run('One');
  expect(last()).toEqual({ temperature: 1, effort: 'low', user: undefined });
  await s.main.run('Two', { settings: { temperature: 0.2 } });
  expect(last()).toEqual({ temperature: 0.2, effort: 'low', user: undefined });
  await s.main.run('Three', { settings: { providerOptions: userOf('u') } });
  expect(last()).toEqual({ temperature: 0.2, effort: 'low', user: 'u' });
  const { run } = await s.main.send('Four', { settings: { effort: 'high' } });
  await run;
  expect(last()).toEqual({ temperature: 0.2, effort: 'high', user: 'u' });
  // Another deck, with other defaults, keeps what the session carries; the rest is its own.
  await using other = await openDeck({
    store: s.store,
    model: 'openai-compatible/other',
    settings: { temperature: 2, effort: 'max' },
    env: s.provider.env,
  });
  await (await other.session('main')).run('Five');
  expect(last()).toEqual({ temperature: 0.2, effort: 'high', user: 'u' });
  await (await other.session('second')).run('Six');
  expect(last()).toEqual({ temperature: 2, effort: 'max', user: undefined });
});

test('a session is created with a model and settings, which its runs use until others are named', async () => {
  await using s = await served(() => ({ text: 'Fine.' }), { settings: { temperature: 1 } });
  const settings: CallSettings = { effort: 'low', temperature: 0 };
  await s.deck.session('kept', { title: 'Kept', model: 'openai-compatible/own', settings });
  await using other = await openDeck({ store: s.store, model: 'openai-compatible/m', env: s.provider.env });
  const kept = await other.session('kept', { model: 'openai-compatible/late', settings: { temperature: 2 } });
  await kept.run('One');
  expect(s.provider.requests.at(-1)).toMatchObject({ model: 'own', temperature: 0, reasoning_effort: 'low' });
  const named = { model: 'openai-compatible/new', settings: { effort: 'high' } } as const;
  await kept.run('Two', named);
  await kept.delegate('Look', { inherit: 'nothing' });
  expect(s.provider.requests.at(-1)).toMatchObject({
    model: 'new',
    temperature: 0,
    reasoning_effort: 'high',
  });
  await expect(s.deck.session('bad', { model: 'gpt-5' })).rejects.toMatchObject({ code: 'SESSION_NO_MODEL' });
  await expect(s.deck.session('bad', { settings: { temperature: 3 } })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
  expect(s.store.sessions.find('bad')).toBeUndefined();
});

test('children inherit the settings of their parent, or get others', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const last = () => sent(s.provider.requests.at(-1));
  await s.main.run('One', { settings: { temperature: 0.2, effort: 'low' } });
  for (const inherit of ['all', 'nothing'] as const) {
    await s.main.delegate('Look', { inherit });
    expect(last()).toEqual({ temperature: 0.2, effort: 'low', user: undefined });
  }
  await s.main.delegate({ task: 'Look', settings: { effort: 'none' } }, { settings: { temperature: 0.9 } });
  expect(last()).toEqual({ temperature: 0.9, effort: 'none', user: undefined });
  const child = await s.main.fork({ settings: { temperature: 0 } });
  await child.run('Well?');
  await child.run('And?');
  expect(last()).toEqual({ temperature: 0, effort: 'low', user: undefined });
  const branch = await s.main.branch(undefined, { settings: { effort: 'max' } });
  await branch.run('Well?');
  expect(last()).toEqual({ temperature: 0.2, effort: 'max', user: undefined });
  await s.main.run('Two');
  expect(last()).toEqual({ temperature: 0.2, effort: 'low', user: undefined });
});

test('a resent message keeps its settings, or gets others', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const { from } = await s.main.run('One', { settings: { temperature: 0.2, effort: 'low' } });
  const { run } = await s.main.rewind(from, { mode: 'resend', settings: { effort: 'high' } });
  await run;
  expect(sent(s.provider.requests.at(-1))).toEqual({ temperature: 0.2, effort: 'high', user: undefined });
});

const refused: readonly [string, unknown, string][] = [
  ['a temperature above 2', { temperature: 2.5 }, 'settings.temperature must be a number from 0 to 2'],
  ['a temperature that is not a number', { temperature: Number.NaN }, 'temperature must be a number'],
  ['an unknown effort', { effort: 'huge' }, 'settings.effort must be one of'],
  ['an unknown setting', { topP: 1 }, 'settings.topP is not a setting'],
  ['options without a provider', { providerOptions: { user: 'u' } }, 'must be an object of JSON objects'],
  [
    'options that are not JSON',
    { providerOptions: { a: { b: () => 1 } } },
    'must be an object of JSON objects',
  ],
  ['a key', { providerOptions: { gateway: { byok: { a: [{ apiKey: 'k' }] } } } }, "must not have 'byok'"],
  ['an address', { providerOptions: { a: { x: [{ base_url: 'http://x' }] } } }, "must not have 'base_url'"],
  ['a header', { providerOptions: { a: { headers: {} } } }, "must not have 'headers'"],
  ['another model', { providerOptions: { a: { model: 'x' } } }, "must not have 'model'"],
];

test.each(refused)('settings with %s are refused before anything is written', async (_, given, says) => {
  const settings = given as CallSettings;
  await using s = await served(() => ({ text: 'Fine.' }));
  const refusal = { code: 'SESSION_BAD_INPUT', message: expect.stringContaining(says) };
  await expect(s.main.run('Hi', { settings })).rejects.toMatchObject(refusal);
  await expect(s.main.send('Hi', { settings })).rejects.toMatchObject(refusal);
  await expect(s.main.fork({ settings })).rejects.toMatchObject(refusal);
  await expect(s.main.branch(undefined, { settings })).rejects.toMatchObject(refusal);
  await expect(s.main.delegate('Look', { settings })).rejects.toMatchObject(refusal);
  await expect(s.main.delegate({ task: 'Look', settings })).rejects.toMatchObject(refusal);
  await expect(openDeck({ store: s.store, settings })).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
    data: { field: expect.stringMatching(/^settings\./) },
  });
  expect(s.store.sessions.list({ all: true })).toHaveLength(1);
  expect(s.lines()).toEqual([]);
});

test('settings on a tape that connect to a provider, or that no model accepts, are ignored', async () => {
  await using s = await served(() => ({ text: 'Fine.' }));
  const settings = {
    temperature: 0.4,
    effort: 'huge',
    providerOptions: { openaiCompatible: { user: 'u', headers: { x: 'y' } } },
  };
  s.store.entries.append('main', [
    { kind: 'message', payload: { role: 'user', content: 'Hi' }, meta: { run: 'r', settings } },
  ]);
  await s.main.run();
  expect(sent(s.provider.requests[0])).toEqual({ temperature: 0.4, effort: undefined, user: undefined });
});
