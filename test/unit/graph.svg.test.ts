import { spawnSync } from 'node:child_process';
import { SessionGraph, toDot, toMermaid, toSvg } from '@tapedeck/graph';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';
import { family, records, ulid } from './graph.support/lines.ts';

const hostile =
  'a"]; x -> y; <script>alert(1)</script> & \'" `#<b>\\ \\" \u001b[31m\u202e\u2028\ud800\n|end]]>';

/** The graph of a family, and that of a foreign file with hostile names. */
const graphs = {
  family: SessionGraph.fromRecords(family()),
  hostile: SessionGraph.fromRecords(
    records(
      { type: 'session', session: ulid(1), session_id: hostile, status: hostile, kind: hostile },
      {
        type: 'fork',
        session: ulid(2),
        session_id: 'b\\',
        parent: ulid(1),
        parent_session_id: hostile,
        from_anchor: hostile,
      },
      {
        type: 'merge',
        session: ulid(2),
        session_id: 'b\\',
        into: ulid(1),
        into_session_id: hostile,
        status: 'merged',
      },
      { type: 'fork', session: ulid(3), session_id: '会話 👩‍💻', parent: '"]\n', parent_session_id: hostile },
    ),
  ),
} as const;

/** Parses a document as XML, and returns its elements with their texts. */
function elementsOf(xml: string): readonly { readonly tag: string; readonly text: string }[] {
  const program = `import json, sys, xml.etree.ElementTree as e
print(json.dumps([{"tag": x.tag.split("}")[-1], "text": x.text or ""} for x in e.fromstring(sys.stdin.buffer.read()).iter()]))`;
  const { status, stdout, stderr } = spawnSync('python3', ['-c', program], { input: xml, encoding: 'utf8' });
  if (status !== 0) throw new Error(`not XML: ${stderr}`);
  return JSON.parse(stdout) as { tag: string; text: string }[];
}

const hasPython = spawnSync('python3', ['--version']).status === 0;

test.skipIf(!hasPython).each(Object.entries(graphs))(
  'an image of the %s is XML that stands alone (needs Python)',
  (_, graph) => {
    const svg = toSvg(graph.list(), { title: `Sessions of ${hostile}` });
    const elements = elementsOf(svg);
    const tags = new Set(elements.map(({ tag }) => tag));
    expect(
      [...tags].filter((tag) => !/^(?:svg|title|desc|style|rect|g|path|circle|text)$/.test(tag)),
    ).toEqual([]);
    expect(svg).not.toMatch(/href|url\(|@import|src=|<script|\son\w+=/i);
    expect(elements.filter(({ tag }) => tag === 'text')).toHaveLength(graph.list().length);
    expect(elements.find(({ tag }) => tag === 'title')?.text).toMatch(/^Sessions of a"\]; x -> y; <script>/);
    expect(elements.find(({ tag }) => tag === 'desc')?.text).toContain(`${graph.list().length} sessions`);
    expect(svg).toContain('prefers-color-scheme: dark');
  },
);

test('an image has the rows of the drawing: their lanes, shapes and texts', () => {
  using store = openStore();
  store.sessions.open('main');
  for (const name of ['a', 'b']) store.lineage.fork('main', { name });
  store.lineage.merge('a');
  store.lineage.merge('b', { strategy: 'discard' });
  const svg = toSvg(SessionGraph.fromRecords(store.lineage.read()).list());
  const rows = svg.split('\n').filter((line) => line.startsWith('<g>'));
  expect(
    rows.map((row) => [/class="(\w+)"/.exec(row)?.[1], />([^<]+)<\/text>/.exec(row)?.[1]?.split(' ')[0]]),
  ).toEqual([
    ['open', 'main'],
    ['ended', 'b'],
    ['merged', 'a'],
  ]);
  // The lane of main goes on behind its first child, and ends at the last.
  expect(rows[1]).toContain('M21 40V64');
  expect(rows[2]).toContain('M21 64V76');
  expect(toSvg([])).toContain('<desc id="desc">0 sessions');
});

const hasDot = spawnSync('dot', ['-V']).status === 0;

test.runIf(sized(false, true, true) && hasDot).each(Object.entries(graphs))(
  'Graphviz draws the %s (needs Graphviz and the full size)',
  (_, graph) => {
    const { status, stdout, stderr } = spawnSync('dot', ['-Tsvg'], {
      input: toDot(graph.list()),
      encoding: 'utf8',
    });
    expect({ status, stderr: stderr.replace(/^Warning:.*\n/gm, '') }).toEqual({ status: 0, stderr: '' });
    const nodes = elementsOf(stdout).filter(
      ({ tag, text }) => tag === 'title' && /^[0-9A-Z]{26}$/.test(text),
    );
    expect(nodes.length).toBe(graph.list().length);
  },
);

test('each line of Mermaid is a session or an edge between sessions that were declared', () => {
  for (const graph of Object.values(graphs)) {
    const [first, ...lines] = toMermaid(graph.list()).trimEnd().split('\n');
    expect(first).toBe('flowchart TD');
    const declared = new Set<string>();
    for (const line of lines) {
      const node = /^ {2}(s\d+)\["[^"`|<>\\[\]{}]*"\]$/.exec(line);
      const edge = /^ {2}(s\d+) -\.?->(?:\|"[^"`|<>\\[\]{}]*"\|)? (s\d+)$/.exec(line);
      expect(node ?? edge, line).not.toBeNull();
      if (node !== null) declared.add(node[1] ?? '');
      else expect(declared.has(edge?.[1] ?? '') && declared.has(edge?.[2] ?? ''), line).toBe(true);
    }
  }
});
