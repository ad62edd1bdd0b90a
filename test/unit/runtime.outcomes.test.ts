import { type ChildOutcome, delegationTools } from '@tapedeck/runtime';
import type { ScriptAnswer } from '@tapedeck/runtime/testing';
import { anchor, assistant, type Json, result, type SqliteTapeStore, type Task, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { Output, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from '../support/scripted.ts';

const look = tool({ inputSchema: z.object({}), execute: async () => 'seen' });
const pay = tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => 'paid' });
const call = (name: string, said?: string): ScriptAnswer => ({
  ...(said !== undefined && { text: said }),
  toolCalls: [{ name, input: {} }],
});

/** Ways in which the work of a child ends, and its outcome. */
const ends: readonly {
  readonly how: string;
  readonly status: Task;
  /** The answers of the child's model. */
  readonly says: readonly ScriptAnswer[];
  readonly text: string | RegExp;
  readonly output?: Json;
  readonly asks?: 'a form' | 'structured';
}[] = [
  { how: 'with its last words', status: 'completed', says: [{ text: 'Done.' }], text: 'Done.' },
  {
    how: 'with a result in a form',
    status: 'completed',
    says: [{ text: 'Looked.' }, { text: '{"ports":[80]}' }],
    text: '{"ports":[80]}',
    output: { ports: [80] },
    asks: 'a form',
  },
  {
    how: 'without the result in a form that was asked for',
    status: 'failed',
    says: [{ text: 'Looked.' }],
    text: /^Error: cannot merge '.*' as structured: it has recorded no result$/,
    asks: 'structured',
  },
  {
    how: 'at its limit',
    status: 'halted',
    says: [call('look'), call('look', 'Looking.'), call('look')],
    text: 'Looking.\n\nHalted: the limit of 2 steps is reached',
  },
  {
    how: 'at its limit, without a word',
    status: 'halted',
    says: [call('look'), call('look'), call('look')],
    text: 'Halted: the limit of 2 steps is reached',
  },
  {
    how: 'with a failure of its model',
    status: 'failed',
    says: [call('look', 'Looking.'), { error: 'connection lost' }],
    text: /^Looking\.\n\nError: .*connection lost/,
  },
  { how: 'with an abort', status: 'aborted', says: [call('stop', 'Stopping.')], text: 'Stopping.' },
  { how: 'with an abort, without a word', status: 'aborted', says: [call('stop')], text: '(no result)' },
  {
    how: 'not yet, as it waits for an answer',
    status: 'running',
    says: [call('pay', 'I need to pay.')],
    text: 'I need to pay.',
  },
];

const form = Output.object({ schema: z.object({ ports: z.array(z.number()) }) });

/** The text of the block that the last merge of a child brought. */
function mergedText(store: SqliteTapeStore): string | undefined {
  const merge = [...store.entries.read('main')].findLast(({ meta }) => meta.source === 'merge')?.payload;
  const text = isObject(merge) && Array.isArray(merge.content) ? merge.content[0] : undefined;
  return isObject(text) ? /^<merge-[^>]*>\n(.*)\n<\/merge-/ms.exec(String(text.text))?.[1] : undefined;
}

test.each(ends)(
  'the outcome of a child is one text wherever it is read: $status, $how',
  async ({ says, status, text, output, asks }) => {
    let stop = () => {};
    const tools = { look, pay, stop: tool({ inputSchema: z.object({}), execute: async () => stop() }) };
    await using home = await scriptedDeck(says, { tools });
    const main = await home.deck.session('main');
    const delegation = main.delegate(
      { task: 'Work', name: 'kid', ...(asks === 'a form' && { output: form }) },
      { maxSteps: 2, ...(asks === 'structured' && { strategy: 'structured' }) },
    );
    stop = () => delegation.abort('enough');
    const [outcome] = await delegation;
    expect(outcome).toMatchObject({ status });
    expect(outcome?.text).toMatch(text instanceof RegExp ? text : literally(text));
    expect(outcome?.output).toEqual(output);
    expect(home.store.lineage.collect('kid').text).toBe(outcome?.text);
    expect(mergedText(home.store)).toBe(status === 'running' ? undefined : outcome?.text);
    expect(home.store.sessions.find('kid')?.task).toBe(status);
  },
);

test.each(
  ends.filter(({ asks, status }) => asks !== 'structured' && !['aborted', 'running'].includes(status)),
)(
  'a model that delegates receives the same text: $status, $how',
  async ({ says, status, text, output, asks }) => {
    const schema = { type: 'object', properties: { ports: { type: 'array' } }, required: ['ports'] };
    const task = { task: 'Work', ...(asks === 'a form' && { output_schema: schema }) };
    await using home = await scriptedDeck(
      [
        { toolCalls: [{ name: 'delegate', input: { tasks: [task] } }], when: { session: 'main' } },
        { text: 'Thanks.', when: { session: 'main' } },
        ...says.map((answer) => ({ ...answer, when: { session: 'main-*' } })),
      ],
      { tools: { ...delegationTools({ maxSteps: 2 }), look, pay } },
    );
    await (await home.deck.session('main')).run('Go');
    await home.deck.idle();
    const [kid] = home.store.sessions.list({ parent: 'main', all: true });
    const given = [...home.store.entries.read('main', { kind: 'tool-result' })].at(-1)?.payload;
    const value = isObject(given) && isObject(given.output) ? given.output.value : undefined;
    const told = isObject(value) && Array.isArray(value.results) ? value.results[0] : undefined;
    const said = home.store.lineage.collect(kid?.session ?? '').text;
    expect(told).toMatchObject({ session: kid?.session, status });
    expect(told).toMatchObject(output === undefined ? { text: said } : { output });
    expect(said).toMatch(text instanceof RegExp ? text : literally(text));
    expect(mergedText(home.store)).toBe(said);
  },
);

test('a run that could not start is recorded on the tape of its child, from where all read it', async () => {
  const broken = { ...look, inputSchema: z.custom() };
  await using home = await scriptedDeck([{ text: 'Done.' }]);
  const main = await home.deck.session('main');
  const [outcome] = await main.delegate({ task: 'Work', name: 'kid' }, { tools: { broken } });
  expect(outcome).toMatchObject({
    status: 'failed',
    text: expect.stringMatching(/^Error: cannot offer tool/),
  });
  expect(home.store.lineage.collect('kid').text).toBe(outcome?.text);
  expect(mergedText(home.store)).toBe(outcome?.text);
  expect(home.store.sessions.find('kid')).toMatchObject({ task: 'failed', delivery: 'merged' });
});

test('an orphaned running child is merged with its partial answer', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  home.store.sessions.update('kid', { task: 'running' });
  home.store.entries.append('kid', [assistant('Half of it.')]);
  await kid.finish();
  const mark = [...home.store.entries.read('main', { own: true, kind: 'anchor', namePrefix: 'merge/' })][0]
    ?.payload;
  expect(isObject(mark) ? mark.state : undefined).toMatchObject({ status: 'orphaned', partial: true });
  expect(mergedText(home.store)).toBe('Half of it.');
  expect(home.store.lineage.collect('kid').text).toBe('Half of it.');
});

test('the next merge of a resumed child contains its new outcome', async () => {
  await using home = await scriptedDeck([{ text: 'One.' }, { text: 'Two.' }]);
  const main = await home.deck.session('main');
  const texts: (ChildOutcome | undefined)[] = [];
  texts.push(...(await main.delegate({ task: 'Work', name: 'kid' })));
  texts.push(...(await main.delegate({ task: 'Go on', resume: 'kid' })));
  expect(texts).toMatchObject([{ text: 'One.' }, { text: 'Two.' }]);
  expect(mergedText(home.store)).toBe('Two.');
  expect(home.store.lineage.collect('kid')).toMatchObject({ text: 'Two.' });
});

function literally(text: string): RegExp {
  return new RegExp(`^${RegExp.escape(text)}$`);
}

test('an entry after the merge does not change a result: delegated again by its key, it is the same', async () => {
  await using home = await scriptedDeck([{ text: 'Looked.' }, { text: '{"ports":[80]}' }]);
  const main = await home.deck.session('main');
  const task = { task: 'Work', name: 'kid', key: 'k', output: form };
  const [first] = await main.delegate([task]);
  home.store.entries.append('kid', [anchor('later')]);
  const [again] = await main.delegate([task]);
  expect(again).toMatchObject({ status: 'completed', output: { ports: [80] }, text: first?.text });
  expect(home.store.lineage.collect('kid')).toMatchObject({ text: '{"ports":[80]}', value: { ports: [80] } });
  expect(mergedText(home.store)).toBe('{"ports":[80]}');
  expect(home.store.sessions.find('kid')?.task).toBe('completed');
});

test('a structured result reaches an ancestor although the parent has it already', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const parent = await main.fork({ name: 'parent', onUnmerged: 'keep' });
  const kid = await parent.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.result({ ports: [80] });
  await kid.finish();
  home.store.entries.append('kid', [anchor('later')]);
  await main.merge('kid', { strategy: 'structured' });
  expect(mergedText(home.store)).toBe('{"ports":[80]}');
});

test('two tasks that resume one child run one after the other, each with its own answer', async () => {
  await using home = await scriptedDeck([{ text: 'Zero.' }, { text: 'One.' }, { text: 'Two.' }]);
  const main = await home.deck.session('main');
  await main.delegate({ task: 'Start', name: 'kid' });
  const outcomes = await main.delegate([
    { task: 'Do one', resume: 'kid' },
    { task: 'Do two', resume: 'kid' },
  ]);
  expect(outcomes.map(({ status, text }) => [status, text])).toEqual([
    ['completed', 'One.'],
    ['completed', 'Two.'],
  ]);
});

test('a run without input shows its model a merge that waited', async () => {
  await using home = await scriptedDeck([{ text: 'Seen.', when: { text: 'A result.' } }]);
  const main = await home.deck.session('main');
  home.store.entries.append('main', [user('Hello')]);
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  await kid.result('A result.');
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} };
  home.store.entries.append('main', [assistant([call])]);
  home.store.inbox.post('main', { body: { type: 'merge', draft: { child: 'kid' } } });
  expect(home.store.inbox.list('main')).toHaveLength(1);
  expect(await main.run()).toMatchObject({ finish: 'stop', text: 'Seen.' });
});

test('a redacted result is no result, and whitespace is no text', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  for (const name of ['redacted', 'blank']) await main.fork({ name, onUnmerged: 'keep' });
  const { to } = home.store.entries.append('redacted', [result({ secret: 1 })]);
  home.store.entries.redact('redacted', to, 'a secret');
  home.store.entries.append('blank', [assistant(' \n')]);
  for (const name of ['redacted', 'blank']) {
    expect(home.store.lineage.collect(name).text).toBe('(no result)');
    expect(home.store.lineage.collect(name).value).toBeUndefined();
  }
});

test('a merge with a status that does not exist is refused, and nothing is merged', async () => {
  await using home = await scriptedDeck([]);
  const main = await home.deck.session('main');
  const kid = await main.fork({ name: 'kid', onUnmerged: 'keep' });
  const before = home.store.sessions.find('main');
  await expect(kid.finish({ status: 'bogus' as never })).rejects.toMatchObject({
    code: 'TAPE_BAD_STATUS',
    data: { value: 'bogus', allowed: expect.arrayContaining(['completed', 'failed']) },
  });
  expect(home.store.sessions.find('main')).toEqual(before);
});

test('a call that an inbox item adds at the start of a run is closed before its model call', async () => {
  await using home = await scriptedDeck([{ text: 'Fine.' }], { tools: { look } });
  const main = await home.deck.session('main');
  // An owner that has let its lease expire leaves the item to the run.
  const { expiresAt } = home.store.leases.acquire('main', { id: 'another' }, { ttlMs: 200 });
  const part = { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} };
  home.store.inbox.post('main', { body: { type: 'append', drafts: [assistant([part])] } });
  expect(home.store.inbox.list('main')).toHaveLength(1);
  await expect.poll(() => Date.now() > expiresAt).toBe(true);
  await main.run('Go');
  expect(home.store.sessions.find('main')).toMatchObject({ settled: home.store.sessions.find('main')?.head });
});
