import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import {
  claudeCode,
  conversationsIn,
  discover,
  type FileImport,
  importConversation,
  parseJsonLines,
  planClaudeCode,
  reconcile,
  SourceTable,
} from '@tapedeck/runtime/import';
import { leftTape, reconcileEnd } from '@tapedeck/runtime/internal';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { wrapStore } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { transcriptLines } from '../bench/transcripts.ts';
import { importFiles } from '../support/import-files.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const linesOf = (texts: readonly string[]) => parseJsonLines([Buffer.from(`${texts.join('\n')}\n`)]).records;
const planned = (texts: readonly string[]) => planClaudeCode({ name: 's-1', lines: linesOf(texts) });

/** What the sessions show, and what their tokens sum up to. */
function shown(store: SqliteTapeStore, names: readonly string[]) {
  return {
    views: names.map((name) => view(store.views.entries(name)).messages),
    steps: store.sessions.calls().reduce((sum, { steps }) => sum + steps, 0),
    tokens: store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0),
  };
}

type End = NonNullable<ReturnType<typeof planned>['end']>;

/** Imports a file in pieces, each from its open end on where that goes, and says how often it did. */
function importedInPieces(texts: readonly string[], sizes: readonly number[]): number {
  using store = openStore();
  using asWhole = openStore();
  const lines = linesOf(texts);
  let continued = 0;
  let known: { end: End; tape: NonNullable<ReturnType<typeof leftTape>>; ids: Set<string> } | undefined;
  for (const n of sizes) {
    const whole = planned(texts.slice(0, n));
    const [{ key = '', name = '' } = {}] = whole.conversations;
    const { end, tape, ids = new Set<string>() } = known ?? {};
    const more = lines.slice((end?.line ?? 1) - 1, n);
    const about = {
      session: whole.session,
      key,
      name,
      state: end?.state ?? {},
      has: (id: string) => ids.has(id),
      hasErased: () => false,
    };
    const plan = end && claudeCode.planEnd?.(more, about);
    const wrote = plan && tape && reconcileEnd(store, tape, plan.conversation);
    if (wrote === undefined) reconcile(store, whole);
    else continued += 1;
    reconcile(asWhole, whole);
    const names = whole.conversations.map((one) => one.name);
    expect(shown(store, names)).toEqual(shown(asWhole, names));
    expect([...store.verify()]).toEqual([]);
    const next = wrote === undefined ? whole.end : plan?.end;
    const left = next && leftTape(store, 's-1', next.keys);
    const before = wrote === undefined ? [] : ids;
    known = left && next && { end: next, tape: left, ids: new Set([...before, ...next.ids()]) };
  }
  const whole = planned(texts);
  expect(reconcile(store, whole).filter(({ added }) => added > 0)).toEqual([]);
  return continued;
}

describe('a file that has grown, read from its open end on', () => {
  test('gives the session of whole readings, after each of its records', () => {
    const texts = [...transcriptLines({ bytes: sized(40_000, 25_000, 150_000), output: 100 }, { id: 's-1' })];
    const isRead = (n: number) => n % sized(5, 3, 1) === 0 || n === texts.length;
    const sizes = texts.map((_, i) => i + 1).filter(isRead);
    expect(importedInPieces(texts, sizes)).toBeGreaterThan(sizes.length / 2);
  });

  test('is read whole where a record is added that one before the end names as its parent', () => {
    const texts = [
      person({ uuid: 'u1' }, 'hi'),
      model({ uuid: 'a1', parent: 'u1' }, [says('hello')]),
      person({ uuid: 'u2', parent: 'late' }, 'left'),
      person({ uuid: 'u3', parent: 'a1' }, 'right'),
      ...['a3', 'a4', 'a5'].map((uuid, i) =>
        model({ uuid, parent: ['u3', 'a3', 'a4'][i] ?? '' }, [says(uuid)]),
      ),
      person({ uuid: 'late', parent: 'a5' }, 'late'),
    ].map((one) => JSON.stringify(one));
    importedInPieces(
      texts,
      texts.map((_, i) => i + 1),
    );
  });

  test('has turns of the system where the snapshot before its end says that requests have them', () => {
    let parent: string | null = null;
    const link = (uuid: string) => {
      const of = { uuid, parent };
      parent = uuid;
      return of;
    };
    const attached = (uuid: string, more: object) => ({
      ...person(link(uuid), '', { message: undefined, type: 'attachment' }),
      ...more,
    });
    const texts = Array.from({ length: 6 }, (_, i) => [
      person(link(`u${i}`), `prompt ${i}`),
      attached(`s${i}`, {
        attachment: { type: 'date_change' },
        rendered: [{ role: 'user', content: `reminder ${i}` }],
        renderedRole: 'system',
      }),
      model(link(`a${i}`), [says(`answer ${i}`)]),
      ...(i % 3 === 0
        ? [attached(`p${i}`, { attachment: { type: 'prompt_snapshot', tools: [], systemTurns: i === 0 } })]
        : []),
    ])
      .flat()
      .map((one) => JSON.stringify(one));
    const continued = importedInPieces(
      texts,
      texts.map((_, i) => i + 1),
    );
    expect(continued).toBeGreaterThan(6);
  });

  test('gives that of whole readings whatever the records are', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
    const block = fc.oneof(
      fc.record({ type: fc.constant('tool_use'), id: name, name }),
      fc.record({ type: fc.constant('tool_result'), tool_use_id: name, content: name }),
      fc.record({ type: fc.constant('text'), text: name }),
    );
    const odd = fc.record(
      {
        type: fc.constantFrom(
          'user',
          'assistant',
          'assistant',
          'system',
          'progress',
          'last-prompt',
          'attachment',
        ),
        uuid: name,
        parentUuid: fc.option(name),
        leafUuid: name,
        subtype: fc.constantFrom('compact_boundary', 'other'),
        isMeta: fc.boolean(),
        attachment: fc.record({ type: fc.constant('queued_command'), prompt: name }),
        message: fc.record({ id: name, content: fc.oneof(name, fc.array(block, { maxLength: 2 })) }),
      },
      { requiredKeys: ['type', 'message'] },
    );
    /** A conversation that goes on as most do, and now and then does not. */
    const records = fc
      .array(
        fc.oneof(
          { arbitrary: fc.constantFrom('prompt', 'answer', 'call', 'result', 'side'), weight: 6 },
          { arbitrary: odd, weight: 1 },
        ),
        { minLength: 4, maxLength: 14 },
      )
      .map((kinds) => {
        let parent: string | null = null;
        let call: string | undefined;
        return kinds.map((kind, i) => {
          const uuid = `u${i}`;
          const link = { uuid, parent };
          if (typeof kind === 'object') return { sessionId: 's-1', ...kind };
          if (kind === 'side') return { type: 'file-history-snapshot', snapshot: {}, messageId: uuid };
          parent = uuid;
          if (kind === 'prompt') return person(link, `prompt ${i}`);
          if (kind === 'answer')
            return model({ ...link, id: `m${Math.floor(i / 2)}` }, [says(`answer ${i}`)], {
              usage: { output_tokens: i },
            });
          if (kind === 'result' && call !== undefined) return person(link, [returns(call, `result ${i}`)]);
          call = `t${i}`;
          return model({ ...link, id: `m${Math.floor(i / 2)}` }, [calls(call)], {
            usage: { output_tokens: i },
          });
        });
      });
    let continued = 0;
    fc.assert(
      fc.property(records, (all) => {
        continued += importedInPieces(
          all.map((one) => JSON.stringify(one)),
          all.map((_, i) => i + 1),
        );
      }),
      { numRuns: sized(10, 10, 1_000), interruptAfterTimeLimit: 30_000 },
    );
    expect(continued).toBeGreaterThan(0);
  });
});

describe('a large transcript that has grown', () => {
  const id = '5f3c9a52-0000-4000-8000-000000000000';
  const texts = [...transcriptLines({ bytes: 3_000_000 })];
  const importAll = async (store: SqliteTapeStore, path: string, table: string): Promise<FileImport> => {
    const known = SourceTable.open(table);
    const { files } = await discover({
      place: { env: {}, home: '/nowhere' },
      tools: [claudeCode],
      paths: [path],
      known: (one) => known.at(one),
    });
    const [conversation] = conversationsIn(files);
    if (conversation === undefined) throw new TypeError('no conversation');
    const [main] = await importConversation(store, conversation, { table: known });
    if (main === undefined) throw new TypeError('no file');
    return main;
  };

  test('is read from its open end on, and not before it; whatever is no plain continuation is read as a whole', async () => {
    using dir = tempDir();
    const [path, table] = [dir.file(`${id}.jsonl`), dir.file('sources.jsonl')];
    const cuts = [0.5, 0.9, 0.95].map((part) => Math.floor(texts.length * part));
    const [first = 0, ...more] = cuts;
    const store = openStore();
    writeFileSync(path, `${texts.slice(0, first).join('\n')}\n`);
    expect((await importAll(store, path, table)).brought?.counts.skipped).toBe(0);
    // What is not read again can be anything.
    const file = openSync(path, 'r+');
    writeSync(file, 'x', 0);
    closeSync(file);
    for (const [i, cut] of more.entries()) {
      appendFileSync(path, `${texts.slice(cuts[i], cut).join('\n')}\n`);
      const { seen, brought } = await importAll(store, path, table);
      expect({ seen, skipped: brought?.counts.skipped }).toEqual({ seen: 'grown', skipped: 0 });
      const once = openStore();
      const plan = planned(texts.slice(0, cut));
      const sessions = reconcile(once, plan).map(({ session }) => session);
      expect(shown(store, [id])).toEqual(shown(once, [id]));
      // What it says of the file is what a first import would say of it.
      const [counts] = plan.counts.values();
      expect(brought).toMatchObject({ counts, derived: 0 });
      expect(brought?.sessions.map(({ session }) => session)).toEqual(sessions);
    }
    const { parentUuid } = JSON.parse(texts[first] ?? '{}') as { parentUuid: string };
    appendFileSync(path, `${JSON.stringify(person({ uuid: 'u', parent: parentUuid }, 'another way'))}\n`);
    expect((await importAll(store, path, table)).brought?.counts.skipped).toBe(1);
    expect([...store.verify()]).toEqual([]);
  });

  /** Prompts and long answers, each behind the one before it. */
  const turnsOf = (numbers: readonly number[], more: { readonly [field: string]: unknown } = {}) =>
    numbers.flatMap((i) => [
      person({ uuid: `u${i}`, parent: i === 0 ? null : `a${i - 1}` }, `prompt ${i}`, {
        timestamp: new Date(1_700_000_000_000 + i * 1000).toISOString(),
        ...more,
      }),
      model({ uuid: `a${i}`, parent: `u${i}` }, [says(`answer ${i} ${'x'.repeat(10_000)}`)], {
        usage: { output_tokens: 1 },
        timestamp: new Date(1_700_000_000_500 + i * 1000).toISOString(),
        ...more,
      }),
    ]);
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

  test.each([
    ['names it', (uuid: string) => ({ uuid, forkedFrom: { sessionId: 's-1', messageUuid: uuid } })],
    ['has other ids', (uuid: string) => ({ uuid: `c-${uuid}` })],
  ])(
    'counts no answer that a copy which %s has by now, or gets just before it is written',
    async (_, copied) => {
      for (const isJustBefore of [false, true]) {
        using dir = tempDir();
        const table = SourceTable.open(dir.file('sources.jsonl'));
        const [path, copy] = [dir.file('s-1.jsonl'), dir.file('a-copy.jsonl')];
        const store = openStore();
        writeFileSync(path, jsonl(turnsOf(numbers(0, 30))));
        await importFiles(store, [path], { table });
        appendFileSync(path, jsonl(turnsOf(numbers(30, 32))));
        const all = turnsOf(numbers(0, 33), { sessionId: 'a-copy' }).map((one, i) => {
          const { uuid, parentUuid } = one as { uuid: string; parentUuid: string | null };
          return {
            ...one,
            ...(i < 64 ? copied(uuid) : { uuid }),
            parentUuid: parentUuid && (i < 65 ? copied(parentUuid).uuid : parentUuid),
          };
        });
        writeFileSync(copy, jsonl(all));
        if (isJustBefore) {
          const { records } = parseJsonLines([readFileSync(copy)]);
          let isBefore = true;
          const overtaken = wrapStore(store, ({ method, act }) => {
            if (method === 'entries.append' && isBefore) {
              isBefore = false;
              reconcile(store, planClaudeCode({ name: 'a-copy', lines: records }));
            }
            return act();
          });
          await importFiles(overtaken, [path], { table });
          expect(isBefore).toBe(false);
        } else for (const one of [copy, path]) await importFiles(store, [one], { table });
        expect(store.sessions.calls().reduce((sum, { steps }) => sum + steps, 0)).toBe(33);
        expect([...store.verify()]).toEqual([]);
      }
    },
  );

  test('is read whole into another realm, which has all of it then', async () => {
    using dir = tempDir();
    using store = openStore();
    const path = dir.file('s-1.jsonl');
    const texts = [...transcriptLines({ bytes: 300_000 })];
    const table = SourceTable.open(dir.file('sources.jsonl'));
    const importing = async (into: SqliteTapeStore, n: number) => {
      writeFileSync(path, `${texts.slice(0, n).join('\n')}\n`);
      return await importFiles(into, [path], { table });
    };
    await importing(store, texts.length - 2);
    const other = store.inRealm('other');
    await importing(other, texts.length);
    const viewIn = (one: SqliteTapeStore) =>
      one.sessions.list({ all: true }).map(({ id }) => view(one.views.entries(id)).messages.length);
    using alone = openStore();
    await importFiles(alone, [path], {});
    expect(viewIn(other)).toEqual(viewIn(alone));
    expect(viewIn(store)[0]).toBeLessThan(viewIn(other)[0] ?? 0);
  });

  test('merges a subagent again whose merge is hidden where an answer behind it is replaced', async () => {
    using dir = tempDir();
    const table = SourceTable.open(dir.file('sources.jsonl'));
    const [path, agent] = [dir.file('s-1.jsonl'), dir.file('s-1/subagents/agent-x1.jsonl')];
    mkdirSync(dirname(agent), { recursive: true });
    const ofAgent = { isSidechain: true, agentId: 'x1' };
    writeFileSync(
      agent,
      jsonl([
        person({ uuid: 'xu' }, 'look', ofAgent),
        model({ uuid: 'xa', parent: 'xu' }, [says('seen')], ofAgent),
      ]),
    );
    const last = { parent: 'last', id: 'm-last' };
    writeFileSync(
      path,
      jsonl([
        ...turnsOf(numbers(0, 30)),
        model({ uuid: 'call', parent: 'a29' }, [calls('t1', 'Task')]),
        person({ uuid: 'result', parent: 'call' }, [returns('t1')], { toolUseResult: { agentId: 'x1' } }),
        model({ uuid: 'done', parent: 'result' }, [says('done')]),
        person({ uuid: 'last', parent: 'done' }, 'go on'),
        model({ uuid: 'p1', ...last }, [says('begun')]),
      ]),
    );
    const store = openStore();
    await importFiles(store, [dir.path], { table });
    expect(store.sessions.find('agent-x1')).toMatchObject({ delivery: 'merged' });
    appendFileSync(path, jsonl([model({ uuid: 'p2', ...last, parent: 'p1' }, [says('ended')])]));
    await importFiles(store, [dir.path], { table });
    const heads = () => store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);
    const before = heads();
    await importFiles(store, [dir.path], { table, again: true });
    expect(heads()).toEqual(before);
    expect([...store.verify()]).toEqual([]);
  });

  test('says of all of the file what a first import of it says, with its branches and bad lines', async () => {
    using dir = tempDir();
    using copy = tempDir();
    const [path, table] = [dir.file(`${id}.jsonl`), dir.file('sources.jsonl')];
    const [first = '', second = ''] = texts.slice(0, 2);
    const { uuid } = JSON.parse(first) as { uuid: string };
    const begins = [
      first,
      '{"type":"user","uuid":',
      JSON.stringify(person({ uuid: 'b1', parent: uuid }, 'another way')),
      `${JSON.stringify(model({ uuid: 'b2', parent: 'b1', id: 'mb' }, [calls('tb')]))}${second}`,
    ];
    const half = Math.floor(texts.length / 2);
    writeFileSync(path, `${[...begins, ...texts.slice(2, half)].join('\n')}\n`);
    const store = openStore();
    await importAll(store, path, table);
    appendFileSync(path, `${texts.slice(half).join('\n')}\nno json\n{"half`);
    cpSync(path, copy.file(`${id}.jsonl`));
    const { brought: once } = await importAll(openStore(), copy.file(`${id}.jsonl`), copy.file('t.jsonl'));
    // A whole reading would find it.
    const file = openSync(path, 'r+');
    writeSync(file, 'x', 0);
    closeSync(file);
    const { seen, brought } = await importAll(store, path, table);
    const said = (one: FileImport['brought']) => ({
      ...one,
      sessions: one?.sessions.map(({ session, conversation }) => [session, conversation]),
    });
    expect({ seen, ...said(brought) }).toEqual({ seen: 'grown', ...said(once) });
    expect(brought?.counts).toMatchObject({ glued: 1, skipped: 2, truncated: 1, repaired: 1 });
    expect(brought?.sessions).toHaveLength(2);
  });
});
