import { cpSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { claudeCode, conversationsIn, derivedIn, discover } from '@tapedeck/runtime/import';
import { type Entry, type SqliteTapeStore, view } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { countedIn, edgesIn, type Found, objectsIn } from '../support/claude-reader.ts';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const absent = !existsSync(samples);

/** The samples, each by its main file, or by one of a subagent where there is no other. */
const sessions: readonly string[] = await samplesIn(samples);

async function samplesIn(folder: string): Promise<readonly string[]> {
  if (absent) return [];
  const { files } = await discover({ place: { env: {}, home: '/' }, tools: [claudeCode], paths: [folder] });
  return conversationsIn(files).flatMap(({ files: [first] }) => first?.path ?? []);
}

/** The files of a session, by any of them. */
async function filesOf(path: string): Promise<Files> {
  const { files } = await discover({ place: { env: {}, home: '/' }, tools: [claudeCode], paths: [path] });
  const agents = files.filter(({ role }) => role === 'subagent').map((one) => one.path);
  return { main: files.find(({ role }) => role === 'main')?.path, agents };
}

interface Files {
  readonly main: string | undefined;
  readonly agents: readonly string[];
}

/** Imports samples one after another, with what lies beside them. */
async function imported(
  ...paths: readonly string[]
): Promise<{ readonly store: SqliteTapeStore; readonly names: readonly string[] }> {
  const store = openStore();
  const names = new Set<string>();
  for (const path of paths)
    for (const name of (await importFiles(store, [path], { clean: false })).names) names.add(name);
  return { store, names: [...names] };
}

/** What the sessions of an import show, each entry once. */
function shownIn(store: SqliteTapeStore, names: readonly string[]): Entry[] {
  const entries = new Map<string, Entry>();
  for (const name of names) {
    const own = [...store.views.entries(name, { policy: 'full' })];
    const shown = new Set(
      view(own, { policy: 'full' })
        .explain()
        .flatMap(({ seq, in: isShown }) => (isShown ? [seq] : [])),
    );
    // A view shows the state of its last boundary only.
    for (const entry of own)
      if ((shown.has(entry.seq) || entry.mark === 'boundary') && entry.meta.source === 'import')
        entries.set((entry.key ?? '').replace(/~again\d+$/, ''), entry);
  }
  return [...entries.values()];
}

/** Counts the sessions of a home as the independent reader counts files. */
function countedOf(store: SqliteTapeStore, names: readonly string[]): Omit<Found, 'records' | 'bad'> {
  const entries = shownIn(store, names);
  const messages = entries.filter(({ kind }) => kind === 'message');
  const of = (role: string) => messages.filter(({ payload }) => isObject(payload) && payload.role === role);
  const calls = of('assistant').flatMap(({ payload }) => {
    const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
    return content.flatMap((part) =>
      isObject(part) && part.type === 'tool-call' && part.providerExecuted !== true
        ? [String(part.toolCallId)]
        : [],
    );
  });
  const results = entries.filter(({ kind, meta }) => kind === 'tool-result' && meta.repaired !== true);
  const tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  for (const { usage } of store.sessions.calls())
    for (const name of ['input', 'output', 'cacheRead', 'cacheWrite'] as const) tokens[name] += usage[name];
  return {
    prompts: new Set(of('user').map(({ key = '' }) => key)),
    answers: new Set(of('assistant').map(({ key = '' }) => key)),
    calls: new Set(calls),
    results: new Set(results.map(({ payload }) => String(isObject(payload) && payload.toolCallId))),
    tokens,
    compactions: entries.filter(({ mark }) => mark === 'boundary').length,
    agents: new Set(names.filter((name) => store.sessions.find(name)?.kind === 'subagent')),
  };
}

/** Whether a record is no part of a conversation. What a subagent said is in its own, and no longer in its progress. */
function isNoMessage({ type, data }: { readonly [field: string]: unknown }): boolean {
  if (type === 'user' || type === 'assistant') return false;
  return !(type === 'progress' && isObject(data) && data.type === 'agent_progress');
}

/** Sets by their sizes; those of ids that both sides have are compared as they are. */
const sizes = ({ prompts, answers, agents, ...rest }: Omit<Found, 'records' | 'bad'>) => ({
  prompts: prompts.size,
  answers: answers.size,
  agents: agents.size,
  ...rest,
});

function counted({ main, agents }: Files): Omit<Found, 'records' | 'bad'> {
  const text = (path: string) => readFileSync(path, 'utf8');
  const {
    records: _,
    bad: __,
    ...found
  } = countedIn(
    main === undefined ? '' : text(main),
    new Map(agents.map((path) => [basename(path, '.jsonl').replace('agent-', ''), text(path)])),
  );
  return found;
}

describe.skipIf(absent)(`real sessions (skipped unless ${samples} is there)`, () => {
  test.each(sessions.map((path) => path.slice(samples.length + 1)))(
    'have what an independent reader finds: %s',
    async (path) => {
      const files = await filesOf(join(samples, path));
      const { store, names } = await imported(join(samples, path));
      expect(sizes(countedOf(store, names))).toEqual(sizes(counted(files)));
      expect([...store.verify()]).toEqual([]);
    },
  );

  test.each(sessions.map((path) => path.slice(samples.length + 1)))(
    'have the edges that an independent reader finds: %s',
    async (path) => {
      const { main } = await filesOf(join(samples, path));
      if (main === undefined) return;
      const { store, names } = await imported(main);
      const infos = names.flatMap((name) => store.sessions.find(name) ?? []);
      const own = infos.filter(({ kind }) => kind !== 'subagent');
      expect({
        clears: own.filter(({ link }) => link?.type === 'clear').length,
        bridged: own.reduce((sum, { id }) => sum + derivedIn(store, id).length, 0),
      }).toEqual(edgesIn(readFileSync(main, 'utf8')));
    },
  );

  test.each(sessions.map((path) => path.slice(samples.length + 1)))(
    'keep each record that is no message as it is: %s',
    async (path) => {
      const { main } = await filesOf(join(samples, path));
      if (main === undefined) return;
      const { store, names } = await imported(main);
      const kept = new Set(
        names.flatMap((name) =>
          [...store.entries.read(name, { own: true, kind: 'x-claude-code' })].map(({ payload }) =>
            JSON.stringify(payload),
          ),
        ),
      );
      const { objects } = objectsIn(readFileSync(main, 'utf8'));
      const lost = objects.filter((record) => isNoMessage(record) && !kept.has(JSON.stringify(record)));
      expect(lost).toEqual([]);
    },
  );

  test('are the same sessions when the subagents come before the main file', async () => {
    const demo = join(samples, 'zoetrope-demo/demo.jsonl');
    using dir = tempDir();
    const copy = dir.file('demo.jsonl');
    cpSync(join(samples, 'zoetrope-demo/demo'), dir.file('demo'), { recursive: true });
    const late = await (async () => {
      const store = openStore();
      const before = await importFiles(store, [dir.path], { clean: false });
      expect(before.done.some(({ file }) => file.role === 'main')).toBe(false);
      cpSync(demo, copy);
      return { store, names: (await importFiles(store, [dir.path], { clean: false })).names };
    })();
    const once = await imported(demo);
    const files = await filesOf(demo);
    const shown = ({ store, names }: typeof once) =>
      Object.fromEntries(
        names.toSorted().map((name) => [name, view(store.views.entries(name)).messages] as const),
      );
    expect(shown(late)).toEqual(shown(once));
    expect(sizes(countedOf(late.store, late.names))).toEqual(sizes(counted(files)));
  });

  test('have their subagents as children that were merged once, as the titles of their tasks', async () => {
    const demo = join(samples, 'zoetrope-demo/demo.jsonl');
    const { store } = await imported(demo, demo);
    const children = store.sessions.list({ parent: 'demo' });
    expect(children.map(({ session, delivery, spawnCall }) => [session, delivery, spawnCall])).toEqual([
      ['agent-a1000000000000001', 'merged', 'toolu_demo01'],
      ['agent-a2000000000000002', 'merged', 'toolu_demo02'],
      ['agent-a3000000000000003', 'merged', 'toolu_demo03'],
      ['agent-a4000000000000004', 'merged', 'toolu_demo04'],
      ['agent-w1000000000000001', 'merged', 'toolu_demo05'],
      ['agent-w2000000000000002', 'merged', 'toolu_demo05'],
    ]);
    expect(children[0]?.title).toBe('Map the theme system');
    expect([...store.lineage.read()].filter(({ type }) => type === 'merge')).toHaveLength(6);
  });
});
