import {
  dotLines,
  drawGraph,
  drawTree,
  layOut,
  mermaidLines,
  SessionGraph,
  svgLines,
  toDot,
  toMermaid,
  toSvg,
} from '@tapedeck/graph';
import { user } from '@tapedeck/tape';
import type { LineageLine } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { openStore } from '../support/store.ts';
import { family, records, ulid } from './graph.support/lines.ts';

const graph = SessionGraph.fromRecords(family());
const picture = (rows: readonly string[]) => `\n${rows.join('\n')}\n`;

const s = (n: number, more: Partial<LineageLine> = {}) => ({
  type: 'session' as const,
  session_id: `s${n}`,
  session: ulid(n),
  ...more,
});
const from = (n: number) => ({ parent: ulid(n), parent_session_id: `s${n}`, kind: 'subagent' });
const into = (n: number) => ({ into: ulid(n), into_session_id: `s${n}`, status: 'merged' });

describe('lanes', () => {
  test('nothing', () => {
    expect(drawGraph([])).toEqual([]);
  });

  test('forks, a merge of a merge, a failed one and a running one', () => {
    expect(picture(drawGraph(graph.list()))).toMatchInlineSnapshot(`
      "
      ○  main active
      ├─●  main-fork-aaaaaaaa [subagent] merged 13-42 → main@15, from main ⚓ task-start 8-12
      │ ╰─●  main-fork-aaaaaaaa-fork-bbbbbbbb [subagent] merged 21-29 → main-fork-aaaaaaaa@31, from main-fork-aaaaaaaa 8-20
      ├─○  main-fork-dddddddd [branch] active, from main 1-14
      ╰─×  main-fork-cccccccc [subagent] failed, from main ⚓ task-start without its entries
      "
    `);
  });

  test('a child merged twice keeps its lane between; a discard ends one; free lanes are reused', () => {
    const twice = SessionGraph.fromRecords(
      records(
        s(1),
        s(2, { type: 'fork', ...from(1) }),
        s(3, { type: 'fork', ...from(1) }),
        s(4, { type: 'fork', ...from(2) }),
        s(2, { type: 'merge', ...from(1), ...into(1), range: [2, 5], seq: 9 }),
        s(3, { type: 'discard', ...from(1), ...into(1), status: 'discarded' }),
        s(5, { type: 'fork', ...from(1) }),
        s(4, { type: 'merge', ...from(2), ...into(2), range: [6, 7], seq: 6, status: 'failed' }),
        s(2, { type: 'merge', ...from(1), ...into(1), range: [6, 6], seq: 10 }),
        s(5, { type: 'archive', ...from(1), status: 'archived' }),
        s(6),
      ),
    );
    expect(picture(drawGraph(twice.list()))).toMatchInlineSnapshot(`
      "
      ○  s6 active
      ○  s1 active
      ├─×  s5 [subagent] archived, from s1
      ├─●  s2 [subagent] merged 2-5 → s1@9, merged 6-6 → s1@10, from s1
      │ ╰─×  s4 [subagent] failed, merged 6-7 → s2@6, from s2
      ╰─×  s3 [subagent] discarded → s1, from s1
      "
    `);
  });

  test('hostile lines of a foreign file: no parent, a merge to the right, into itself, into a missing session', () => {
    const odd = SessionGraph.fromRecords(
      records(
        s(2, { type: 'fork', ...from(1), from_anchor: 'x' }),
        s(3),
        s(2, { type: 'merge', ...from(1), ...into(3), range: [1, 2] }),
        s(3, { type: 'merge', ...into(3) }),
        s(4, { type: 'merge', ...into(9) }),
      ),
    );
    expect(picture(drawGraph(odd.list()))).toMatchInlineSnapshot(`
      "
      ●  s4 merged → s9
      ●  s3 merged → s3
      ●  s2 [subagent] merged 1-2 → s3, from s1 ⚓ x
      "
    `);
  });

  test('is cut to the width', () => {
    const rows = drawGraph(graph.list(), { width: 24 });
    expect(Math.max(...rows.map((row) => Array.from(row).length))).toBe(24);
    expect(rows[1]).toBe('├─●  main-fork-aaaaaaaa…');
    expect(drawGraph(graph.list(), { width: 0 }).every((row) => row === '')).toBe(true);
  });

  test('colours surround the same picture', () => {
    const plain = drawGraph(graph.list(), { width: 30 });
    const coloured = drawGraph(graph.list(), { width: 30, color: true });
    expect(coloured[0]).toBe('\u001b[31m○ \u001b[39m main active');
    const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');
    expect(coloured.map((row) => row.replace(escapes, ''))).toEqual(plain);
  });
});

describe('tree', () => {
  test('of all, and of one session', () => {
    expect(picture(drawTree(graph))).toMatchInlineSnapshot(`
      "
      main  session  active
      ├─ main-fork-aaaaaaaa  subagent  merged  ⚓ task-start  merge 13-42 → main@15
      │  ╰─ main-fork-aaaaaaaa-fork-bbbbbbbb  subagent  merged  merge 21-29 → main-fork-aaaaaaaa@31
      ├─ main-fork-cccccccc  subagent  failed  ⚓ task-start
      ╰─ main-fork-dddddddd  branch  active
      "
    `);
    expect(drawTree(graph, 'main-fork-cccccccc')).toEqual([
      'main-fork-cccccccc  subagent  failed  ⚓ task-start',
    ]);
  });

  test('branches continue beside deeper ones', () => {
    const deep = SessionGraph.fromRecords(
      records(
        s(1),
        s(2, { type: 'fork', ...from(1) }),
        s(3, { type: 'fork', ...from(2) }),
        s(4, { type: 'fork', ...from(3) }),
        s(5, { type: 'fork', ...from(2) }),
        s(6, { type: 'fork', ...from(1) }),
        s(7, { type: 'fork', ...from(6) }),
        s(8),
      ),
    );
    expect(picture(drawTree(deep))).toMatchInlineSnapshot(`
      "
      s1  session  active
      ├─ s2  subagent  active
      │  ├─ s3  subagent  active
      │  │  ╰─ s4  subagent  active
      │  ╰─ s5  subagent  active
      ╰─ s6  subagent  active
         ╰─ s7  subagent  active
      s8  session  active
      "
    `);
  });
});

describe('other languages', () => {
  test('dot', () => {
    expect(toDot(graph.list())).toMatchInlineSnapshot(`
      "digraph sessions {
        node [shape=box];
        "01J00000000000000000000001" [label="main\\nactive"];
        "01J00000000000000000000002" [label="main-fork-aaaaaaaa\\nmerged"];
        "01J00000000000000000000004" [label="main-fork-cccccccc\\nfailed"];
        "01J00000000000000000000003" [label="main-fork-aaaaaaaa-fork-bbbbbbbb\\nmerged"];
        "01J00000000000000000000005" [label="main-fork-dddddddd\\nactive"];
        "01J00000000000000000000001" -> "01J00000000000000000000002" [label="⚓ task-start"];
        "01J00000000000000000000001" -> "01J00000000000000000000004" [label="⚓ task-start"];
        "01J00000000000000000000002" -> "01J00000000000000000000003" [label=""];
        "01J00000000000000000000001" -> "01J00000000000000000000005" [label=""];
        "01J00000000000000000000002" -> "01J00000000000000000000001" [label="merge 13-42", style=dashed];
        "01J00000000000000000000003" -> "01J00000000000000000000002" [label="merge 21-29", style=dashed];
      }
      "
    `);
  });

  test('mermaid', () => {
    expect(toMermaid(graph.list())).toMatchInlineSnapshot(`
      "flowchart TD
        s1["main · active"]
        s2["main-fork-aaaaaaaa · merged"]
        s3["main-fork-cccccccc · failed"]
        s4["main-fork-aaaaaaaa-fork-bbbbbbbb · merged"]
        s5["main-fork-dddddddd · active"]
        s1 -->|"⚓ task-start"| s2
        s1 -->|"⚓ task-start"| s3
        s2 --> s4
        s1 --> s5
        s2 -.->|"merge 13-42"| s1
        s4 -.->|"merge 21-29"| s2
      "
    `);
  });
});

test('names from a foreign file control neither a terminal nor a program', () => {
  const evil = 'a"]; x -> y; \\" `#<b>\u001b[31m\u202e\u2028\ud800\n|end';
  const nodes = SessionGraph.fromRecords(
    records(
      s(1, { session_id: evil, status: evil, kind: evil }),
      s(2, { type: 'fork', parent: '"]\n', parent_session_id: evil, from_anchor: evil }),
      s(3, { type: 'merge', session_id: evil, into: ulid(1), into_session_id: evil, status: evil }),
    ),
  );
  const pictures = [
    ...drawGraph(nodes.list()),
    ...drawTree(nodes),
    ...toDot(nodes.list()).split('\n'),
    ...toMermaid(nodes.list()).split('\n'),
  ];
  for (const row of pictures) expect(row).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  // Every line of DOT is made of the words we write and of closed strings.
  const string = '"(?:[^"\\\\]|\\\\.)*"';
  const attributes = ` \\[label=${string}(?:, style=dashed)?\\]`;
  const dot = new RegExp(
    `^(?:digraph sessions \\{|  node \\[shape=box\\];|  ${string}(?: -> ${string})?${attributes};|\\}|)$`,
  );
  for (const row of toDot(nodes.list()).split('\n')) expect(row).toMatch(dot);
  const mermaid =
    /^(?:flowchart TD| {2}s\d+\["[^"`|<>\\[\]{}]*"\]| {2}s\d+ -\.?->(?:\|"[^"`|<>\\[\]{}]*"\|)? s\d+|)$/;
  for (const row of toMermaid(nodes.list()).split('\n')) expect(row).toMatch(mermaid);
});

test('sessions of one name have the names of their tapes in every picture, and others keep theirs', () => {
  const two = SessionGraph.fromRecords(
    records(
      s(1, { session_id: 'main', tape: 'tape:main' }),
      s(2, { session_id: 'main', tape: 'acme:main' }),
      s(3, { type: 'fork', parent: ulid(2), parent_session_id: 'main', kind: 'subagent' }),
      s(3, {
        type: 'merge',
        parent: ulid(2),
        parent_session_id: 'main',
        kind: 'subagent',
        into: ulid(2),
        into_session_id: 'main',
        status: 'merged',
        range: [2, 5],
        seq: 9,
      }),
    ),
  );
  expect(picture(drawGraph(two.list()))).toMatchInlineSnapshot(`
    "
    ○  acme:main active
    ╰─●  s3 [subagent] merged 2-5 → acme:main@9, from acme:main
    ○  tape:main active
    "
  `);
  expect(picture(drawTree(two))).toMatchInlineSnapshot(`
    "
    tape:main  session  active
    acme:main  session  active
    ╰─ s3  subagent  merged  merge 2-5 → acme:main@9
    "
  `);
  for (const text of [toDot(two.list()), toMermaid(two.list())])
    for (const name of ['tape:main', 'acme:main', 's3']) expect(text).toContain(name);
});

test('a merge that is undone is drawn, and does not count', () => {
  const lines = records(
    s(1),
    s(2, { type: 'fork', ...from(1) }),
    s(2, { type: 'merge', ...from(1), ...into(1), range: [2, 5], seq: 9, delivery: 'merged' }),
    s(2, { type: 'archive', ...from(1), status: 'merged', delivery: 'merged', lifecycle: 'archived' }),
  );
  const undone = lines.map((line) => (line.type === 'merge' ? { ...line, undone: true as const } : line));
  const two = SessionGraph.fromRecords(undone);
  expect(two.find('s2')).toMatchObject({ status: 'archived', delivery: undefined, mergedAt: undefined });
  expect(picture([...drawGraph(two.list()), ...drawTree(two)])).toMatchInlineSnapshot(`
    "
    ○  s1 active
    ╰─×  s2 [subagent] archived, merged 2-5 → s1@9 (undone), from s1
    s1  session  active
    ╰─ s2  subagent  archived  merge 2-5 → s1@9 (undone)
    "
  `);
  expect(toDot(two.list())).toContain('[label="merge 2-5 (undone)", style=dashed]');
  expect(SessionGraph.fromRecords(lines).find('s2')).toMatchObject({ status: 'merged', delivery: 'merged' });
});

test('sessions that are read in parts give the same pictures', () => {
  const odd = records(
    s(2, { type: 'fork', ...from(1) }),
    s(3, { type: 'fork', ...from(7) }),
    s(1),
    s(2, { type: 'merge', ...from(1), ...into(9), range: [1, 2] }),
    s(4, { session_id: 's1', tape: 'acme:s1' }),
    s(3, { type: 'merge', ...from(7), ...into(1) }),
  );
  for (const lines of [family(), odd]) {
    const all = SessionGraph.fromRecords(lines).list();
    const shared = new Set(['s1']);
    const parts = () => all.map((node) => [node]);
    expect([...dotLines(parts, shared)].join('\n')).toBe(toDot(all));
    expect([...mermaidLines(parts, shared)].join('\n')).toBe(toMermaid(all));
    expect([...svgLines(() => layOut(all))].join('\n')).toBe(toSvg(all));
  }
  expect([...svgLines(() => [])].join('\n')).toBe(toSvg([]));
});

test('a session has the name of its tape where sessions outside of the picture have the same name', () => {
  const shared = new Set(['main']);
  expect(drawTree(graph, 'main', { shared })[0]).toBe('tape:main  session  active');
  expect(Array.from(layOut(graph.list(), { shared }), ({ label }) => label)[0]).toBe('tape:main active');
});

test('unrelated sessions are no lanes of each other, and each session has one row', () => {
  using store = openStore();
  for (let n = 1; n <= 20; n += 1) store.sessions.open(`s${n}`);
  for (const name of ['idea', 'plan']) store.lineage.fork('s3', { name });
  expect(drawGraph(SessionGraph.fromRecords(store.lineage.read()).list())).toEqual([
    '○  s3 active',
    '├─○  plan [subagent] active, from s3 1-1',
    '╰─○  idea [subagent] active, from s3 1-1',
    ...Array.from({ length: 20 }, (_, i) => `○  s${20 - i} active`).filter((row) => row !== '○  s3 active'),
  ]);
});

describe('a drawing that folds', () => {
  const fold = { fold: true };

  test('has the newest three of more than five children of a state, and counts the others', () => {
    using store = openStore();
    store.sessions.open('main');
    for (let n = 1; n <= 10; n += 1) {
      store.lineage.fork('main', { name: `c${n}` });
      store.lineage.merge(`c${n}`);
    }
    store.lineage.fork('main', { name: 'idea', kind: 'branch' });
    const nodes = SessionGraph.fromRecords(store.lineage.read()).list();
    expect(picture(drawGraph(nodes, fold))).toMatchInlineSnapshot(`
      "
      ○  main active
      ├─○  idea [branch] active, from main 1-21
      ├─●  c10 [subagent] merged 20-20 → main@20, from main 1-19
      ├─●  c9 [subagent] merged 18-18 → main@18, from main 1-17
      ├─●  c8 [subagent] merged 16-16 → main@16, from main 1-15
      ╰─⋮  and 7 more merged children
      "
    `);
    expect(drawGraph(nodes)).toHaveLength(12);
    // Some children were not read: how many of which state is not known.
    expect(drawGraph(nodes, { ...fold, unread: (id) => (id === nodes[0]?.id ? 90 : 0) }).at(-1)).toBe(
      '╰─⋮  and 97 more children',
    );
  });

  test('leaves out what is below a merged child, unless a session there is open', () => {
    using store = openStore();
    store.sessions.open('main');
    for (const [name, below] of [
      ['done', 'merged'],
      ['early', 'open'],
    ] as const) {
      store.lineage.fork('main', { name });
      store.lineage.fork(name, { name: `${name}-${below}` });
      if (below === 'merged') store.lineage.merge(`${name}-${below}`);
      store.lineage.merge(name);
    }
    const nodes = SessionGraph.fromRecords(store.lineage.read()).list();
    expect(picture(drawGraph(nodes, fold))).toMatchInlineSnapshot(`
      "
      ○  main active
      ├─●  early [subagent] merged 4-4 → main@4, from main 1-3
      │ ╰─○  early-open [subagent] active, from early 1-4
      ╰─●  done [subagent] merged 2-4 → main@2, from main 1-1 (1 below)
      "
    `);
    const rows = [...layOut(nodes, fold)];
    expect(rows.map(({ sessions }) => sessions)).toEqual([1, 1, 1, 2]);
    expect(rows.map(({ shape }) => shape)).toEqual(['open', 'merged', 'open', 'merged']);
  });

  test('has the last two of a long line of single children', () => {
    using store = openStore();
    store.sessions.open('s0');
    for (let n = 1; n <= 60; n += 1) store.lineage.fork(`s${n - 1}`, { name: `s${n}` });
    const nodes = SessionGraph.fromRecords(store.lineage.read()).list();
    expect(picture(drawGraph(nodes, fold))).toMatchInlineSnapshot(`
      "
      ○  s0 active
      ╰─⋮  and 58 more, each a child of the one before
        ╰─○  s59 [subagent] active, from s58 1-59
          ╰─○  s60 [subagent] active, from s59 1-60
      "
    `);
    expect([...layOut(nodes, fold)].reduce((sum, { sessions }) => sum + sessions, 0)).toBe(61);
  });
});

test('a row has at most 40 lanes, however deep its session is', () => {
  using store = openStore();
  store.sessions.open('s0');
  for (let n = 1; n <= 60; n += 1) store.lineage.fork(`s${n - 1}`, { name: `s${n}` });
  store.lineage.fork('s58', { name: 'last' });
  const nodes = SessionGraph.fromRecords(store.lineage.read()).list();
  const rows = drawGraph(nodes);
  expect(rows).toHaveLength(62);
  expect(rows[40]).toMatch(/^ {78}╰─○ {2}s40 \[subagent\] active/);
  expect(rows[41]).toMatch(/^… {79}╰─○ {2}s41 /);
  expect(rows.slice(59, 62).map((row) => row.slice(-48).trim())).toEqual([
    '├─○  last [subagent] active, from s58 1-59',
    '╰─○  s59 [subagent] active, from s58 1-59',
    '╰─○  s60 [subagent] active, from s59 1-60',
  ]);
  // On a terminal, lanes take a quarter of the width.
  expect(drawGraph(nodes, { width: 32 }).at(-1)).toBe('…       ╰─○  s60 [subagent] act…');
});

test('marks are on the lane of their session, before what follows them', () => {
  using store = openStore();
  store.sessions.open('main');
  store.lineage.fork('main', { name: 'a' });
  const mark = (seq: number) => ({
    session: store.sessions.find('main')?.id ?? '',
    seq,
    label: `⚓ x${seq}`,
  });
  store.entries.append(
    'main',
    Array.from({ length: 3 }, () => user('go on')),
  );
  store.lineage.fork('main', { name: 'b' });
  const nodes = SessionGraph.fromRecords(store.lineage.read()).list();
  expect(drawGraph(nodes, { marks: [mark(1), mark(3), mark(9)] })).toEqual([
    '○  main active',
    '├─·  ⚓ x9',
    '├─○  b [subagent] active, from main 1-4',
    '├─·  ⚓ x3',
    '├─○  a [subagent] active, from main 1-1',
    '╰─·  ⚓ x1',
  ]);
});

test('the newest activity is first: that of the last lines, or what the caller says', () => {
  using store = openStore();
  for (const name of ['a', 'b', 'c']) store.sessions.open(name);
  store.lineage.fork('a', { name: 'a1' });
  store.lineage.fork('a', { name: 'a2' });
  const nodes = SessionGraph.fromRecords(store.lineage.read()).list();
  const names = (options = {}) => drawGraph(nodes, options).map((row) => /(?<=[○●×] {2})\w+/.exec(row)?.[0]);
  expect(names()).toEqual(['a', 'a2', 'a1', 'c', 'b']);
  const at = new Map([
    ['b', 9],
    ['a1', 5],
    ['c', 4],
  ]);
  expect(names({ activity: ({ session }: { session: string }) => at.get(session) ?? 0 })).toEqual([
    'b',
    'a',
    'a1',
    'a2',
    'c',
  ]);
});

test('marks that say when they were made are placed by that, among the children by their activity', () => {
  const nodes = SessionGraph.fromRecords(family()).list();
  const [root] = nodes;
  const children = nodes.filter(({ parent }) => parent === root?.id);
  const times = new Map(children.map(({ id }, i) => [id, 10 * (i + 1)]));
  const mark = { session: root?.id ?? '', seq: 1, label: 'here', at: 15 };
  const rows = [...layOut(nodes, { marks: [mark], activity: ({ id }) => times.get(id) ?? 0 })];
  const at = rows.findIndex((row) => row.mark === mark);
  const place = (id: string | undefined) =>
    rows.findIndex(({ node }) => node !== undefined && node.id === id);
  expect(rows[at]).toMatchObject({ shape: 'mark', label: 'here', of: { id: root?.id } });
  expect(children.length).toBeGreaterThan(1);
  expect([place(children[1]?.id) < at, at < place(children[0]?.id)]).toEqual([true, true]);
});
