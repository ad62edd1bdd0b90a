import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  drawGraph,
  drawTree,
  fold,
  GraphError,
  openJournal,
  openSessionGraph,
  SessionGraph,
} from '@tapedeck/graph';
import { encodeLine, type LineageLine } from '@tapedeck/tape/store';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { family, fileOf, records, tempDir, ulid } from './graph.support/lines.ts';

const main = 'main';
const a = 'main-fork-aaaaaaaa';
const b = 'main-fork-aaaaaaaa-fork-bbbbbbbb';
const c = 'main-fork-cccccccc';
const d = 'main-fork-dddddddd';
const namesOf = (nodes: readonly { readonly session: string }[]) => nodes.map(({ session }) => session);

describe('three levels of sessions', () => {
  const graph = SessionGraph.fromRecords(family());

  test('parents, children, ancestors and descendants', () => {
    expect(graph.parent(main)).toBeUndefined();
    expect(graph.parent(b)?.session).toBe(a);
    expect(namesOf(graph.children(main))).toEqual([a, c, d]);
    expect(graph.children(b)).toEqual([]);
    expect(namesOf(graph.ancestors(b))).toEqual([a, main]);
    expect(graph.ancestors(main)).toEqual([]);
    expect(namesOf(graph.descendants(main))).toEqual([a, b, c, d]);
    expect(namesOf(graph.roots())).toEqual([main]);
  });

  test('lineage leads from the root through the session to all its descendants', () => {
    const told = (ref: string) => graph.lineage(ref).map(({ depth, node }) => [depth, node.session]);
    expect(told(b)).toEqual([
      [0, main],
      [1, a],
      [2, b],
    ]);
    expect(told(a)).toEqual([
      [0, main],
      [1, a],
      [2, b],
    ]);
    expect(told(main)).toEqual([
      [0, main],
      [1, a],
      [2, b],
      [1, c],
      [1, d],
    ]);
  });

  test('lists all sessions, or those that match', () => {
    expect(namesOf(graph.list())).toEqual([main, a, c, b, d]);
    expect(namesOf(graph.list({ kind: 'branch' }))).toEqual([d]);
    expect(namesOf(graph.list({ parent: main, kind: 'subagent' }))).toEqual([a, c]);
    expect(graph.list({ parent: 'missing' })).toEqual([]);
    expect(graph.list({ lifecycle: 'archived' })).toEqual([]);
    expect(namesOf(graph.list({ lifecycle: 'active' }))).toHaveLength(5);
  });

  test('a session has the fields of its lines, the last one first', () => {
    expect(graph.find(b)).toEqual({
      id: ulid(3),
      session: b,
      tape: `tape:${b}`,
      kind: 'subagent',
      parent: ulid(2),
      parentName: a,
      link: undefined,
      origin: ulid(2),
      originName: a,
      fromAnchor: undefined,
      base: 20,
      range: [8, 20],
      spawnKey: undefined,
      intention: undefined,
      createdAt: '2026-11-21T10:03:00.000Z',
      updatedAt: '2026-11-21T10:06:00.000Z',
      lastG: 7,
      status: 'merged',
      lifecycle: 'active',
      task: 'completed',
      delivery: 'merged',
      mergedAt: '2026-11-21T10:06:00.000Z',
      merges: [
        {
          type: 'merge',
          g: 7,
          at: '2026-11-21T10:06:00.000Z',
          status: 'merged',
          child: ulid(3),
          childName: b,
          into: ulid(2),
          intoName: a,
          seq: 31,
          range: [21, 29],
          parentHead: 'e'.repeat(64),
          childHead: 'c'.repeat(64),
        },
      ],
      g: 4,
    });
    expect(graph.find(a)?.intention?.next_steps).toBe('write it');
    expect(graph.find(c)?.range).toBeNull();
    expect(graph.status(c)).toBe('failed');
  });

  test("the origin's five fields", () => {
    expect(graph.metadata(a)).toEqual({
      session_id: a,
      parent_session_id: main,
      from_anchor: 'task-start',
      created_at: '2026-11-21T10:01:00.000Z',
      status: 'merged',
    });
    expect(graph.metadata(main)).toMatchObject({ parent_session_id: null, from_anchor: null });
  });

  test('merges, of all or of one session', () => {
    const told = (ref?: string) => graph.merges(ref).map(({ childName, intoName }) => [childName, intoName]);
    expect(told()).toEqual([
      [b, a],
      [a, main],
    ]);
    expect(told(a)).toEqual([
      [b, a],
      [a, main],
    ]);
    expect(told(main)).toEqual([[a, main]]);
    expect(told(c)).toEqual([]);
  });

  test('finds by name, by ULID and by a prefix of it, in any case', () => {
    expect(graph.find(ulid(3))?.session).toBe(b);
    expect(graph.find(ulid(3).toLowerCase())?.session).toBe(b);
    const other = SessionGraph.fromRecords(
      records(
        { type: 'session', session_id: 'x', session: '01JAAAAAAAAAAAAAAAAAAAAAAA' },
        { type: 'session', session_id: 'y', session: '01JBAAAAAAAAAAAAAAAAAAAAAA' },
      ),
    );
    expect(other.find('01jb')?.session).toBe('y');
    expect(other.find('01J')).toBeUndefined();
    expect(() => other.children('01J')).toThrow(
      "cannot find session '01J' in the graph: 2 sessions begin with it",
    );
  });

  test('an unknown session is undefined where the type allows it, else an error', () => {
    for (const ref of ['missing', '', '__proto__', 'constructor']) {
      expect(graph.find(ref)).toBeUndefined();
      expect(graph.parent(ref)).toBeUndefined();
      expect(graph.status(ref)).toBeUndefined();
      expect(graph.metadata(ref)).toBeUndefined();
      for (const act of [
        () => graph.children(ref),
        () => graph.ancestors(ref),
        () => graph.descendants(ref),
        () => graph.lineage(ref),
        () => graph.merges(ref),
        () => drawTree(graph, ref),
      ]) {
        expect(act).toThrow(GraphError);
        expect(act).toThrow(
          expect.objectContaining({ code: 'GRAPH_NO_SESSION', data: { ref, matches: [] } }),
        );
      }
    }
    expect(() => graph.children('no\u001b[31mbody')).toThrow(
      "cannot find session 'no\\u{1b}[31mbody' in the graph: no such session",
    );
  });
});

describe('unusual lines', () => {
  const s = (n: number, more: Partial<LineageLine> = {}) => ({
    type: 'session' as const,
    session_id: `s${n}`,
    session: ulid(n),
    ...more,
  });
  const from = (n: number) => ({ parent: ulid(n), parent_session_id: `s${n}` });

  test('a reused name is the latest session; the older one is found by its ULID', () => {
    const graph = SessionGraph.fromRecords(
      records(
        s(1),
        s(2, { session_id: 's1', tape: 'tape:s1~2' }),
        s(1, { type: 'status', status: 'destroyed' }),
      ),
    );
    expect(graph.find('s1')?.id).toBe(ulid(2));
    expect(graph.status(ulid(1))).toBe('destroyed');
    expect(graph.list()).toHaveLength(2);
    expect(graph.find('s1~1')?.id).toBe(ulid(1));
    expect(graph.find('s1~2')?.id).toBe(ulid(2));
    expect(graph.find('s1~3')).toBeUndefined();
  });

  test('an alias, and a worker by its id', () => {
    const graph = SessionGraph.fromRecords(records(s(1), s(2), s(2, { type: 'alias', alias: 'nick' })));
    expect(graph.find('nick')?.session).toBe('s2');
    expect(graph.find(`worker:${ulid(1)}`)?.session).toBe('s1');
    expect(graph.find('worker:')).toBeUndefined();
  });

  test('archive, discard and link', () => {
    const graph = SessionGraph.fromRecords(
      records(
        s(1),
        s(2, { type: 'fork', ...from(1) }),
        s(2, { type: 'discard', ...from(1), status: 'discarded', into: ulid(1), seq: 4 }),
        s(2, { type: 'archive', ...from(1), status: 'discarded' }),
        s(3),
        s(3, { type: 'link', ...from(1) }),
        s(3, { type: 'link', ...from(2), edge: 'clear', derived: true, evidence: 'why' }),
        s(3, { type: 'archive', status: 'active', lifecycle: 'active' }),
      ),
    );
    expect(graph.find('s2')).toMatchObject({
      delivery: 'discarded',
      mergedAt: undefined,
      lifecycle: 'archived',
    });
    expect(graph.merges('s2')).toMatchObject([{ type: 'discard', into: ulid(1), seq: 4 }]);
    expect(graph.parent('s3')?.session).toBe('s2');
    expect(graph.find('s3')?.link).toEqual({ type: 'clear', derived: true, evidence: 'why' });
    expect([graph.children('s1'), graph.children('s2')].map(namesOf)).toEqual([['s2'], ['s3']]);
    expect(graph.find('s3')?.lifecycle).toBe('active');
    expect(graph.skipped.dangling).toBe(0);
  });

  test('a fork or merge of unknown sessions is kept and counted', () => {
    const graph = SessionGraph.fromRecords(
      records(
        s(2, { type: 'fork', ...from(1), from_anchor: 'x' }),
        s(3, { type: 'merge', ...from(2), into: ulid(2), range: [1, 2], status: 'merged' }),
        s(2, { type: 'merge', ...from(1), into: ulid(1), status: 'merged' }),
      ),
    );
    expect(graph.skipped.dangling).toBe(3);
    expect(graph.parent('s2')).toBeUndefined();
    expect(graph.find('s2')).toMatchObject({
      parent: ulid(1),
      parentName: 's1',
      fromAnchor: 'x',
      status: 'merged',
    });
    expect(graph.metadata('s3')).toMatchObject({
      session_id: 's3',
      parent_session_id: 's2',
      status: 'merged',
    });
    expect(namesOf(graph.roots())).toEqual(['s2']);
    expect(graph.merges()).toHaveLength(2);
  });

  test('parents in a circle, as in a forged file, cause no endless loop', () => {
    const graph = SessionGraph.fromRecords(
      records(
        s(1, { type: 'fork', ...from(1) }),
        s(2, { type: 'fork', ...from(3) }),
        s(3, { type: 'fork', ...from(4) }),
        s(4, { type: 'fork', ...from(2) }),
        s(5),
        s(5, { type: 'link', ...from(5) }),
        s(6, { type: 'merge', ...from(6), into: ulid(6), status: 'merged' }),
      ),
    );
    expect(namesOf(graph.roots())).toEqual(['s1', 's4', 's5', 's6']);
    expect(namesOf(graph.ancestors('s2'))).toEqual(['s3', 's4']);
    expect(namesOf(graph.descendants('s4'))).toEqual(['s3', 's2']);
    expect(graph.parent('s1')).toBeUndefined();
    expect(drawTree(graph)).toHaveLength(6);
    expect(drawGraph(graph.list())).not.toHaveLength(0);
  });

  test('any lines in any order fold to a graph that can be walked to its end', () => {
    const id = fc.integer({ min: 1, max: 6 });
    const type = fc.constantFrom('session', 'fork', 'status', 'merge', 'discard', 'alias', 'archive', 'link');
    const told = fc.record({
      type,
      n: id,
      parent: fc.option(id),
      into: fc.option(id, { nil: undefined }),
      status: fc.constantFrom('active', 'merged', 'failed'),
    });
    fc.assert(
      fc.property(fc.array(told, { maxLength: 20 }), (all) => {
        const lines = records(
          ...all.map(({ type, n, parent, into, status }) =>
            s(n, {
              type,
              status,
              ...(parent === null ? {} : from(parent)),
              ...(into === undefined ? {} : { into: ulid(into), into_session_id: `s${into}` }),
            }),
          ),
        );
        const graph = SessionGraph.fromRecords(lines);
        const { nodes, dangling } = fold(lines);
        expect(graph.list()).toEqual([...nodes.values()]);
        expect(graph.skipped.dangling).toBe(dangling);
        const walked = graph
          .roots()
          .flatMap(({ id }) => graph.subtree(id))
          .map(({ node }) => node.id);
        expect(walked.toSorted()).toEqual([...nodes.keys()].toSorted());
        for (const node of nodes.values()) {
          for (const above of graph.ancestors(node.id))
            expect(graph.descendants(above.id)).toContainEqual(node);
          const last = lines.findLast((line) => line.session === node.id);
          expect(node.status).toBe(last?.status);
        }
        expect(drawTree(graph)).toHaveLength(nodes.size);
        expect(drawGraph(graph.list()).length).toBeGreaterThanOrEqual(nodes.size);
      }),
      { numRuns: sized(60, 150, 10_000) },
    );
  });

  test('a chain of ten thousand forks is walked without running out of stack', () => {
    const graph = SessionGraph.fromRecords(
      records(s(1), ...Array.from({ length: 10_000 }, (_, i) => s(i + 2, { type: 'fork', ...from(i + 1) }))),
    );
    expect(graph.descendants('s1')).toHaveLength(10_000);
    expect(graph.ancestors('s10001')).toHaveLength(10_000);
  });
});

describe('reloading', () => {
  const all = family().map(encodeLine);
  const content = (to: number) => fileOf(all.slice(0, to));

  test('reads the appended lines, and only those', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    using journal = openJournal(path);
    const graph = openSessionGraph(path);
    expect(graph.list()).toEqual([]);
    for (let i = 0; i < all.length; i += 1) {
      journal.append(all.slice(i, i + 1));
      expect(graph.reload()).toBe(1);
      expect(graph.reload()).toBe(0);
      expect(graph.list()).toEqual(SessionGraph.fromRecords(family().slice(0, i + 1)).list());
    }
    expect(openSessionGraph(path).list()).toEqual(graph.list());
  });

  test('keeps a status', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, content(5));
    const graph = openSessionGraph(path);
    expect(graph.status(c)).toBe('failed');
    appendFileSync(path, content(9).slice(content(5).length));
    graph.reload();
    for (const read of [graph, openSessionGraph(path)]) {
      expect(read.status(c)).toBe('failed');
      expect(read.status(b)).toBe('merged');
      expect(namesOf(read.children(main))).toEqual([a, c, d]);
      expect(read.parent(b)?.session).toBe(a);
      expect(read.list()).toHaveLength(5);
    }
  });

  test('counts a torn tail until it is sealed or completed', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, content(2) + all[2]?.slice(0, 30));
    const graph = openSessionGraph(path);
    expect(graph.skipped).toMatchObject({ torn: 1, malformed: 0 });
    expect(graph.reload()).toBe(0);
    expect(graph.skipped).toMatchObject({ torn: 1, malformed: 0 });
    appendFileSync(path, `\n${all[2]}`);
    expect(graph.reload()).toBe(0);
    expect(graph.skipped).toMatchObject({ torn: 1, malformed: 1 });
    appendFileSync(path, '\n');
    expect(graph.reload()).toBe(1);
    expect(graph.skipped).toMatchObject({ torn: 0, malformed: 1 });
    expect(graph.list()).toHaveLength(3);
  });

  test('reads another, a shorter or a missing file from its start', () => {
    using dir = tempDir();
    const path = join(dir.path, 'g.jsonl');
    writeFileSync(path, content(9));
    const graph = openSessionGraph(path);
    writeFileSync(path, content(2));
    expect(graph.reload()).toBe(2);
    expect(graph.list()).toHaveLength(2);
    writeFileSync(`${path}.new`, content(3));
    renameSync(`${path}.new`, path);
    expect(graph.reload()).toBe(3);
    expect(graph.merges()).toEqual([]);
    // As long as before, but another last line.
    writeFileSync(
      path,
      `${content(2)}{}${' '.repeat(content(3).length - content(2).length - 3)}\n${all[3]}\n`,
    );
    expect(graph.reload()).toBe(3);
    expect(graph.skipped).toMatchObject({ malformed: 1, dangling: 0 });
    rmSync(path);
    expect(graph.reload()).toBe(0);
    expect(graph.list()).toEqual([]);
    expect(graph.skipped).toMatchObject({ malformed: 0 });
    writeFileSync(path, content(9));
    expect(graph.reload()).toBe(9);
  });

  test('does nothing for records in memory', () => {
    const graph = SessionGraph.fromRecords(family());
    expect(graph.reload()).toBe(0);
    expect(graph.list()).toHaveLength(5);
  });
});
