import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ImportPlan, parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { treeParentOf } from '@tapedeck/tape/internal';
import { describe, expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { openStore } from '../support/store.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const absent = !existsSync(samples);
const files = (absent ? [] : globSync('**/*.jsonl', { cwd: samples }).sort()).filter(
  (file) => basename(file) !== 'journal.jsonl',
);

/** The plan of the beginning of a file. */
function planOf(file: string, bytes: Buffer): ImportPlan {
  const { records } = parseJsonLines([bytes], { growing: true });
  return planClaudeCode({ name: basename(file, '.jsonl'), lines: records });
}

/** What a model would see of each session, the main one first. */
function views(store: SqliteTapeStore, { conversations }: ImportPlan): string[] {
  return conversations.map(({ name }) =>
    JSON.stringify(view(store.views.entries(name), { target: {} }).messages),
  );
}

function once(file: string, bytes: Buffer): string[] {
  using store = openStore();
  const plan = planOf(file, bytes);
  reconcile(store, plan);
  return views(store, plan);
}

/** Ends of lines, and a place inside of each line. */
function cutsOf(bytes: Buffer): number[] {
  const cuts: number[] = [];
  for (let from = 0, end = bytes.indexOf(0x0a); end !== -1; from = end + 1, end = bytes.indexOf(0x0a, from))
    cuts.push(from + Math.floor((end - from) * ((cuts.length % 7) / 7)), end + 1);
  return [...new Set([...cuts, bytes.length])].filter((cut) => cut > 0);
}

describe.skipIf(absent)(`real transcripts in pieces (skipped unless ${samples} is there)`, () => {
  test.each(files)('read as one that is imported at once: %s', { timeout: 300_000 }, (file) => {
    const bytes = readFileSync(join(samples, file));
    const all = cutsOf(bytes);
    const step = Math.max(1, Math.floor(all.length / sized(4, 5, all.length)));
    const cuts = all.filter((cut, i) => i % step === 0 || cut === bytes.length);
    using store = openStore();
    for (const cut of cuts) {
      const plan = planOf(file, bytes.subarray(0, cut));
      reconcile(store, plan);
      expect(views(store, plan)).toEqual(once(file, bytes.subarray(0, cut)));
      expect(reconcile(store, plan).filter(({ added }) => added > 0)).toEqual([]);
    }
  });

  test('end in the same conversations, tree and tokens in whatever order the files are imported', () => {
    // Of two versions of one session the later one.
    const plans = [
      ...new Map(
        files
          .map((file) => planOf(file, readFileSync(join(samples, file))))
          .map((plan) => [plan.session, plan]),
      ).values(),
    ];
    const inOrder = (order: readonly ImportPlan[]) => {
      using store = openStore();
      for (const plan of order) reconcile(store, plan);
      return {
        sessions: store.sessions
          .list({ all: true })
          .toSorted((a, b) => (a.session < b.session ? -1 : 1))
          .map((info) => [
            info.session,
            treeParentOf(info).parent,
            info.delivery,
            JSON.stringify(view(store.views.entries(info.session), { target: {} }).messages),
          ]),
        tokens: (['input', 'output', 'cacheRead', 'cacheWrite'] as const).map((name) =>
          store.sessions.calls().reduce((sum, { usage }) => sum + usage[name], 0),
        ),
      };
    };
    const expected = inOrder(plans);
    for (const seed of sized([7], [7], [1, 7, 11])) {
      const shuffled = plans
        .map((plan, i) => ({ plan, at: (i * 7919 * seed) % 1009 }))
        .toSorted((a, b) => a.at - b.at);
      expect([seed, inOrder(shuffled.map(({ plan }) => plan))]).toEqual([seed, expected]);
    }
  });
});
