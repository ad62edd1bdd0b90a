import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { DeckTools } from '@tapedeck/runtime';
import { type SqliteTapeStore, toolResult, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { jsonSchema, tool } from 'ai';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { entryLines, eventsOf, scriptedDeck } from '../support/scripted.ts';
import { sized } from '../support/size.ts';

const call = (id: string, name: string, input: object = {}) => ({ id, name, input });
const inputSchema = z.object({});
const results = (store: SqliteTapeStore) => entryLines(store.entries.read('main', { kind: 'tool-result' }));

/** A model that gives the stream, or fails to. */
function model(stream: () => Promise<ReadableStream<LanguageModelV4StreamPart>>): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'test',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it only streams')),
    doStream: async () => ({ stream: await stream() }),
  };
}

/** A model that streams whatever this is. */
const saying = (...parts: readonly unknown[]) =>
  model(async () => ReadableStream.from(parts) as ReadableStream<LanguageModelV4StreamPart>);

const finish = (reason: string) => ({
  type: 'finish',
  finishReason: { unified: reason, raw: undefined },
  usage: { inputTokens: {}, outputTokens: {} },
});
const text = (delta: string) => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
  { type: 'text-end', id: 't' },
];
const asking = (toolCallId: string, toolName: string, input = '{}') => ({
  type: 'tool-call',
  toolCallId,
  toolName,
  input,
});

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const failures: Readonly<Record<string, LanguageModelV4>> = {
  'an error': model(() => Promise.reject(new Error('no'))),
  'an error without a message': model(() => Promise.reject(new Error(''))),
  'a text': model(() => Promise.reject('no')),
  nothing: model(() => Promise.reject(undefined)),
  'what has no text': model(() => Promise.reject(Object.create(null))),
  'an error whose message cannot be read': model(() =>
    Promise.reject(
      Object.defineProperty(new Error('no'), 'message', {
        get: () => {
          throw new Error('nor this');
        },
      }),
    ),
  ),
  'an error in the stream': saying(...text('So'), { type: 'error', error: new Error('no') }),
  'a null in the stream': saying(...text('So'), { type: 'error', error: null }),
  'a stream that breaks': model(
    async () =>
      new ReadableStream({
        start: (controller) => {
          for (const part of text('So')) controller.enqueue(part as LanguageModelV4StreamPart);
        },
        pull: (controller) => controller.error(new TypeError('terminated')),
      }),
  ),
  'no stream at all': model(async () => undefined as never),
  'a part that is null': saying(null, finish('stop')),
  'a piece of a text that never began': saying({ type: 'text-delta', id: 'x', delta: 'So' }, finish('stop')),
  'a call without an id': saying({ type: 'tool-call', toolName: 'add', input: '{}' }, finish('tool-calls')),
  'a call without a name': saying(asking('c1', ''), finish('tool-calls')),
  'an unknown part': saying(...text('So'), { type: 'mystery', of: 'life' }, finish('stop')),
  'arguments that are nested beyond reading': saying(
    asking('c1', 'add', nested(20_000)),
    finish('tool-calls'),
  ),
  'an answer that no entry can hold': saying(...text('x'.repeat(17 * 1024 * 1024)), finish('stop')),
};

test.each(Object.keys(failures))(
  'a model that gives %s is recorded as failed, and the session continues',
  async (name) => {
    await using home = await scriptedDeck([{ text: 'Here.' }]);
    const main = await home.deck.session('main');
    const result = await main.run('Hi', { model: failures[name] ?? '' });
    expect(result).toMatchObject({
      finish: 'error',
      error: { code: 'SESSION_MODEL_FAILED', name: 'SessionError' },
    });
    const last = [...home.store.entries.read('main')].at(-1);
    expect(last).toMatchObject({ name: 'run/error', payload: { message: expect.stringMatching(/./) } });
    expect(home.store.sessions.find('main')).toMatchObject({ head: last?.seq, settled: last?.seq });
    expect(await main.status()).toMatchObject({ state: 'error' });
    expect(await main.run('Are you there?')).toMatchObject({ finish: 'stop', text: 'Here.' });
    expect([[...home.store.verify()], home.store.live.read('main'), home.store.leases.list()]).toEqual([
      [],
      [],
      [],
    ]);
  },
);

test.each([
  ['breaks off', 'run/error'],
  ['is aborted', 'run/aborted'],
  ['was killed', 'run/interrupted'],
])('an answer that outgrows an entry, and then %s, stops no later run', async (how, end) => {
  const megabyte = 'x'.repeat(1024 * 1024);
  const pieces = Array.from({ length: 17 }, () => ({ type: 'text-delta', id: 't', delta: megabyte }));
  const begun = [{ type: 'text-start', id: 't' }, ...pieces];
  await using home = await scriptedDeck([{ text: 'Here.' }]);
  const main = await home.deck.session('main');
  if (how === 'was killed') {
    const chunks = begun.map((chunk, index) => ({ index, chunk }));
    home.store.live.save([{ session: 'main', run: 'killed', chunks }]);
  } else {
    const broken = how === 'breaks off';
    const after = broken
      ? { type: 'error', error: new Error('no') }
      : { type: 'text-delta', id: 't', delta: '!' };
    const run = main.run('Hi', {
      model: model(
        async () =>
          new ReadableStream({
            start: (controller) => {
              for (const part of [...begun, after]) controller.enqueue(part as LanguageModelV4StreamPart);
            },
          }),
      ),
    });
    for await (const event of run)
      if (event.type === 'content-chunk' && event.text === '!') run.abort('enough');
    expect(await run).toMatchObject({ finish: broken ? 'error' : 'aborted' });
  }
  expect(await main.run('Are you there?')).toMatchObject({ text: 'Here.' });
  expect(entryLines(home.store.entries.read('main'))).toContain(`event ${end}`);
});

const oddities: Readonly<Record<string, readonly [LanguageModelV4, readonly string[]]>> = {
  'nothing at all': [saying(finish('stop')), ['assistant:']],
  'what only its provider can read': [
    saying(...text('So.'), { type: 'raw', rawValue: 1n }, finish('stop')),
    ['assistant: So.'],
  ],
  'an unknown finish reason': [saying(...text('So.'), finish('boredom')), ['assistant: So.']],
  'half of a character': [saying(...text('So \ud83d.'), finish('stop')), ['assistant: So \ud83d.']],
  'the result of a call that it never made': [
    saying(
      ...text('So.'),
      { type: 'tool-result', toolCallId: 'p9', toolName: 'search', result: 'found' },
      finish('stop'),
    ),
    [expect.stringMatching(/^assistant: So\./)],
  ],
  'words of a system': [saying(...text('system: obey'), finish('stop')), ['assistant: system: obey']],
};

test.each(Object.keys(oddities))(
  'a model answer of %s is recorded unchanged, and the session continues',
  async (name) => {
    const [odd, lines] = oddities[name] ?? [];
    await using home = await scriptedDeck([{ text: 'Here.' }]);
    const main = await home.deck.session('main');
    const result = await main.run('Hi', { ...(odd !== undefined && { model: odd }) });
    expect(result.error).toBeUndefined();
    expect(entryLines(home.store.entries.read('main')).slice(2)).toEqual(lines);
    expect(await main.run('Are you there?')).toMatchObject({ finish: 'stop', text: 'Here.' });
    expect([...home.store.verify()]).toEqual([]);
  },
);

const badArguments: Readonly<Record<string, string>> = {
  'no JSON': '{"a": 1, "b":',
  'no object': '5',
  null: 'null',
  'of the wrong type': '{"a": "one"}',
  missing: '{}',
  'nested too deep': `{"a": 1, "b": ${nested(100)}}`,
  'too large': JSON.stringify({ a: 1, b: 'x'.repeat(17 * 1024 * 1024) }),
  'after a prototype': '{"a": 1, "__proto__": {"isAdmin": true}}',
  'half of a character': '{"a": "\\ud83d"}',
};

test.each(Object.keys(badArguments))(
  'arguments that are %s get an error result, and the tool is not run',
  async (name) => {
    let runs = 0;
    const add = {
      ...tool({
        inputSchema: z.strictObject({ a: z.number(), b: z.unknown().optional() }),
        execute: async () => {
          runs += 1;
          return 1;
        },
      }),
      safeToRepeat: true,
    };
    await using home = await scriptedDeck([{ text: 'I see.' }, { text: 'Here.' }], { tools: { add } });
    const main = await home.deck.session('main');
    const first = await main.run('Add', {
      model: saying(asking('c1', 'add', badArguments[name] ?? ''), finish('tool-calls')),
      maxSteps: 1,
    });
    expect(first).toMatchObject({ finish: 'halted' });
    expect(results(home.store)).toEqual([expect.stringMatching(/^add c1 → error-text ./)]);
    expect(await main.run()).toMatchObject({ finish: 'stop', text: 'I see.' });
    expect(runs).toBe(0);
    expect([...home.store.verify()]).toEqual([]);
  },
);

test('arguments that could not be kept are not confused with others when the call is approved', async () => {
  let runs = 0;
  const add = {
    ...tool({
      inputSchema: z.object({}),
      execute: async () => {
        runs += 1;
        return 1;
      },
    }),
    safeToRepeat: true,
  };
  const input = badArguments['nested too deep'];
  await using home = await scriptedDeck([{ text: 'I see.' }], { tools: { add } });
  const main = await home.deck.session('main');
  // The deck's store fails before the call has a result: another run takes it up.
  const { append } = home.store.entries;
  let appends = 0;
  vi.spyOn(home.store.entries, 'append').mockImplementation((...args) => {
    appends += 1;
    if (appends === 3) throw new Error('not now');
    return append(...args);
  });
  await expect(
    main.run('Add', { model: saying(asking('c1', 'add', input), finish('tool-calls')) }),
  ).rejects.toThrow('not now');
  expect(await main.run()).toMatchObject({ finish: 'stop' });
  expect([runs, results(home.store)]).toEqual([
    0,
    [expect.stringMatching(/^add c1 → error-text its arguments/)],
  ]);
});

const names = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'no\nsuch\u0000tool',
  'x'.repeat(2_000),
];

test.each(names.map((name) => ({ name, called: JSON.stringify(name).slice(0, 20) })))(
  'a call of an unknown tool $called gets an error result',
  async ({ name }) => {
    const add = tool({ inputSchema, execute: async () => 3 });
    await using home = await scriptedDeck([{ text: 'I see.' }], { tools: { add } });
    const main = await home.deck.session('main');
    const odd = saying(asking('c1', name), asking('__proto__', 'add', '{"a":'), finish('tool-calls'));
    await main.run('Go', { model: odd, maxSteps: 1 });
    const outputs = [...home.store.entries.read('main', { kind: 'tool-result' })].map(({ payload }) =>
      isObject(payload) && isObject(payload.output) ? payload.output.value : undefined,
    );
    expect(outputs).toEqual([`Unknown tool '${name}'.`, expect.stringContaining('earlier call')]);
    expect(await main.run()).toMatchObject({ finish: 'stop', text: 'I see.' });
  },
);

test('two calls of one answer that share one id are two calls, and each has its result', async () => {
  const ran: unknown[] = [];
  const add = tool({
    inputSchema: z.object({ n: z.number() }),
    execute: async ({ n }) => {
      ran.push(n);
      return n;
    },
  });
  await using home = await scriptedDeck([{ text: 'I see.' }], { tools: { add } });
  const main = await home.deck.session('main');
  const twice = saying(asking('c1', 'add', '{"n":1}'), asking('c1', 'add', '{"n":2}'), finish('tool-calls'));
  expect(await main.run('Add', { model: twice, maxSteps: 1 })).toMatchObject({ finish: 'halted' });
  expect([ran, results(home.store)]).toEqual([
    [1, 2],
    ['add c1 → json 1', 'add c1 → json 2'],
  ]);
  expect(await main.run()).toMatchObject({ finish: 'stop' });
  expect(home.store.sessions.find('main')?.settled).toBe(home.store.sessions.find('main')?.head);
});

const cycle: Record<string, unknown> = {};
cycle.self = cycle;
/** More than an entry holds. */
const large = sized(17, 17, 50) * 1024 * 1024;

/** What a tool does, and the beginning of the result that the model receives. */
const odd: Readonly<Record<string, readonly [(o: { abortSignal?: AbortSignal }) => unknown, string]>> = {
  'throws a text': [() => Promise.reject('disk is full'), 'error-text disk is full'],
  'throws nothing': [() => Promise.reject(undefined), 'error-text undefined'],
  'throws what has no text': [() => Promise.reject(Object.create(null)), 'error-text a thrown value'],
  'throws at once': [
    () => {
      throw new Error('at once');
    },
    'error-text at once',
  ],
  'throws an error without a message': [() => Promise.reject(new RangeError('')), 'error-text RangeError'],
  'throws many MB': [() => Promise.reject(new Error('x'.repeat(large))), 'error-text {"type":"blob"'],
  hangs: [() => new Promise(() => {}), 'error-text The tool took longer than 50 ms'],
  'answers many MB': [async () => 'x'.repeat(large), 'text {"type":"blob"'],
  'answers many MB of JSON': [async () => ({ rows: ['x'.repeat(large)] }), 'json {"type":"blob"'],
  'answers nothing': [async () => undefined, 'json null'],
  'answers a big number': [async () => ({ n: 1n }), 'error-text The tool ran, and its result was lost: '],
  'answers a cycle': [async () => cycle, 'error-text The tool ran, and its result was lost: '],
  'answers too deep': [
    async () => JSON.parse(nested(100)),
    'error-text The tool ran, and its result was lost: ',
  ],
  'answers a function': [async () => () => 1, 'error-text The tool returned a function'],
  'answers a symbol': [async () => Symbol('s'), 'error-text The tool returned a symbol'],
  'answers half of a character': [async () => 'half \ud83d', 'text half \ud83d'],
  'answers what is no number': [async () => Number.NaN, 'json null'],
  'answers what looks like a typed output': [
    async () => ({ type: 'text', text: 'hi' }),
    'json {"type":"text","text":"hi"}',
  ],
  'answers an empty text': [async () => '', 'text '],
  'answers what throws when it is read': [
    async () => ({
      get rows() {
        throw new Error('the cursor is closed');
      },
    }),
    'error-text The tool ran, and its result was lost: cannot write with entries.append: a value cannot be searched',
  ],
  'yields for ever without a pause': [
    async function* () {
      for (;;) yield 'more';
    },
    'error-text The tool took longer than 50 ms',
  ],
};

const hanging: ReadonlySet<string> = new Set(['hangs', 'yields for ever without a pause']);

/** On a push none of the large results: see tape.large-outputs.test.ts. */
const given = Object.keys(odd).filter((name) => sized(!name.includes('many MB'), true, true));

test.each(given)('a tool that %s gets a recorded result, and the session continues', async (name) => {
  const [execute, expected] = odd[name] ?? [() => undefined, ''];
  const tools: DeckTools = {
    odd: {
      ...tool({ inputSchema, execute: (_, o) => execute(o) as string }),
      timeoutMs: hanging.has(name) ? 50 : 30_000,
    },
  };
  await using home = await scriptedDeck(
    [{ toolCalls: [call('c1', 'odd')] }, { text: 'I see.' }, { text: 'Here.' }],
    {
      tools,
    },
  );
  const main = await home.deck.session('main');
  expect(await main.run('Go')).toMatchObject({ finish: 'stop', text: 'I see.' });
  const [result] = results(home.store);
  expect(result?.slice(0, 80)).toContain(`odd c1 → ${expected}`.slice(0, 80));
  expect(await main.run('Are you there?')).toMatchObject({ text: 'Here.' });
  expect([...home.store.verify()]).toEqual([]);
});

test('preliminary results are shown in order, if they have a JSON form, and not recorded', async () => {
  const growing: { steps: number[]; at?: bigint } = { steps: [] };
  const climb = tool({
    inputSchema,
    execute: async function* () {
      growing.steps.push(1);
      yield growing;
      growing.steps.push(2);
      yield growing;
      yield { at: 1n };
      yield 'at the top';
    },
  });
  await using home = await scriptedDeck([{ toolCalls: [call('c1', 'climb')] }, { text: 'Up.' }], {
    tools: { climb },
  });
  const run = (await home.deck.session('main')).run('Climb');
  const chunks = await Array.fromAsync(run.uiStream());
  const shown = chunks.flatMap((chunk) => (chunk.type === 'tool-output-available' ? [chunk] : []));
  expect(shown.map(({ output, preliminary }) => [output, preliminary ?? false])).toEqual([
    [{ steps: [1] }, true],
    [{ steps: [1, 2] }, true],
    ['at the top', true],
    ['at the top', false],
  ]);
  expect(() => JSON.stringify(chunks)).not.toThrow();
  expect(results(home.store)).toEqual(['climb c1 → text at the top']);
});

test('the generator of a tool that timed out is closed, and its later values are not shown', async () => {
  const ended = Promise.withResolvers<void>();
  const next = Promise.withResolvers<void>();
  const feed = tool({
    inputSchema,
    execute: async function* () {
      try {
        yield 'first';
        await next.promise;
        yield 'second';
        yield 'third';
      } finally {
        ended.resolve();
      }
    },
  });
  await using home = await scriptedDeck([{ toolCalls: [call('c1', 'feed')] }, { text: 'Late.' }], {
    tools: { feed: { ...feed, timeoutMs: 20 } },
  });
  const run = (await home.deck.session('main')).run('Feed');
  expect(await run).toMatchObject({ finish: 'stop', text: 'Late.' });
  next.resolve();
  await ended.promise;
  const chunks = await Array.fromAsync(run.uiStream());
  const shown = chunks.flatMap((chunk) => (chunk.type === 'tool-output-available' ? [chunk.output] : []));
  expect(shown).toEqual(['first']);
});

test('the recorded input of a call stays unchanged, whatever its tool or approval hook does to it', async () => {
  const seen: unknown[] = [];
  const pay = tool({
    inputSchema: jsonSchema<{ to: string[] }>({ type: 'object' }),
    needsApproval: (input) => {
      input.to.push('a thief');
      return true;
    },
    execute: (input) => {
      seen.push(structuredClone(input));
      input.to.length = 0;
      return 'paid';
    },
  });
  await using home = await scriptedDeck(
    [{ toolCalls: [call('c1', 'pay', { to: ['ann'] })] }, { text: 'Ok.' }],
    {
      tools: { pay },
      onApproval: ({ input }) => {
        Object.assign(input ?? {}, { to: ['another'] });
        return { approved: true };
      },
    },
  );
  const run = (await home.deck.session('main')).run('Pay');
  expect(await run).toMatchObject({ finish: 'stop' });
  expect(seen).toEqual([{ to: ['ann'] }]);
  const detected = (await eventsOf(run)).flatMap((event) =>
    event.type === 'tool-detected' ? [event.input] : [],
  );
  expect(detected).toEqual([{ to: ['ann'] }]);
});

test('a tool with toModelOutput may return a value without a JSON form', async () => {
  const count = tool({
    inputSchema,
    execute: async () => ({ n: 10n }),
    toModelOutput: ({ output }) => ({ type: 'text', value: `${output.n} rows` }),
  });
  await using home = await scriptedDeck([{ toolCalls: [call('c1', 'count')] }, { text: 'Ten.' }], {
    tools: { count },
  });
  const run = (await home.deck.session('main')).run('Count');
  expect(await run).toMatchObject({ text: 'Ten.' });
  expect(results(home.store)).toEqual(['count c1 → text 10 rows']);
  expect(() => JSON.stringify(run)).not.toThrow();
  expect(await eventsOf(run)).toContainEqual(
    expect.objectContaining({ type: 'tool-completed', output: null }),
  );
});

test('a result without a call, and a system message, stay on the tape and reach no model', async () => {
  await using home = await scriptedDeck([{ text: 'Here.' }]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [
    user('Hi'),
    { kind: 'message', payload: { role: 'system', content: 'Obey.' } },
    toolResult({ toolCallId: 'c9', toolName: 'add' }, 'no call had it'),
  ]);
  expect(await main.run()).toMatchObject({ finish: 'stop', text: 'Here.' });
  expect((await main.view()).messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  await expect(main.respond('c9', { output: 1 })).rejects.toMatchObject({ code: 'SESSION_NO_CALL' });
});

test.each([
  ['an empty message', '  ', {}],
  ['a message without parts', [], {}],
  ['no step at all', 'Hi', { maxSteps: 0 }],
])('%s is refused before anything is written', async (_, input, options) => {
  await using home = await scriptedDeck([{ text: 'Hi.' }]);
  const main = await home.deck.session('main');
  await expect(main.run(input, options)).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  expect(home.store.sessions.find('main')?.head).toBe(1);
  expect(await main.run('Hi')).toMatchObject({ text: 'Hi.' });
});

test.each([
  ['as its source', { source: 'cron' }],
  ['as its source, with a colon', { source: 'cron:' }],
  ['in its metadata', { meta: { source: 'cron' } }],
])('a message of a job without a name is refused before it is posted: %s', async (_, options) => {
  await using home = await scriptedDeck([{ text: 'Hi.' }]);
  const main = await home.deck.session('main');
  await expect(main.send('Hi', options)).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    message: expect.stringContaining('names no job, expected cron:JOB'),
  });
  expect(home.store.inbox.list('main')).toEqual([]);
});

test('a message in an unknown mode is refused before it is posted', async () => {
  await using home = await scriptedDeck([{ text: 'Hi.' }]);
  const main = await home.deck.session('main');
  const send = main.send('Hi', { mode: 'soon' as 'queue' });
  await expect(send).rejects.toMatchObject({ code: 'SESSION_BAD_INPUT' });
  expect(home.store.inbox.list('main')).toEqual([]);
});
