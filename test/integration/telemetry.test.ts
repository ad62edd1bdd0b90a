import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { delegateTool, openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { program } from '../support/programs.ts';
import { scriptedDeck } from '../support/scripted.ts';
import { atFullSize, sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const exporter = new InMemorySpanExporter();

function register(): void {
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
}

beforeEach(() => exporter.reset());
afterEach(() => {
  trace.disable();
  context.disable();
});

const spans = () => exporter.getFinishedSpans();
const named = (name: string) => spans().filter((span) => span.name === name);
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId;
const parentOf = (span: ReadableSpan) => spans().find((one) => idOf(one) === span.parentSpanContext?.spanId);
const linked = (span: ReadableSpan | undefined) => span?.links.map(({ context: { spanId } }) => spanId);

/** The names from a span up to its root. */
function path(span: ReadableSpan): string[] {
  const above = parentOf(span);
  return [span.name, ...(above === undefined ? [] : path(above))];
}

const usage = { input: 12, output: 4 };
const measure = tool({ inputSchema: z.object({}), execute: async () => 'secret warmth' });
const fails = tool({
  inputSchema: z.object({}),
  execute: async (): Promise<string> => {
    throw new Error('secret failure');
  },
});

/** Sessions that run at once. */
const many = sized(8, 12, 200);

const answers = [
  { text: 'I measure.', toolCalls: [{ id: 'c1', name: 'measure', input: {} }], usage },
  { text: 'Warm.', usage },
];

describe.each(['with', 'without'] as const)('%s a context manager of the program', (how) => {
  beforeEach(() => {
    register();
    if (how === 'with') context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  });

  test('a run, its steps, model calls and calls of tools have spans, and no contents', async () => {
    await using scripted = await scriptedDeck(answers, { tools: { measure } });
    const main = await scripted.deck.session('main');
    await main.run('a secret question');
    const [run] = named('invoke_agent');
    expect(run?.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': 'script',
      'gen_ai.request.model': 'script',
      'gen_ai.conversation.id': main.id,
      'gen_ai.usage.input_tokens': 24,
      'gen_ai.usage.output_tokens': 8,
      'tapedeck.session': 'main',
      'tapedeck.run': expect.any(String),
      'tapedeck.steps': 2,
      'tapedeck.finish': 'stop',
    });
    expect(spans().map(path)).toEqual([
      ['chat script', 'step 1', 'invoke_agent'],
      ['execute_tool measure', 'step 1', 'invoke_agent'],
      ['step 1', 'invoke_agent'],
      ['chat script', 'step 2', 'invoke_agent'],
      ['step 2', 'invoke_agent'],
      ['invoke_agent'],
    ]);
    expect(named('execute_tool measure')[0]?.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'measure',
      'gen_ai.tool.call.id': 'c1',
      'gen_ai.tool.type': 'function',
      'gen_ai.conversation.id': main.id,
    });
    expect(named('chat script')[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.response.finish_reasons': ['tool-calls'],
      'gen_ai.conversation.id': main.id,
    });
    const texts = JSON.stringify(
      spans().map(({ attributes, events, status }) => ({ attributes, events, status })),
    );
    expect(texts).not.toMatch(/secret|measure\.|Warm/);
  });

  test('a failed call of a tool or of a model is marked, by the type of its error alone', async () => {
    await using scripted = await scriptedDeck(
      [{ text: '', toolCalls: [{ id: 'c1', name: 'fails', input: {} }] }, { error: 'a secret failure' }],
      { tools: { fails } },
    );
    const main = await scripted.deck.session('main');
    expect((await main.run('Go')).finish).toBe('error');
    for (const name of ['execute_tool fails', 'step 2', 'invoke_agent']) {
      const [span] = named(name);
      expect(span?.status, name).toEqual({ code: SpanStatusCode.ERROR });
      expect(span?.attributes['error.type'], name).toEqual(expect.any(String));
    }
    expect(named('execute_tool fails')[0]?.attributes['error.type']).toBe('tool_error');
  });

  test('of many sessions at once, each span is below the right one', async () => {
    await using scripted = await scriptedDeck(
      Array.from({ length: many }, (_, n) =>
        answers.map((answer) => ({ when: { session: `s${n}` }, delayMs: n % 3, ...answer })),
      ).flat(),
      { tools: { measure }, limits: { concurrentCalls: 3 } },
    );
    const { deck } = scripted;
    const sessions = await Promise.all(Array.from({ length: many }, (_, n) => deck.session(`s${n}`)));
    await Promise.all(sessions.map(async (session) => await session.run('Go')));
    expect(named('invoke_agent')).toHaveLength(many);
    for (const { id } of sessions) {
      const own = spans().filter(({ attributes }) => attributes['gen_ai.conversation.id'] === id);
      expect(own.map(path).sort()).toEqual([
        ['chat script', 'step 1', 'invoke_agent'],
        ['chat script', 'step 2', 'invoke_agent'],
        ['execute_tool measure', 'step 1', 'invoke_agent'],
        ['invoke_agent'],
        ['step 1', 'invoke_agent'],
        ['step 2', 'invoke_agent'],
      ]);
      expect(new Set(own.map((span) => span.spanContext().traceId)).size).toBe(1);
    }
  });

  test('the runs of children are below the call that started them, and a merge is linked to them', async () => {
    const tasks = ['One.', 'Two.', 'Three.'];
    await using scripted = await scriptedDeck(
      [
        {
          when: { session: 'main' },
          text: '',
          toolCalls: [{ id: 'd1', name: 'delegate', input: { tasks: tasks.map((task) => ({ task })) } }],
        },
        { when: { session: 'main' }, text: 'All done.' },
        ...tasks.map(() => ({ text: 'Done.' })),
      ],
      { tools: { delegate: delegateTool() } },
    );
    const main = await scripted.deck.session('main');
    const result = await main.run('Go');
    expect(result.text).toBe('All done.');
    const [call] = named('execute_tool delegate');
    const children = named('invoke_agent').filter(({ attributes }) => 'tapedeck.parent' in attributes);
    expect(children.map(parentOf)).toEqual([call, call, call]);
    for (const child of children) expect(child.attributes['tapedeck.parent']).toBe(main.id);
    const merges = named('merge');
    expect(merges.map((merge) => path(merge).at(-1))).toEqual(merges.map(() => 'invoke_agent'));
    expect(new Set(merges.flatMap(linked))).toEqual(new Set(children.map(idOf)));
    expect(merges.flatMap(linked)).toHaveLength(children.length);
  });
});

test('children of a program are linked to the run of the parent, and a merge to their runs', async () => {
  register();
  await using scripted = await scriptedDeck([{ text: 'Planned.' }, { text: 'Done.' }]);
  const main = await scripted.deck.session('main');
  await main.run('Plan');
  await main.delegate('Do it.');
  const [parent, child] = named('invoke_agent');
  expect(linked(child)).toEqual([idOf(parent)]);
  const [merge] = named('merge');
  expect(linked(merge)).toEqual([idOf(child)]);
  expect(merge?.attributes['gen_ai.conversation.id']).toBe(main.id);
});

test('a merge has one span, whether the caller performs it, or the owner of a busy parent', async () => {
  register();
  await using scripted = await scriptedDeck([
    { when: { session: 'main' }, text: 'Slow.', delayMs: 200 },
    { text: 'Done.' },
  ]);
  const main = await scripted.deck.session('main');
  const [waits, stays] = [await main.fork({ name: 'waits' }), await main.fork({ name: 'stays' })];
  for (const child of [waits, stays]) await child.run('Do it.');
  const busy = main.run('Go');
  for await (const event of busy) if (event.type === 'run-started') break;
  const merged = waits.finish();
  expect(named('merge')).toEqual([]);
  await busy;
  await merged;
  await stays.finish();
  await stays.finish();
  const runOf = (id: string) =>
    named('invoke_agent').filter(({ attributes }) => attributes['gen_ai.conversation.id'] === id);
  expect(named('merge').map(linked)).toEqual([waits, stays].map(({ id }) => runOf(id).map(idOf)));
});

test.runIf(atFullSize)('after a kill the next run is linked to the one that was cut off', async () => {
  using home = tempHome();
  const script = home.file('answers.json');
  writeFileSync(script, JSON.stringify([{ text: 'Planned.' }]));
  spawnSync(process.execPath, [...program('traced-worker.ts'), home.path, `script:${script}`]);
  register();
  const store = home.open();
  const [prompt] = store.entries.read('main', { kind: 'message' });
  const [, , spanId] = String(prompt?.meta.traceparent).split('-');
  expect(spanId).toMatch(/^[0-9a-f]{16}$/);
  await using deck = await openDeck({ store, env: {}, model: `script:${script}` });
  await deck.recover();
  const [run] = named('invoke_agent');
  expect(linked(run)).toEqual([spanId]);
  expect(run?.attributes['tapedeck.finish']).toBe('stop');
});

test('a run is below the span in which the program started it', async () => {
  register();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  await using scripted = await scriptedDeck([{ text: 'a' }, { text: 'b' }]);
  const main = await scripted.deck.session('main');
  const tracer = trace.getTracer('program');
  for (const name of ['request 1', 'request 2'])
    await tracer.startActiveSpan(name, async (span) => {
      await main.run('Go');
      span.end();
    });
  expect(named('invoke_agent').map((run) => parentOf(run)?.name)).toEqual(['request 1', 'request 2']);
});

test('without a tracer provider there are no spans, and the tape names none', async () => {
  await using scripted = await scriptedDeck([{ text: 'a' }]);
  await (await scripted.deck.session('main')).run('Go');
  expect(spans()).toEqual([]);
  for (const { meta } of scripted.store.entries.read('main')) expect(meta).not.toHaveProperty('traceparent');
});

test('a tracer that fails does not fail the run', async () => {
  const broken = () => {
    throw new Error('broken');
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: broken, startActiveSpan: broken }) });
  await using scripted = await scriptedDeck([{ text: 'a' }]);
  expect((await (await scripted.deck.session('main')).run('Go')).text).toBe('a');
});
