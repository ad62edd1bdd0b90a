import { drawGraph, drawTree, SessionGraph, toDot, toMermaid } from '@tapedeck/graph';
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
      ○  main
      ├─╮  main-fork-aaaaaaaa [subagent] from main ⚓ task-start 8-12
      ├─┼─╮  main-fork-cccccccc [subagent] from main ⚓ task-start, inherits nothing
      │ ├─┼─╮  main-fork-aaaaaaaa-fork-bbbbbbbb [subagent] from main-fork-aaaaaaaa 8-20
      │ │ ○ │  main-fork-cccccccc failed
      │ ├───╯  merge main-fork-aaaaaaaa-fork-bbbbbbbb 21-29 → main-fork-aaaaaaaa@31
      ├─┼─╮  main-fork-dddddddd [branch] from main 1-14
      ├─╯ │  merge main-fork-aaaaaaaa 13-42 → main@15
      │   ○  main-fork-dddddddd active
      ○  main active
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
      ○  s1
      ├─╮  s2 [subagent] from s1
      ├─┼─╮  s3 [subagent] from s1
      │ ├─┼─╮  s4 [subagent] from s2
      ├─┤ │ │  merge s2 2-5 → s1@9
      ├─┼─╯ │  discard s3 → s1
      ├─┼─╮ │  s5 [subagent] from s1
      │ ├─┼─╯  merge s4 6-7 → s2@6 (failed)
      ├─╯ │  merge s2 6-6 → s1@10
      │   ○  s5 archived
      │ ○  s6
      │ ○  s6 active
      ○  s1 active
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
      ○  s2 [subagent] from s1 ⚓ x (not drawn)
      │ ○  s3
      ╰─┤  merge s2 1-2 → s3
        ○  merge s3 → s3
      ○  s4
      ○  merge s4 → s9
      "
    `);
  });

  test('is cut to the width', () => {
    const rows = drawGraph(graph.list(), { width: 24 });
    expect(Math.max(...rows.map((row) => Array.from(row).length))).toBe(24);
    expect(rows[1]).toBe('├─╮  main-fork-aaaaaaaa…');
    expect(drawGraph(graph.list(), { width: 0 }).every((row) => row === '')).toBe(true);
  });

  test('colours surround the same picture', () => {
    const plain = drawGraph(graph.list(), { width: 30 });
    const coloured = drawGraph(graph.list(), { width: 30, color: true });
    expect(coloured[0]).toBe('\u001b[31m○ \u001b[39m main');
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
    ○  tape:main
    │ ○  acme:main
    │ ├─╮  s3 [subagent] from acme:main
    │ ├─╯  merge s3 2-5 → acme:main@9
    │ ○  acme:main active
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

test('beyond 40 open sessions a drawing grows with its rows alone, and still has every fork, merge and status', () => {
  using store = openStore();
  store.sessions.open('main');
  for (let n = 1; n <= 60; n += 1) store.lineage.fork('main', { name: `c${n}` });
  store.lineage.merge('c1');
  store.lineage.merge('c60');
  const rows = drawGraph(SessionGraph.fromRecords(store.lineage.read()).list());
  expect(Math.max(...rows.map((row) => row.length))).toBeLessThan(2 * 40 + 60);
  expect(rows.at(0)).toBe('○  main');
  expect(rows.at(39)).toMatch(/^├(?:┼|─|│)+.* c39 \[subagent\] from main 1-1$/u);
  // The lanes are taken: this fork and its merge are branches of the lane of main.
  expect(rows.at(60)).toMatch(/^├─│ .* c60 \[subagent\] from main 1-1: merged$/u);
  expect(rows.at(62)).toMatch(/^├─ .* merge c60 2-2 → main@4$/u);
  for (let n = 1; n <= 60; n += 1)
    expect(rows.filter((row) => new RegExp(` c${n}(?: |$)`).test(row)).length).toBeGreaterThanOrEqual(
      n < 40 ? 2 : 1,
    );
});
