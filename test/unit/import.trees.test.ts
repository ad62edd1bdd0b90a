import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SourceTable } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { isObject, treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { type Write, workOf } from '../support/random-work.ts';
import { type Random, seeded } from '../support/seeded.ts';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { memoryDir } from '../support/temp-dir.ts';

/*
 * All that Claude Code writes, at once: prompts typed anew, parallel calls, subagents of all generations, copies, compactions, what a
 * /clear begins. Each seed is another history.
 */

/** The files once so many of the writes were done. */
function filesAt(writes: readonly Write[], count: number): Map<string, string> {
  const files = new Map<string, string>();
  for (const { file, text } of writes.slice(0, count)) files.set(file, (files.get(file) ?? '') + text);
  return files;
}

function put(folder: string, files: ReadonlyMap<string, string>): void {
  for (const [file, text] of files) {
    const path = join(folder, 'projects', '-srv-acme', file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/** What readers find of a home: sessions by their names, and what all of them cost. */
function stateOf(store: SqliteTapeStore) {
  const sessions = store.sessions.list({ all: true, deleted: false, titles: true });
  const names = new Map(sessions.map(({ id, session }) => [id, session]));
  // Of a subagent that was forked anew, the earlier session is deleted.
  const merges = [...store.lineage.read({ types: ['merge'] })].flatMap(({ session_id, into = '' }) =>
    names.has(session_id) ? [[names.get(session_id), names.get(into)] as const] : [],
  );
  return {
    sessions: Object.fromEntries(
      sessions.map((info) => {
        const { messages } = view(store.views.entries(info.session));
        // What is left behind a prompt has that of what it left, or none where a copy under other ids came first.
        const title = info.session.includes('branch') ? undefined : info.title;
        const { parent } = treeParentOf(info);
        return [info.session, { parent, title, call: info.spawnCall, state: info.delivery, messages }];
      }),
    ),
    merges: Object.fromEntries(merges),
    ...tokensOf(store),
  };
}

function tokensOf(store: SqliteTapeStore) {
  const sum = (name: 'input' | 'output') =>
    store.sessions.calls().reduce((all, { usage }) => all + usage[name], 0);
  return { input: sum('input'), output: sum('output') };
}

/** The tokens of each answer, once over all files: the greatest figures of its records. */
function tokensIn(writes: readonly Write[]) {
  const byAnswer = new Map<string, { readonly input: number; readonly output: number }>();
  for (const { text } of writes) {
    const { data, ...record } = JSON.parse(text);
    const { type, message } = isObject(data) && isObject(data.message) ? data.message : record;
    if (type !== 'assistant' || !isObject(message) || !isObject(message.usage)) continue;
    const { input_tokens: input, output_tokens: output } = message.usage;
    const before = byAnswer.get(String(message.id)) ?? { input: 0, output: 0 };
    byAnswer.set(String(message.id), {
      input: Math.max(before.input, Number(input)),
      output: Math.max(before.output, Number(output)),
    });
  }
  const all = [...byAnswer.values()];
  const sum = (of: (one: (typeof all)[number]) => number) => all.reduce((n, one) => n + of(one), 0);
  return { input: sum((one) => one.input), output: sum((one) => one.output) };
}

/** How the files of a history come to a home, step by step. */
const ways: Readonly<
  Record<string, (folder: string, writes: readonly Write[], random: Random) => Generator<void>>
> = {
  *'while they are written'(folder, writes, { below, chance }) {
    const counts = Array.from({ length: 1 + below(4) }, () => 1 + below(writes.length));
    for (const count of counts.toSorted((a, b) => a - b)) {
      const files = filesAt(writes, count);
      const last = writes[count - 1];
      const text = files.get(last?.file ?? '');
      // The last record is there in part.
      if (last !== undefined && text !== undefined && chance(30))
        files.set(last.file, text.slice(0, text.length - 1 - below(last.text.length - 1)));
      put(folder, files);
      yield;
    }
  },
  *'each at a pace of its own'(folder, writes, { below, chance }) {
    const whole = filesAt(writes, writes.length);
    const come = new Map<string, number>();
    for (let left = 1 + below(4); left > 0; left -= 1) {
      for (const [file, text] of whole) {
        const lines = text.split(/(?<=\n)/);
        const before = come.get(file) ?? 0;
        const now = chance(50) ? before : Math.min(lines.length, before + below(lines.length + 1));
        come.set(file, now);
        if (now > 0) put(folder, new Map([[file, lines.slice(0, now).join('')]]));
      }
      yield;
    }
  },
  *'in two folders, of which one is behind'(folder, writes, { below, chance }) {
    const counts = Array.from({ length: 1 + below(4) }, () => 1 + below(writes.length));
    for (const count of counts.toSorted((a, b) => a - b)) {
      put(folder, filesAt(writes, count));
      if (chance(70)) put(join(folder, 'behind'), filesAt(writes, 1 + below(count)));
      yield;
    }
    put(join(folder, 'behind'), filesAt(writes, writes.length));
  },
};

async function importAll(store: SqliteTapeStore, folder: string, table: SourceTable): Promise<void> {
  const { done } = await importFiles(
    store,
    [join(folder, 'projects'), join(folder, 'behind')].filter(existsSync),
    {
      table,
    },
  );
  expect(done.flatMap(({ error }) => error ?? [])).toEqual([]);
}

describe.each(Object.entries(ways))('files that come %s', (_, come) => {
  const first = sized(1, 1, Date.now() % 1_000_000);
  const seeds = Array.from({ length: sized(5, 40, 3_000) }, (_, i) => first + i);

  test('end as those that are imported at once: tree, views, titles and tokens', {
    timeout: 3_600_000,
  }, async () => {
    for (const seed of seeds) {
      const writes = workOf(seed);
      using whole = memoryDir();
      using pieces = memoryDir();
      using once = openStore();
      using store = openStore();
      const table = SourceTable.open(pieces.file('sources.jsonl'));
      put(whole.path, filesAt(writes, writes.length));
      await importAll(once, whole.path, SourceTable.open(whole.file('sources.jsonl')));
      for (const _ of come(pieces.path, writes, seeded(seed + 7))) await importAll(store, pieces.path, table);
      put(pieces.path, filesAt(writes, writes.length));
      await importAll(store, pieces.path, table);
      expect([seed, stateOf(store)]).toEqual([seed, stateOf(once)]);
      expect([seed, tokensOf(store)]).toEqual([seed, tokensIn(writes)]);
      const heads = () => store.sessions.list({ all: true }).map(({ session, head }) => [session, head]);
      const before = heads();
      await importAll(store, pieces.path, table);
      expect([seed, heads()]).toEqual([seed, before]);
      expect([seed, ...store.verify()]).toEqual([seed]);
    }
  });
});
