import type { JsonObject } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { alternating } from '../support/provider/alternating.ts';
import { anthropic } from '../support/provider/anthropic.ts';
import { chat } from '../support/provider/chat.ts';
import { google } from '../support/provider/google.ts';
import type { Protocol } from '../support/provider/protocol.ts';
import { responses } from '../support/provider/responses.ts';
import { issued, sealed, signatureOf } from '../support/provider/signed.ts';

const refusal = (protocol: Protocol, body: JsonObject) => protocol.fault(body)?.message;
const user = (...content: JsonObject[]) => ({ role: 'user', content });
const assistant = (...content: JsonObject[]) => ({ role: 'assistant', content });
const text = (words: string) => ({ type: 'text', text: words });

describe('a server of Anthropic', () => {
  const asked = (messages: JsonObject[], more: JsonObject = {}) =>
    refusal(anthropic, { model: 'claude', max_tokens: 100, stream: true, messages, ...more });
  const use = (id: string, more: JsonObject = {}) => ({
    type: 'tool_use',
    id,
    name: 'read',
    input: {},
    ...more,
  });
  const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' });
  const serverUse = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } };
  const found = (encrypted_content: string) => ({
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [{ type: 'web_search_result', url: 'u', title: 't', page_age: null, encrypted_content }],
  });
  const thinking = { type: 'thinking', thinking: 'hm', signature: signatureOf('hm') };
  const image = (media_type: string) => ({
    type: 'image',
    source: { type: 'base64', media_type, data: 'AAAA' },
  });
  const go = user(text('go'));

  test('accepts valid requests', () => {
    expect(asked([go])).toBeUndefined();
    expect(
      asked([
        user(text('go'), image('image/png')),
        assistant(
          thinking,
          { type: 'redacted_thinking', data: sealed('x') },
          text('So '),
          use('a'),
          use('b'),
        ),
        user(result('b'), result('a'), text('and')),
        assistant(serverUse, found(sealed('u')), text('found')),
        user(text('one')),
        user(text('two')),
      ]),
    ).toBeUndefined();
    expect(asked([go, assistant(text('Wait'), serverUse)])).toBeUndefined();
  });

  test.each<[string, JsonObject[], JsonObject?]>([
    ['max_tokens', [go], { max_tokens: null }],
    ['at least one message', []],
    ['first message', [assistant(text('hi')), go]],
    ['Unexpected role "system"', [{ role: 'system', content: 'x' }, go]],
    ['alternate', [go, assistant(text('a')), assistant(text('b')), go]],
    ['non-empty content', [user()]],
    ['non-empty content', [{ role: 'user', content: '' }]],
    ['must be non-empty', [user(text(''))]],
    ['non-whitespace', [user(text(' \n'))]],
    ['non-whitespace', [go, assistant(text('\n')), go]],
    ['trailing whitespace', [go, assistant(text('I think '))]],
    ['prefill', [go, assistant(text('I think'))]],
    ['without `tool_result`', [go, assistant(use('a'))]],
    ['without `tool_result`', [go, assistant(use('a')), go]],
    ['without `tool_result`', [go, assistant(use('a'), use('b')), user(result('a'))]],
    ['unexpected `tool_use_id`', [go, assistant(use('a')), user(text('first'), result('a'))]],
    ['unexpected `tool_use_id`', [go, assistant(use('a')), user(result('a'), result('a'))]],
    ['unexpected `tool_use_id`', [user(result('a'))]],
    ['must be unique', [go, assistant(use('a')), user(result('a')), assistant(use('a')), user(result('a'))]],
    ['tool_use.id', [go, assistant(use('a.b')), user(result('a.b'))]],
    ['tool_use.name', [go, assistant(use('a', { name: 'read file' })), user(result('a'))]],
    ['tool_use.input', [go, assistant(use('a', { input: 'x' })), user(result('a'))]],
    ['Invalid `signature`', [go, assistant({ type: 'thinking', thinking: 'hm' }, text('a')), go]],
    ['Invalid `signature`', [go, assistant({ ...thinking, thinking: 'hmm' }, text('a')), go]],
    ['Invalid `signature`', [go, assistant({ ...thinking, signature: 'c2ln' }, text('a')), go]],
    ['Invalid `data`', [go, assistant({ type: 'redacted_thinking', data: 'x' }, text('a')), go]],
    ['cannot be `thinking`', [go, assistant(text('a'), thinking), go]],
    ['`server_tool_use` block before', [go, assistant(found(sealed('u')), text('a')), go]],
    ['without a corresponding', [go, assistant(serverUse), go]],
    ['`encrypted_content`', [go, assistant(serverUse, found('x')), go]],
    ['media_type', [user(image('image/bmp'))]],
    [
      'invalid base64',
      [user({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: '' } })],
    ],
    ['not match any', [user({ type: 'audio' })]],
    ['surrogate', [user(text('half \ud83d'))]],
  ])('refuses what lacks %j: %j', (words, messages, more) => {
    expect(asked(messages, more)).toContain(words);
  });

  test('refuses a tool of a wrong name, and two of one name', () => {
    const tool = (name: string) => ({ name, input_schema: { type: 'object' } });
    expect(asked([go], { tools: [tool('read')] })).toBeUndefined();
    expect(asked([go], { tools: [tool('fs.read')] })).toContain('Invalid tool name');
    expect(asked([go], { tools: [tool('read'), tool('read')] })).toContain('must be unique');
  });

  test('refuses a wrong key as Anthropic does', () => {
    const failure = anthropic.refuses({ 'x-api-key': 'other' });
    expect(failure && anthropic.errorBody(failure)).toMatchObject({
      type: 'error',
      error: { type: 'authentication_error', message: 'invalid x-api-key' },
    });
  });
});

describe('a server of chat completions', () => {
  const asked = (messages: JsonObject[], protocol = chat) =>
    refusal(protocol, { model: 'gpt', stream: true, messages });
  const go = { role: 'user', content: 'go' };
  const call = (id: string, name = 'read', args = '{}') => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name, arguments: args } }],
  });
  const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'ok' });
  const said = { role: 'assistant', content: 'Done.' };

  test('accepts valid requests', () => {
    const turns = [{ role: 'system', content: 's' }, go, call('a'), result('a'), said, go];
    expect(asked(turns)).toBeUndefined();
    expect(asked(turns, alternating)).toBeUndefined();
    expect(asked([go, call('a'), result('a')], alternating)).toBeUndefined();
  });

  test('refuses a tool of a wrong name', () => {
    const tools = ['read', 'fs.read'].map((name) => ({ type: 'function', function: { name } }));
    expect(refusal(chat, { model: 'gpt', stream: true, messages: [go], tools })).toContain('fs.read');
  });

  test.each<[string, JsonObject[]]>([
    ['too short', []],
    ['is empty', [{ role: 'user', content: '' }]],
    ['is empty', [go, { role: 'assistant', content: ' ' }]],
    ['have no result', [go, call('a')]],
    ['have no result', [go, call('a'), go]],
    ['no tool call before', [go, result('a')]],
    ['two tool calls', [go, call('a'), result('a'), call('a'), result('a')]],
    ['longer than 40', [go, call('x'.repeat(41)), result('x'.repeat(41))]],
    ['no valid name', [go, call('a', 'fs.read'), result('a')]],
    ['must be an object', [go, call('a', 'read', '[]'), result('a')]],
    ['not JSON', [go, call('a', 'read', '{"a'), result('a')]],
    ['could not parse', [{ role: 'user', content: '\ud83d' }]],
    [
      'unsupported image',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/bmp;base64,AAAA' } }] }],
    ],
  ])('refuses a wrong request: %s: %j', (words, messages) => {
    expect(asked(messages)).toContain(words);
    expect(asked(messages, alternating)).toContain(words);
  });

  test.each<[string, JsonObject[]]>([
    ['must alternate', [said, go]],
    ["'user' after role 'user'", [go, go]],
    ["'assistant' after role 'assistant'", [go, said, said, go]],
    ["'user' after role 'tool'", [go, call('a'), result('a'), go]],
    ['Expected last role', [go, said]],
    [
      'not a multimodal model',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }] }],
    ],
  ])('a strict template refuses more: %s: %j', (words, messages) => {
    expect(asked(messages)).toBeUndefined();
    expect(asked(messages, alternating)).toContain(words);
  });
});

describe("a server of OpenAI's responses", () => {
  const asked = (input: JsonObject[]) => refusal(responses, { model: 'gpt-5', stream: true, input });
  const go = { role: 'user', content: [{ type: 'input_text', text: 'go' }] };
  const said = { role: 'assistant', content: 'Done.' };
  const reasoning = { type: 'item_reference', id: issued('rs', 'a') };
  const call = { type: 'function_call', call_id: 'c', name: 'read', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'c', output: 'ok' };

  test('accepts valid requests', () => {
    const sealedItem = {
      type: 'reasoning',
      id: issued('rs', 'b'),
      encrypted_content: sealed('b'),
      summary: [],
    };
    expect(asked([go, reasoning, said, go, sealedItem, call, output])).toBeUndefined();
  });

  test('refuses a tool of a wrong name', () => {
    const tools = [{ type: 'web_search' }, { type: 'function', name: 'fs.read' }];
    expect(refusal(responses, { model: 'gpt-5', stream: true, input: [go], tools })).toContain('fs.read');
  });

  test.each<[string, JsonObject[]]>([
    ['without its required following item', [go, reasoning]],
    ['without its required following item', [go, reasoning, go]],
    ['not found', [go, { type: 'item_reference', id: 'msg_1' }]],
    ['Duplicate item', [go, reasoning, said, reasoning, said]],
    ['could not be verified', [go, { type: 'reasoning', encrypted_content: 'x', summary: [] }, said]],
    ['No tool output', [go, call]],
    ['No tool call found', [go, output]],
    ['Duplicate call_id', [go, call, output, call, output]],
    ["Invalid 'name'", [go, { ...call, name: 'fs.read' }, output]],
    ['is empty', [{ role: 'user', content: [{ type: 'input_text', text: '' }] }]],
    [
      'base64-encoded PDF',
      [{ role: 'user', content: [{ type: 'input_file', file_data: 'data:text/csv;base64,AAAA' }] }],
    ],
  ])('refuses a wrong request: %s: %j', (words, input) => {
    expect(asked(input)).toContain(words);
  });
});

describe('a server of Google', () => {
  const asked = (contents: JsonObject[], more: JsonObject = {}) => refusal(google, { contents, ...more });
  const said = (role: string, ...parts: JsonObject[]) => ({ role, parts });
  const go = said('user', { text: 'go' });
  const call = (name = 'read', args: JsonObject | string = {}) => ({ functionCall: { name, args } });
  const response = (name = 'read', fields: JsonObject | string = { content: 'ok' }) => ({
    functionResponse: { name, response: fields },
  });
  const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } });
  const thought = { text: 'hm', thought: true, thoughtSignature: sealed('hm') };

  test('accepts valid requests', () => {
    expect(asked([go])).toBeUndefined();
    expect(
      asked([
        said('user', { text: 'go' }, inline('image/png', 'AAAA')),
        said('model', thought, { text: 'So' }, call(), call('fs.read:0')),
        said('user', response('fs.read:0'), response()),
        said('model', { text: '', thoughtSignature: sealed('') }),
        go,
        go,
      ]),
    ).toBeUndefined();
  });

  test.each<[string, JsonObject[], JsonObject?]>([
    ['contents is not specified', []],
    ['valid role', [said('assistant', { text: 'go' })]],
    ['must not be empty', [go, said('model'), go]],
    ['one initialized field', [said('user', { text: '' })]],
    ['one initialized field', [said('user', {})]],
    ['first turn', [said('model', { text: 'hi' }), go]],
    ['last turn', [go, said('model', { text: 'hi' })]],
    ['equal to the number', [go, said('model', call())]],
    ['equal to the number', [go, said('model', call()), go]],
    ['equal to the number', [go, said('model', call(), call('b')), said('user', response())]],
    ['equal to the number', [go, said('model', call()), said('user', response(), response())]],
    ['immediately after a function call turn', [said('user', response())]],
    ['immediately after a user turn', [go, said('model', { text: 'a' }), said('model', call())]],
    ['not a part of a user', [said('user', call())]],
    ['Invalid function name', [go, said('model', call('read file')), said('user', response('read file'))]],
    ['Invalid function name', [go, said('model', call('1st')), said('user', response('1st'))]],
    ['Invalid function name', [go], { tools: [{ functionDeclarations: [{ name: 'a b' }] }] }],
    ['Duplicate', [go], { tools: [{ functionDeclarations: [{ name: 'a' }, { name: 'a' }] }] }],
    ['Struct', [go, said('model', call('read', 'x')), said('user', response())]],
    ['Struct', [go, said('model', call()), said('user', response('read', 'x'))]],
    ['Thought signature', [go, said('model', { text: 'a', thoughtSignature: 'x' }), go]],
    ['Unsupported MIME type', [said('user', inline('image/bmp', 'AAAA'))]],
    ['Unsupported MIME type', [said('user', inline('image/*', 'AAAA'))]],
    ['Base64', [said('user', inline('image/png', ''))]],
    ['Unexpected token', [said('user', { text: 'half \ud83d' })]],
  ])('refuses a wrong request: %s: %j', (words, contents, more) => {
    expect(asked(contents, more)).toContain(words);
  });
});
