import {
  assistant,
  type Draft,
  type Json,
  type Part,
  type Target,
  toolCall,
  toolResult,
  user,
  view,
} from '@tapedeck/tape';
import { continueText, noAnswer, noResult, noStart } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { flatten } from '../support/copying-model.ts';
import { entriesOf } from '../support/entries.ts';

const anthropic = { provider: 'anthropic.messages' };
const chat = { provider: 'openai.chat' };
const compatible = { provider: 'openai-compatible.chat' };

const lines = (drafts: readonly Draft[], target: Target = {}) => flatten(view(entriesOf(drafts), { target }));
const parts = (draft: Draft, target: Target) =>
  view(entriesOf([user('q'), draft, user('q')]), { target }).messages[1]?.content ?? [];
const userParts = (part: Part, target: Target) =>
  view(entriesOf([user([part])]), { target }).messages[0]?.content;
const read = (toolCallId: string) => ({ toolCallId, toolName: 'read' });

describe('roles in a view', () => {
  test('the user begins', () => {
    expect(lines([assistant('a'), user('b')])).toEqual([`user ${noStart}`, 'assistant a', 'user b']);
  });

  test('between two messages of the assistant a user message requests to continue', () => {
    const drafts = [user('a'), assistant('b'), user(' '), assistant('c')];
    expect(lines(drafts)).toEqual(['user a', 'assistant b', `user ${continueText}`, 'assistant c']);
  });

  test('a chat template gets an answer between a result and the user; others need none', () => {
    const drafts = [
      user('a'),
      assistant([toolCall('c1', 'read', {})]),
      toolResult(read('c1'), 'x'),
      user('b'),
    ];
    expect(lines(drafts, compatible)).toEqual([
      'user a',
      'assistant calls c1',
      'tool c1 x',
      `assistant ${noAnswer}`,
      'user b',
    ]);
    for (const target of [anthropic, chat, {}]) expect(lines(drafts, target)).toHaveLength(4);
  });

  test('later messages do not change what was shown before', () => {
    const drafts = [
      assistant('a'),
      assistant([toolCall('c', 'r', {})]),
      toolResult(read('c'), 1),
      user('b'),
      assistant('c'),
    ];
    for (const target of [{}, anthropic, compatible]) {
      const whole = lines(drafts, target);
      for (const n of [1, 3, 4, 5])
        expect(whole).toEqual(expect.arrayContaining(lines(drafts.slice(0, n), target)));
    }
  });
});

describe('empty content', () => {
  test('is not shown: blank texts, reasoning that led to nothing', () => {
    const reasoning = { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 's' } } };
    const text = { type: 'text', text: 'So.' };
    const blank = { type: 'text', text: ' \n' };
    const by = (...content: Part[]) => assistant(content, anthropic);
    expect(parts(by(reasoning, text, blank, reasoning), anthropic)).toEqual([reasoning, text]);
    expect(lines([user('a'), by(reasoning, blank), user([blank]), user('b')], anthropic)).toEqual([
      'user a',
      'user b',
    ]);
  });

  test('is kept where its provider reads something from it', () => {
    const google = { provider: 'google.generative-ai' };
    const signed = { type: 'text', text: '', providerOptions: { google: { thoughtSignature: 's' } } };
    expect(parts(assistant([signed], google), google)).toEqual([signed]);
    expect(view(entriesOf([user('q'), assistant([signed], google)]), { target: chat }).messages).toHaveLength(
      1,
    );
  });
});

describe('a partial answer', () => {
  const content = [
    { type: 'reasoning', text: 'hm', providerOptions: { openai: { itemId: 'rs_1' } } },
    { type: 'text', text: 'I think ', providerOptions: { openai: { itemId: 'msg_1' } } },
    { type: 'tool-call', toolCallId: 'ws_1', toolName: 'web_search', input: {}, providerExecuted: true },
  ];

  test('is its text alone, for its own provider too', () => {
    const draft = assistant(content, { provider: 'openai.responses', partial: true });
    expect(parts(draft, { provider: 'openai.responses' })).toEqual([
      { type: 'text', text: 'I think ' },
      { type: 'text', text: '[web_search was called by the provider: {}]' },
    ]);
  });
});

describe('calls', () => {
  const shown = (draft: Draft, target: Target) => parts(draft, target)[0];

  test('have ids and names that their target accepts, the same on both sides', () => {
    const odd = toolCall('functions.read:0', 'fs.read', {});
    const drafts = [
      user('q'),
      assistant([odd], { provider: 'google.generative-ai' }),
      toolResult({ toolCallId: 'functions.read:0', toolName: 'other' }, 'x'),
    ];
    const [, asked, answered] = view(entriesOf(drafts), { target: anthropic }).messages;
    const id = asked?.content[0]?.toolCallId;
    expect(id).toMatch(/^functions_read_0_[0-9a-f]{8}$/);
    const toolName = expect.stringMatching(/^fs_read_[0-9a-f]{16}$/);
    expect(asked?.content[0]).toMatchObject({ toolName });
    expect(answered?.content[0]).toMatchObject({ toolCallId: id, toolName: asked?.content[0]?.toolName });
  });

  test('with long ids are cut to the limit, and stay distinct', () => {
    const draft = assistant([toolCall('x'.repeat(99), 'n', {}), toolCall('x'.repeat(98), 'n', {})]);
    const ids = parts(draft, chat).map(({ toolCallId }) => String(toolCallId));
    expect(new Set(ids).size).toBe(2);
    expect(ids.every((id) => id.length <= 40)).toBe(true);
    const again = [draft, draft, draft].map((d) => d);
    const all = view(entriesOf([user('q'), ...again]), { target: chat }).messages.flatMap(
      ({ role, content }) =>
        role === 'assistant' ? content.map(({ toolCallId }) => String(toolCallId)) : [],
    );
    expect(new Set(all).size).toBe(6);
    expect(all.every((id) => id.length <= 40)).toBe(true);
  });

  test('keep the id that their own server gave, whatever it looks like', () => {
    const call = toolCall('functions.read:0', 'read', {});
    expect(shown(assistant([call], compatible), compatible)).toEqual(call);
  });

  test.each<[Json, Json]>([
    [{ a: 1 }, { a: 1 }],
    ['{"a":1}', { a: 1 }],
    ['{"a', { rawInvalidInput: '{"a' }],
    [null, { rawInvalidInput: null }],
    [[1], { rawInvalidInput: [1] }],
  ])('with the arguments %j are shown with %j', (input, expected) => {
    expect(shown(assistant([toolCall('c', 'read', input)], anthropic), anthropic)).toMatchObject({
      input: expected,
    });
  });
});

describe('results', () => {
  const output = (value: Json, target: Target) => {
    const drafts = [user('q'), assistant([toolCall('c', 'read', {})]), toolResult(read('c'), value)];
    return view(entriesOf(drafts), { target }).messages[2]?.content[0]?.output;
  };
  const image = { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AAAA' } };
  const table = {
    type: 'file',
    mediaType: 'text/csv',
    data: { type: 'data', data: 'YSxi' },
    filename: 'a.csv',
  };
  const content = {
    type: 'content',
    value: [{ type: 'text', text: 'See' }, { type: 'text', text: ' ' }, image, table],
  };

  test('contain the files that their target accepts, and words for the others', () => {
    expect(output(content, anthropic)).toEqual({
      type: 'content',
      value: [{ type: 'text', text: 'See' }, image, { type: 'text', text: 'a,b' }],
    });
    expect(output(content, {})).toEqual({
      type: 'content',
      value: [{ type: 'text', text: 'See' }, image, table],
    });
  });

  test('are one text in a chat', () => {
    expect(output(content, chat)).toEqual({
      type: 'text',
      value: 'See\n\n[A file that is not shown here: no name, image/png]\n\na,b',
    });
    expect(output({ type: 'content', value: [] }, anthropic)).toEqual({ type: 'text', value: '' });
  });

  test('that were denied are sent, whatever their options say', () => {
    const denied = {
      type: 'execution-denied',
      reason: 'no',
      providerOptions: { openai: { approvalId: 'a' } },
    };
    expect(output(denied, { provider: 'openai.responses' })).toEqual({
      type: 'execution-denied',
      reason: 'no',
    });
  });
});

describe('files of the user', () => {
  const png = { type: 'file', mediaType: 'image/png', data: 'AAAA' };

  test('are sent to targets that accept them', () => {
    for (const target of [{}, anthropic, chat, compatible]) expect(userParts(png, target)).toEqual([png]);
    expect(userParts({ type: 'image', image: 'AAAA' }, chat)).toEqual([
      { type: 'file', mediaType: 'image', data: 'AAAA' },
    ]);
  });

  test.each<[string, Part, Target]>([
    ['a picture for who reads texts alone', png, { ...compatible, textOnly: true }],
    ['a bitmap', { ...png, mediaType: 'image/bmp' }, anthropic],
    ['a sound', { ...png, mediaType: 'audio/wav' }, anthropic],
    ['a video', { ...png, mediaType: 'video/mp4' }, compatible],
    [
      'what another provider keeps',
      { ...png, data: { type: 'reference', reference: { google: 'f' } } },
      anthropic,
    ],
    ['what is not on the web', { ...png, data: 'gs://bucket/a.png' }, chat],
    ['what has no content', { type: 'file', mediaType: 'image/png' }, {}],
  ])('%s is described in words', (_, part, target) => {
    expect(userParts(part, target)).toEqual([
      { type: 'text', text: `[A file that is not shown here: no name, ${part.mediaType}]` },
    ]);
  });

  test('a text file is sent as its text', () => {
    const data = Buffer.from('a,b').toString('base64');
    expect(userParts({ type: 'file', mediaType: 'text/csv', data }, anthropic)).toEqual([
      { type: 'text', text: 'a,b' },
    ]);
    const plain = { type: 'file', mediaType: 'text/plain', data: { type: 'text', text: 'x' } };
    expect(userParts(plain, anthropic)).toEqual([plain]);
    expect(userParts(plain, chat)).toEqual([{ type: 'text', text: 'x' }]);
  });
});

describe('a call that a provider ran', () => {
  const by = (...content: Part[]) => assistant(content, anthropic);
  const call = {
    type: 'tool-call',
    toolCallId: 's1',
    toolName: 'web_search',
    input: { q: 1 },
    providerExecuted: true,
  };
  const found = {
    type: 'tool-result',
    toolCallId: 's1',
    toolName: 'web_search',
    output: { type: 'json', value: [{ url: 'u', encryptedContent: 'x' }] },
  };
  const shows = (drafts: readonly Draft[], target: Target = anthropic) =>
    view(entriesOf([user('q'), ...drafts]), { target }).messages.flatMap(({ role, content }) =>
      role === 'assistant' ? content.map(({ type }) => type) : [],
    );

  test('returns to it in pairs, over a pause too', () => {
    expect(shows([by(call, found)])).toEqual(['tool-call', 'tool-result']);
    expect(shows([by(call), by(found)])).toEqual(['tool-call', 'tool-result']);
    expect(shows([by(call)])).toEqual(['tool-call']);
  });

  test('is rendered as text where one of the pair is missing, or the id is taken', () => {
    expect(shows([by(call), user('stop')])).toEqual(['text']);
    expect(shows([by(call), user('stop'), by(found)])).toEqual(['text', 'text']);
    expect(shows([by(found)])).toEqual(['text']);
    expect(shows([by(call, found), user('again'), by(call, found)])).toEqual([
      'tool-call',
      'tool-result',
      'text',
      'text',
    ]);
  });

  test('is rendered as text for others, without the part that only it can read', () => {
    const [, asked] = view(entriesOf([user('q'), by(call, found)]), { target: chat }).messages;
    expect(asked?.content).toEqual([
      { type: 'text', text: '[web_search was called by the provider: {"q":1}]' },
      { type: 'text', text: '[web_search answered: {"type":"json","value":[{"url":"u"}]}]' },
    ]);
    expect(shows([assistant([call, found], chat)], chat)).toEqual(['text', 'text']);
  });
});

test('options reach a provider by each of the names that it reads', () => {
  const part = {
    type: 'text',
    text: 'x',
    providerOptions: { openaiCompatible: { a: 1 }, bedrock: { b: 1 }, other: { c: 1 } },
  };
  const options = (target: Target) => userParts(part, target)?.[0]?.providerOptions;
  expect(options(compatible)).toEqual({ openaiCompatible: { a: 1 } });
  expect(options({ provider: 'some-server.chat' })).toEqual({ openaiCompatible: { a: 1 } });
  expect(options({ provider: 'amazon-bedrock' })).toEqual({ bedrock: { b: 1 } });
  expect(options(anthropic)).toBeUndefined();
});

test('two calls of one id in one message each get their own result, and a single result goes to the first', () => {
  const call = toolCall('c', 'read', {});
  const result = (text: string) => toolResult({ toolCallId: 'c', toolName: 'read' }, text);
  const outputs = (...texts: string[]) =>
    view(entriesOf([user('Go'), assistant([call, call]), ...texts.map(result)]))
      .messages.filter(({ role }) => role === 'tool')
      .flatMap(({ content }) => content.map(({ output }) => (output as { value: unknown }).value));
  expect(outputs('one', 'two')).toEqual(['one', 'two']);
  expect(outputs('one')).toEqual(['one', noResult]);
});

describe('an item that its provider stores', () => {
  const by = { provider: 'openai.responses' };
  const options = (itemId: string) => ({ providerOptions: { openai: { itemId } } });
  const thought = (itemId: string) => ({ type: 'reasoning', text: 'hm', ...options(itemId) });
  const said = (text: string, itemId: string) => ({ type: 'text', text, ...options(itemId) });
  const shown = (...drafts: Draft[]) =>
    view(entriesOf([user('q'), ...drafts]), { target: by })
      .messages.filter(({ role }) => role === 'assistant')
      .map(({ content }) => content);

  test('returns to it once; a message that repeats it is its text alone', () => {
    const first = [thought('rs_1'), thought('rs_1'), said('a', 'msg_1')];
    const again = [thought('rs_1'), said('b', 'msg_2')];
    expect(shown(assistant(first, by), user('q'), assistant(again, by))).toEqual([
      first,
      [{ type: 'text', text: 'b' }],
    ]);
    expect(shown(assistant([said('a', 'msg_1'), said('b', 'msg_1')], by))).toEqual([
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    ]);
  });
});
