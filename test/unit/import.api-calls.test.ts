import { writeFileSync } from 'node:fs';
import {
  type ImportPlan,
  parseJsonLines,
  planClaudeCode,
  reconcile,
  SourceTable,
} from '@tapedeck/runtime/import';
import { wholeDraft } from '@tapedeck/runtime/internal';
import type { Draft, SqliteTapeStore } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { memoryDir } from '../support/temp-dir.ts';
import { jsonl, model, person, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

/** A prompt and its answer, to a request that other answers may have too. */
const turn = (
  name: string,
  {
    parent,
    request,
    output,
  }: { readonly parent?: string; readonly request: string; readonly output: number },
): readonly Raw[] => [
  person({ uuid: `${name}-p`, ...(parent !== undefined && { parent }) }, `ask ${name}`),
  model({ uuid: name, parent: `${name}-p` }, [says(`did ${name}`)], {
    ...{ requestId: request, usage: { output_tokens: output } },
    timestamp: `2026-03-12T09:0${output}:01.000Z`,
  }),
];

const of = (sessionId: string, records: readonly Raw[]): readonly Raw[] =>
  records.map((one) => ({ ...one, sessionId }));

/** A copy under new ids, as old programs wrote one that resumed a session. */
const renamed = (sessionId: string, records: readonly Raw[]): readonly Raw[] =>
  of(sessionId, records).map((one) => ({
    ...{ ...one, uuid: `${sessionId}-${one.uuid}` },
    parentUuid: one.parentUuid === null ? null : `${sessionId}-${one.parentUuid}`,
  }));

const first = of('s-1', [
  ...turn('a', { request: 'req_1', output: 1 }),
  ...turn('b', { parent: 'a', request: 'req_2', output: 2 }),
]);
/** The proxy was started anew, and then the prompt was typed anew. */
const second = of('s-2', [
  ...turn('c', { request: 'req_1', output: 3 }),
  ...turn('d', { parent: 'c', request: 'req_2', output: 4 }),
  ...turn('e', { parent: 'c', request: 'req_1', output: 5 }),
]);
const copies = [of('s-3', first), renamed('s-4', second), renamed('s-5', first.slice(0, 2))];

const outputOf = (store: SqliteTapeStore): number =>
  store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0);

const stateOf = (store: SqliteTapeStore) =>
  store.sessions.list({ all: true }).map(({ session, head, headHash }) => ({ session, head, headHash }));

const planOf = (records: readonly Raw[]): ImportPlan =>
  planClaudeCode({ name: 'file', lines: parseJsonLines([Buffer.from(jsonl(records))]).records });

function orders<T>(all: readonly T[]): readonly (readonly T[])[] {
  if (all.length < 2) return [all];
  return all.flatMap((one, i) => orders(all.toSpliced(i, 1)).map((rest) => [one, ...rest]));
}

describe('answers to one request id that have ids of their own', () => {
  test('count each, and in copies once, in whatever order their files are imported', () => {
    for (const files of orders([first, second, ...copies.slice(0, 2)])) {
      const store = openStore();
      for (const records of files) reconcile(store, planOf(records));
      expect(outputOf(store)).toBe(1 + 2 + 3 + 4 + 5);
      expect([...store.verify()]).toEqual([]);
    }
  });

  test('count each, and in copies once, in files that grow line by line', async () => {
    using dir = memoryDir();
    const table = SourceTable.open(dir.file('sources.jsonl'));
    const store = openStore();
    const files = [first, second, ...copies];
    for (let lines = 1; lines <= second.length; lines += 1)
      for (const [i, records] of files.entries()) {
        writeFileSync(dir.file(`s-${i + 1}.jsonl`), jsonl(records.slice(0, lines)));
        await importFiles(store, [dir.file(`s-${i + 1}.jsonl`)], { table });
      }
    expect(outputOf(store)).toBe(1 + 2 + 3 + 4 + 5);
    expect([...store.verify()]).toEqual([]);
  });
});

describe('answers of one model in one second, without the id of a request and their own', () => {
  /** Records without ids, as some programs write them. */
  const anonymous = (says: string, output: number): readonly Raw[] => [
    { type: 'user', timestamp: '2026-03-12T09:00:00Z', message: { role: 'user', content: `ask ${says}` } },
    {
      ...{ type: 'assistant', timestamp: '2026-03-12T09:00:05Z' },
      message: {
        ...{ role: 'assistant', model: 'claude-x', content: [{ type: 'text', text: says }] },
        usage: { input_tokens: 0, output_tokens: output },
      },
    },
  ];
  const files = { one: anonymous('yes', 1), two: anonymous('no', 10), copy: anonymous('yes', 1) };

  test('count each where they differ, and in copies once, in whatever order their files are imported', async () => {
    for (const names of orders(Object.entries(files))) {
      using dir = memoryDir();
      const store = openStore();
      const table = SourceTable.open(dir.file('sources.jsonl'));
      for (const [name, records] of names) {
        writeFileSync(dir.file(`${name}.jsonl`), jsonl(records));
        await importFiles(store, [dir.file(`${name}.jsonl`)], { table });
      }
      expect(outputOf(store)).toBe(1 + 10);
    }
  });
});

/** What an earlier version made of a plan: it kept the id of an answer only where its record names no request. */
function earlier(plan: ImportPlan): ImportPlan {
  const without = (draft: Draft): Draft => {
    const { meta, ...rest } = wholeDraft(draft);
    const { response, ...own } = meta ?? {};
    return { ...rest, ...(meta && { meta: own.requestId === undefined ? meta : own }) };
  };
  const conversations = plan.conversations.map((one) => ({ ...one, spine: one.spine.map(without) }));
  return { ...plan, conversations };
}

describe('a home in which answers have no id beside their request', () => {
  const home = (): SqliteTapeStore => {
    const store = openStore();
    for (const records of [first, copies[1] ?? []]) reconcile(store, earlier(planOf(records)));
    return store;
  };

  test('is not written anew by the same files', () => {
    const store = home();
    const before = stateOf(store);
    for (const records of [first, copies[1] ?? []]) reconcile(store, planOf(records));
    expect(stateOf(store)).toEqual(before);
  });

  test('takes what a file has got since without a rewind', async () => {
    using dir = memoryDir();
    const table = SourceTable.open(dir.file('sources.jsonl'));
    const store = home();
    const more = of('s-1', turn('f', { parent: 'b', request: 'req_1', output: 6 }));
    for (const lines of [4, 5, 6]) {
      writeFileSync(dir.file('s-1.jsonl'), jsonl([...first, ...more].slice(0, lines)));
      await importFiles(store, [dir.file('s-1.jsonl')], { table });
    }
    expect([...store.entries.read('s-1', { kind: 'rewind' })]).toEqual([]);
    const messages = [...store.entries.read('s-1', { own: true, kind: 'message' })];
    expect(messages.map(({ meta }) => meta.response)).toEqual([...Array(5).fill(undefined), 'msg_f']);
    expect(messages.at(-1)?.meta.usageBefore).toBeUndefined();
  });

  test('counts no answer again that a copy has', () => {
    for (const files of orders(copies)) {
      const store = home();
      const before = outputOf(store);
      for (const records of files) reconcile(store, planOf(records));
      expect(outputOf(store)).toBe(before);
    }
  });
});
