import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  claudeCode,
  conversationsIn,
  discover,
  parseJsonLines,
  planClaudeCode,
  reconcile,
} from '@tapedeck/runtime/import';
import { isObject } from '@tapedeck/tape/internal';
import { wrapStore } from '@tapedeck/tape/store';
import { expect, test, vi } from 'vitest';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

type Raw = { readonly [field: string]: unknown };

const linesOf = (records: readonly Raw[]) => parseJsonLines([Buffer.from(jsonl(records))]).records;

const turn = (name: string, parent: string | null): readonly Raw[] => [
  person({ uuid: `${name}-p`, parent }, `ask ${name}`),
  model({ uuid: name, parent: `${name}-p` }, [says(`answer ${name}`)]),
];

/** How often each record is read while a plan is made of them. */
function readsOf(records: readonly Raw[]): number {
  let reads = 0;
  const lines = linesOf(records).map(({ value, ...line }) =>
    Object.defineProperty({ ...line, value }, 'value', {
      get: () => {
        reads += 1;
        return value;
      },
    }),
  );
  planClaudeCode({ name: 's-1', lines });
  return reads / records.length;
}

/** A session that is compacted after each turn, keeps that, and has a prompt typed anew behind it. */
function compacted(count: number): readonly Raw[] {
  const records: Raw[] = [];
  let parent: string | null = null;
  for (let i = 0; i < count; i += 1) {
    records.push(...turn(`t${i}`, parent));
    const compactMetadata = { preservedMessages: { anchorUuid: `s${i}`, uuids: [`t${i}-p`, `t${i}`] } };
    const boundary = { type: 'system', subtype: 'compact_boundary', uuid: `b${i}`, parentUuid: null };
    records.push({ ...boundary, logicalParentUuid: `t${i}`, sessionId: 's-1', compactMetadata });
    records.push(person({ uuid: `s${i}`, parent: `b${i}` }, 'So far.', { isCompactSummary: true }));
    records.push(...turn(`left${i}`, `s${i}`), ...turn(`on${i}`, `s${i}`));
    parent = `on${i}`;
  }
  return records.map((record, i) => ({
    ...record,
    timestamp: new Date(1_790_000_000_000 + i).toISOString(),
  }));
}

test('what compactions kept is read as often per record, however many branches are behind them', () => {
  expect(readsOf(compacted(60)) / readsOf(compacted(15))).toBeLessThan(1.5);
});

test('each block of an answer is compared as often, however many there are of one length', () => {
  const comparedIn = (count: number): number => {
    const answer = Array.from({ length: count }, (_, i) => {
      const link = { uuid: `m${i}`, parent: i === 0 ? 'u' : `m${i - 1}`, id: 'one' };
      return model(link, [says(`block ${1000 + i}`)]);
    });
    const lines = linesOf([person({ uuid: 'u' }, 'go'), ...answer]);
    const made = vi.spyOn(JSON, 'stringify');
    try {
      const [plan] = planClaudeCode({ name: 's-1', lines }).conversations;
      expect(plan?.spine).toHaveLength(2);
      return made.mock.calls.length / count;
    } finally {
      made.mockRestore();
    }
  };
  expect(comparedIn(400) / comparedIn(100)).toBeLessThan(1.5);
});

test('an import copies as much of a session per record, however many parents its file lacks', () => {
  const copiedIn = (count: number): number => {
    const records = Array.from({ length: count }, (_, i) =>
      turn(`t${i}`, i === 0 ? null : `lost${i}`),
    ).flat();
    const plan = planClaudeCode({ name: 's-1', lines: linesOf(records) });
    using store = openStore();
    const { slice } = Array.prototype;
    let copied = 0;
    Array.prototype.slice = function (this: unknown[], ...range) {
      const part = slice.apply(this, range);
      copied += part.length;
      return part;
    };
    try {
      reconcile(store, plan);
    } finally {
      Array.prototype.slice = slice;
    }
    return copied / records.length;
  };
  expect(copiedIn(200) / copiedIn(50)).toBeLessThan(1.5);
});

test('an import of a transcript that was rewritten many times reads each of its sessions as often as after few times', () => {
  const wholeReadsAfter = (count: number): number => {
    let whole = 0;
    const store = wrapStore(openStore(), ({ method, args: [, query], act }) => {
      if (method === 'entries.read' && isObject(query) && query.from === 1 && query.to === undefined)
        whole += 1;
      return act();
    });
    for (let i = 0; i <= count; i += 1) {
      const anew = [...turn('end', 'start'), ...turn('last', 'end')];
      const other = anew.map((one) => JSON.parse(JSON.stringify(one).replace(/(ask|answer) /, `$1 ${i} `)));
      whole = 0;
      reconcile(store, planClaudeCode({ name: 's-1', lines: linesOf([...turn('start', null), ...other]) }), {
        rewritten: true,
      });
    }
    expect(store.sessions.list({ all: true })).toHaveLength(count + 1);
    return whole / count;
  };
  expect(wholeReadsAfter(40) / wholeReadsAfter(10)).toBeLessThan(1.5);
});

test('an import reads the tape of a session as often, however many of its subagents have ended', () => {
  const wholeReadsWith = (count: number): number => {
    let whole = 0;
    const store = wrapStore(openStore(), ({ method, args: [name, query], act }) => {
      if (method === 'entries.read' && name === 's-1' && isObject(query) && query.from === 1) whole += 1;
      return act();
    });
    const ended = Array.from({ length: count }, (_, i) => {
      const inside = { isSidechain: true, agentId: `x${i}` };
      return [
        model({ uuid: `c${i}`, parent: i === 0 ? 'u' : `r${i - 1}` }, [calls(`t${i}`, 'Task')]),
        person({ uuid: `x${i}-p` }, 'look', inside),
        model({ uuid: `x${i}-a`, parent: `x${i}-p` }, [says('all is well')], inside),
        person({ uuid: `r${i}`, parent: `c${i}` }, [returns(`t${i}`, 'all is well')], {
          toolUseResult: { agentId: `x${i}` },
        }),
      ];
    });
    const lines = linesOf([person({ uuid: 'u' }, 'look around'), ...ended.flat()]);
    reconcile(store, planClaudeCode({ name: 's-1', lines }));
    const agents = store.sessions.list({ parent: 's-1' }).map(({ delivery }) => delivery);
    expect(agents).toEqual(ended.map(() => 'merged'));
    return whole;
  };
  expect(wholeReadsWith(40)).toBe(wholeReadsWith(10));
});

test('files of one session id that say other things look at each session as often, however many are forked from each other', () => {
  const looksIn = (count: number): number => {
    let looks = 0;
    const store = wrapStore(openStore(), ({ method, act }) => {
      if (method === 'sessions.find') looks += 1;
      return act();
    });
    for (let i = 0; i < count; i += 1) {
      const lines = linesOf([...turn(`first${i}`, null), ...turn(`last${i}`, `first${i}`)]);
      reconcile(store, planClaudeCode({ name: 's-1', lines }));
    }
    expect(store.sessions.list({ all: true })).toHaveLength(count);
    // Each file is compared with what each earlier one brought.
    return looks / count ** 2;
  };
  expect(looksIn(32) / looksIn(8)).toBeLessThan(1.5);
});

test('daily backups of a session compare each file of a subagent with each of its session, once', async () => {
  const readsIn = async (days: number): Promise<number> => {
    using dir = tempDir();
    for (let day = 0; day < days; day += 1) {
      const folder = dir.file(`day-${day}/s-1`);
      mkdirSync(join(folder, 'subagents'), { recursive: true });
      writeFileSync(`${folder}.jsonl`, jsonl(turn('one', null)));
      writeFileSync(join(folder, 'subagents/agent-a1.jsonl'), jsonl(turn('two', null)));
    }
    const { files } = await discover({
      place: { env: {}, home: '/' },
      tools: [claudeCode],
      paths: [dir.path],
    });
    let reads = 0;
    const watched = files.map((file) =>
      Object.defineProperty({ ...file }, 'path', {
        get: () => {
          reads += 1;
          return file.path;
        },
      }),
    );
    expect(conversationsIn(watched).map((one) => one.files.length)).toEqual(Array(days).fill(2));
    return reads / days ** 2;
  };
  expect((await readsIn(20)) / (await readsIn(5))).toBeLessThan(1.5);
});
