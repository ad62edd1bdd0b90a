import { modelMessageSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';
import { ask } from '../support/provider/ask.ts';
import { modeOf } from '../support/provider/modes.ts';
import { sealed } from '../support/provider/signed.ts';
import { calls, model, outline, person, read, returns, says } from '../support/transcript.ts';

const contentOf = (draft: { payload: unknown } | undefined) =>
  (draft?.payload as { content?: unknown } | undefined)?.content;
const outputOf = (draft: { payload: unknown } | undefined) =>
  (draft?.payload as { output?: unknown } | undefined)?.output;

const image = { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'QUJD' } };
const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'UERG' } };

describe('the model’s message', () => {
  test('is one, from all its records', () => {
    const { drafts, counts } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1', id: 'm' }, [{ type: 'thinking', thinking: 'hm', signature: 'sig' }], {
        usage: {
          input_tokens: 5,
          output_tokens: 1,
          cache_read_input_tokens: 70,
          cache_creation_input_tokens: 9,
        },
      }),
      model({ uuid: 'a2', parent: 'a1', id: 'm' }, [says('1')], {
        usage: { input_tokens: 5, output_tokens: 33 },
      }),
      model({ uuid: 'a3', parent: 'a2', id: 'm' }, [calls('t1', 'Read', { file: 'x' })], {
        usage: { input_tokens: 5, output_tokens: 20 },
      }),
      person({ uuid: 'r1', parent: 'a3' }, [returns('t1')]),
    ]);
    expect(drafts[1]).toEqual({
      kind: 'message',
      key: 'cc:a1',
      payload: {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: { anthropic: { signature: 'sig' } } },
          { type: 'text', text: '1' },
          { type: 'tool-call', toolCallId: 't1', toolName: 'Read', input: { file: 'x' } },
        ],
      },
      meta: {
        source: 'import',
        provider: 'anthropic',
        model: 'claude-x',
        usage: { input: 5, output: 33, cacheRead: 70, cacheWrite: 9 },
        requestId: 'req_m',
        response: 'm',
        uuid: 'a1',
        timestamp: '2026-03-12T09:00:01.000Z',
      },
    });
    expect(counts).toMatchObject({ messages: 2, merged: 1, reordered: 0 });
  });

  test('continues around results and texts that no person typed', () => {
    const { lines } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1', id: 'm' }, [calls('t1')]),
      person({ uuid: 'r1', parent: 'a1' }, [returns('t1')]),
      person({ uuid: 'i1', parent: 'r1' }, [says('skill')], { isMeta: true }),
      model({ uuid: 'a2', parent: 'i1', id: 'm' }, [calls('t2')]),
      person({ uuid: 'r2', parent: 'a2' }, [returns('t2')]),
    ]);
    expect(lines).toEqual(['user: one', 'assistant: [t1] [t2]', 't1 → ok', 't2 → ok', 'user: skill']);
  });

  test('ends with a prompt, whatever ids a proxy gives; its usage is counted once', () => {
    const usage = { input_tokens: 5, output_tokens: 7 };
    const { lines, drafts, counts } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1', id: 'same' }, [says('1')], { usage }),
      person({ uuid: 'u2', parent: 'a1' }, 'two'),
      model({ uuid: 'a2', parent: 'u2', id: 'same' }, [says('2')], { usage }),
    ]);
    expect(lines).toEqual(['user: one', 'assistant: 1', 'user: two', 'assistant: 2']);
    expect(drafts.map(({ meta }) => meta?.usage !== undefined)).toEqual([false, true, false, false]);
    expect(counts.merged).toBe(0);
  });

  test('includes the blocks that parallel calls left off the path, each once', () => {
    const { lines, counts } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1', id: 'm' }, [says('1')]),
      model({ uuid: 'a2', parent: 'a1', id: 'm' }, [calls('t1')]),
      model({ uuid: 'a3', parent: 'a1', id: 'm' }, [calls('t2')]),
      model({ uuid: 'a4', parent: 'a1', id: 'm' }, [says('1')]),
      person({ uuid: 'r1', parent: 'a2' }, [returns('t1', 'first')]),
      person({ uuid: 'r2', parent: 'a3' }, [returns('t2', 'second')]),
      model({ uuid: 'a5', parent: 'r2' }, [says('2')]),
    ]);
    expect(lines).toEqual([
      'user: one',
      'assistant: 1 [t1] [t2]',
      't1 → first',
      't2 → second',
      'assistant: 2',
    ]);
    expect(counts).toMatchObject({ offPath: 0, repaired: 0, merged: 1 });
  });

  test.each([
    ['text', says('x'), { type: 'text', text: 'x' }],
    ['thinking without a signature', { type: 'thinking', thinking: 'x' }, { type: 'reasoning', text: 'x' }],
    [
      'a signature without thinking',
      { type: 'thinking', thinking: '', signature: 's' },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { signature: 's' } } },
    ],
    [
      'redacted thinking',
      { type: 'redacted_thinking', data: 'enc' },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'enc' } } },
    ],
    [
      'a tool of the provider',
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'q' } },
      {
        type: 'tool-call',
        toolCallId: 's1',
        toolName: 'web_search',
        input: { query: 'q' },
        providerExecuted: true,
      },
    ],
  ])('keeps %s', (_, block, part) => {
    const { drafts } = read([model({ uuid: 'a1' }, [block])]);
    expect(contentOf(drafts[0])).toEqual([part]);
  });

  test('keeps the result of a provider’s tool inside it', () => {
    const { drafts, counts } = read([
      model({ uuid: 'a1' }, [
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
        {
          type: 'web_search_tool_result',
          tool_use_id: 's1',
          content: [{ type: 'web_search_result', url: 'u', encrypted_content: 'enc' }],
        },
        says('found'),
      ]),
    ]);
    expect(drafts).toHaveLength(1);
    expect(contentOf(drafts[0])).toMatchObject([
      { type: 'tool-call', providerExecuted: true },
      {
        type: 'tool-result',
        toolCallId: 's1',
        toolName: 'web_search',
        output: {
          type: 'json',
          value: [{ type: 'web_search_result', url: 'u', encryptedContent: 'enc', pageAge: null }],
        },
      },
      { type: 'text' },
    ]);
    expect(counts.repaired).toBe(0);
  });

  test('keeps the failure of a provider’s tool, and the server that reported it', () => {
    const { drafts } = read([
      model({ uuid: 'a1' }, [
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
        {
          type: 'web_search_tool_result',
          tool_use_id: 's1',
          content: { type: 'web_search_tool_result_error', error_code: 'unavailable' },
        },
        { type: 'mcp_tool_use', id: 'm1', name: 'ask', server_name: 'wiki', input: {} },
        { type: 'mcp_tool_result', tool_use_id: 'm1', is_error: true, content: [] },
      ]),
    ]);
    expect(contentOf(drafts[0])).toMatchObject([
      {},
      { output: { type: 'error-json', value: { errorCode: 'unavailable' } } },
      { providerOptions: { anthropic: { type: 'mcp-tool-use', serverName: 'wiki' } } },
      { output: { type: 'error-json', value: [] } },
    ]);
  });

  test('returns the search results of a provider to it', async () => {
    const block = {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [
        { type: 'web_search_result', url: 'u', title: 't', encrypted_content: sealed('u'), page_age: 'May' },
      ],
    };
    const { drafts } = read([
      person({ uuid: 'u1' }, [says('look')]),
      model({ uuid: 'a1', parent: 'u1' }, [
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
        block,
        says('found'),
      ]),
      person({ uuid: 'u2', parent: 'a1' }, [says('and?')]),
    ]);
    const asked = await ask(modeOf('anthropic'), entriesOf(drafts));
    expect(asked?.refused).toBeUndefined();
    expect(asked?.body.messages).toMatchObject([{}, { content: [{}, block, {}] }, {}]);
  });

  test('keeps its record beside it when a block has an unknown type, or a call is invalid', () => {
    for (const odd of [{ type: 'hologram' }, calls(''), { type: 'tool_use', id: 't1' }, 7, null]) {
      const record = model({ uuid: 'a1' }, [says('1'), odd as never]);
      const { drafts } = read([record]);
      expect(outline(drafts)).toEqual(['assistant: 1', 'x-claude-code a1']);
      expect(drafts[1]).toMatchObject({ payload: record, key: 'cc:a1:rest' });
    }
  });

  test('without content is kept as a record', () => {
    for (const content of [[], [says('')], [{ type: 'thinking', thinking: '' }], undefined, 7]) {
      const { lines } = read([model({ uuid: 'a1' }, content as never)]);
      expect(lines).toEqual(['x-claude-code a1']);
    }
  });

  test('that is an error of the provider is an event', () => {
    const { drafts, counts } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [says('API Error: 529')], {
        isApiErrorMessage: true,
        error: 'overloaded',
      }),
    ]);
    expect(drafts[1]).toMatchObject({
      kind: 'event',
      name: 'api-error',
      key: 'cc:a1',
      payload: { text: 'API Error: 529', error: 'overloaded' },
      meta: { source: 'import', uuid: 'a1' },
    });
    expect(counts.messages).toBe(1);
  });
});

describe('a user’s message', () => {
  test('has texts and files', () => {
    const { drafts } = read([person({ uuid: 'u1' }, [says('look'), image, pdf])]);
    expect(drafts).toEqual([
      {
        kind: 'message',
        key: 'cc:u1',
        payload: {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'file', mediaType: 'image/jpeg', data: 'QUJD' },
            { type: 'file', mediaType: 'application/pdf', data: 'UERG' },
          ],
        },
        meta: { source: 'import', uuid: 'u1', timestamp: '2026-03-12T09:00:00.000Z' },
      },
    ]);
  });

  test('may be an address of a file, or a plain document', () => {
    const { drafts } = read([
      person({ uuid: 'u1' }, [
        { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' } },
      ]),
    ]);
    expect(contentOf(drafts[0])).toEqual([
      { type: 'file', mediaType: 'image', data: 'https://example.org/a.png' },
      { type: 'text', text: 'words' },
    ]);
  });

  test('that no person typed is marked', () => {
    const { drafts } = read([person({ uuid: 'u1' }, 'Base directory for this skill: x', { isMeta: true })]);
    expect(drafts[0]).toMatchObject({ kind: 'message', meta: { isMeta: true } });
  });

  test('of a command, of what it printed and of the note on them is marked; a prompt that mentions one is not', () => {
    const texts = [
      '<local-command-caveat>Caveat: The messages below were generated by the user</local-command-caveat>',
      '<command-name>/clear</command-name>\n  <command-message>clear</command-message>',
      '<command-message>init</command-message>\n<command-name>/init</command-name>',
      '<local-command-stdout></local-command-stdout>',
      '<bash-input>ls</bash-input>',
      '<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>',
      'What is <command-name>/clear</command-name> for?',
      '<b>Fix</b> the page.',
    ];
    const { drafts, lines } = read(
      texts.map((text, i) =>
        person({ uuid: `u${i}`, ...(i > 0 && { parent: `u${i - 1}` }) }, i === 1 ? [says(text)] : text),
      ),
    );
    expect(drafts.map(({ meta }) => meta?.localCommand)).toEqual([
      'note',
      'command',
      'command',
      'output',
      'command',
      'output',
      undefined,
      undefined,
    ]);
    expect(lines).toEqual(texts.map((text) => `user: ${text}`));
  });

  test('without content, or of unknown blocks only, is kept as a record', () => {
    for (const content of ['', [], [{ type: 'hologram' }], [{ type: 'image', source: { type: 'file' } }]]) {
      expect(read([person({ uuid: 'u1' }, content)]).lines).toEqual(['x-claude-code u1']);
    }
    expect(read([person({ uuid: 'u1' }, [says('a'), { type: 'hologram' }])]).lines).toEqual([
      'user: a',
      'x-claude-code u1',
    ]);
  });
});

describe('a tool’s output', () => {
  const output = (content: unknown, more = {}) => {
    const { drafts } = read([
      model({ uuid: 'a1' }, [calls('t1')]),
      person({ uuid: 'r1', parent: 'a1' }, [returns('t1', content, more)]),
    ]);
    return outputOf(drafts[1]);
  };
  const data = { type: 'data', data: 'QUJD' };
  test.each([
    ['a text', 'yes', {}, { type: 'text', value: 'yes' }],
    ['a failure', 'no', { is_error: true }, { type: 'error-text', value: 'no' }],
    ['texts', [says('a'), says('b')], {}, { type: 'text', value: 'a\nb' }],
    ['failed texts', [says('a')], { is_error: true }, { type: 'error-text', value: 'a' }],
    ['nothing', null, {}, { type: 'text', value: '' }],
    ['an empty list', [], {}, { type: 'text', value: '' }],
    [
      'an image among texts',
      [says('a'), image],
      {},
      { type: 'content', value: [says('a'), { type: 'file', mediaType: 'image/jpeg', data }] },
    ],
    [
      'an unknown block',
      [{ type: 'tool_reference', tool_name: 'x' }],
      {},
      { type: 'text', value: '{"type":"tool_reference","tool_name":"x"}' },
    ],
  ])('is %s', (_, content, more, expected) => {
    expect(output(content, more)).toEqual(expected);
  });
});

test('the AI SDK accepts messages and results', () => {
  const { drafts } = read([
    person({ uuid: 'u1' }, [
      says('look'),
      image,
      pdf,
      { type: 'image', source: { type: 'url', url: 'https://e.org/a' } },
    ]),
    model({ uuid: 'a1', parent: 'u1' }, [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'enc' },
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 's1', content: [{ url: 'u' }] },
      says('x'),
      calls('t1'),
      calls('t2'),
      calls('t3'),
    ]),
    person({ uuid: 'r1', parent: 'a1' }, [
      returns('t1', [says('a'), image, pdf]),
      returns('t2', 'no', { is_error: true }),
    ]),
  ]);
  expect(drafts).toHaveLength(5);
  for (const { kind, payload } of drafts) {
    const message = kind === 'message' ? payload : { role: 'tool', content: [payload] };
    expect(modelMessageSchema.safeParse(message).error).toBeUndefined();
  }
});
