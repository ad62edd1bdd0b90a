import { existsSync, globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exportSession } from '@tapedeck/runtime';
import { type ImportPlan, parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { type SqliteTapeStore, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const absent = !existsSync(samples);
const mains = absent
  ? [samples]
  : [
      ...new Set(
        globSync('**/*.jsonl', { cwd: samples })
          .filter((file) => basename(file) !== 'journal.jsonl')
          .filter((file) => !file.includes('subagents/'))
          .map((file) => join(samples, file)),
      ),
    ].toSorted();

async function exported(store: SqliteTapeStore, session: string): Promise<ImportPlan> {
  const pieces = exportSession(store, session, { format: 'claude-code', project: '/', raw: true });
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done !== true) text += value;
    else {
      const { records } = parseJsonLines([Buffer.from(text)]);
      return planClaudeCode({ name: value.transcript?.id ?? '', lines: records });
    }
  }
}

function shown(store: SqliteTapeStore, session: string): unknown {
  return view(store.views.entries(session), { target: { provider: 'anthropic.messages' } }).messages;
}

test.skipIf(absent).each(mains.map((main) => [main.slice(samples.length + 1), main]))(
  'each session of %s returns from an export: to its home as nothing new, to another with the same view (skipped without samples)',
  async (_, main) => {
    using store = openStore();
    const { names } = await importFiles(store, [main], { clean: false });
    for (const session of names) {
      const plan = await exported(store, session);
      const before = store.sessions.list().map(({ id, head }) => [id, head]);
      reconcile(store, plan);
      expect(store.sessions.list().map(({ id, head }) => [id, head])).toEqual(before);
      using other = openStore();
      const [taken] = reconcile(other, plan);
      if (taken !== undefined) expect(shown(other, taken.session)).toEqual(shown(store, session));
    }
  },
);
