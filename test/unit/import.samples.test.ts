import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readTranscript } from '@tapedeck/runtime/import';
import type { Draft, JsonObject } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { faults } from '../support/transcript.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const absent = !existsSync(samples);
const files = absent ? [] : globSync('**/*.jsonl', { cwd: samples }).sort();
const read = (file: string) => readTranscript(join(samples, file), { format: 'auto' });

/** The records of a sample that has one on each line, found without the importer. */
const rawRecords = (file: string): JsonObject[] =>
  readFileSync(join(samples, file), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

const blocks = (record: JsonObject): readonly JsonObject[] => {
  const content = (record.message as JsonObject | undefined)?.content;
  return Array.isArray(content)
    ? content
    : typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : [];
};
const ids = (records: readonly JsonObject[]): unknown[] =>
  records.flatMap((r) => (r.type === 'assistant' ? [(r.message as JsonObject).id] : []));
const prompts = (records: readonly JsonObject[]): JsonObject[] =>
  records.filter(
    (r) =>
      r.type === 'user' && r.isCompactSummary !== true && blocks(r).some((b) => b.type !== 'tool_result'),
  );
const split = (records: readonly JsonObject[]): number =>
  new Set(ids(records).filter((id, i, all) => all.indexOf(id) !== i)).size;
const keyed = (drafts: readonly Draft[]) => new Map(drafts.map((draft) => [draft.key, draft]));

describe.skipIf(absent)(`real transcripts (skipped unless ${samples} is there)`, () => {
  test.each(files.filter((file) => basename(file) !== 'journal.jsonl'))('are valid histories: %s', (file) => {
    const { drafts, settled, counts, session } = read(file);
    expect(faults(drafts)).toEqual([]);
    expect(counts.messages).toBeGreaterThan(0);
    expect(counts.messages).toBe(drafts.filter(({ kind }) => kind === 'message').length);
    expect(settled).toBeLessThanOrEqual(drafts.length);
    expect(session).not.toBe('');
  });

  test('a workflow’s journal is no transcript', () => {
    const journal = files.find((file) => basename(file) === 'journal.jsonl') ?? '';
    expect(() => read(journal)).toThrow(expect.objectContaining({ code: 'IMPORT_UNKNOWN_FORMAT' }));
  });

  test('a fork: the path contains what leads to the end, the rest is beside it', () => {
    const file = 'entire-small-fork.jsonl';
    const records = rawRecords(file);
    const byId = new Map(records.filter((r) => r.uuid !== undefined).map((r) => [r.uuid, r]));
    const path: JsonObject[] = [];
    for (let at = records.findLast((r) => r.uuid !== undefined); at; at = byId.get(at.parentUuid as string))
      path.push(at);

    expect(read(file).counts).toEqual({
      records: records.length,
      messages: new Set(ids(path)).size + prompts(path).length,
      offPath: records.length - path.length,
      repaired: 0,
      compactions: 0,
      merged: split(path),
      reordered: 0,
      dangling: 1,
      skipped: 0,
      glued: 0,
      truncated: 0,
    });
    expect(records).toHaveLength(78);
    expect(path).toHaveLength(49);
  });

  test('two calls without a result and a compaction: all messages before it are kept', () => {
    const file = 'entire-orphan-tooluse.jsonl';
    const records = rawRecords(file);
    const of = (type: string, field: string): unknown[] =>
      records.flatMap((r) => blocks(r).flatMap((b) => (b.type === type ? [b[field]] : [])));
    const answered = new Set(of('tool_result', 'tool_use_id'));
    const open = of('tool_use', 'id').filter((id) => !answered.has(id));

    const { counts, drafts } = read(file);
    expect(counts).toMatchObject({
      records: records.length,
      messages: new Set(ids(records)).size + prompts(records).length,
      repaired: open.length,
      compactions: records.filter((r) => r.subtype === 'compact_boundary').length,
      merged: split(records),
      reordered: 0,
      dangling: 1,
    });
    expect(open).toHaveLength(2);
    expect(drafts.filter(({ kind }) => kind === 'tool-result')).toHaveLength(answered.size + open.length);
    expect(drafts.find(({ mark }) => mark === 'boundary')?.payload).toMatchObject({
      state: {
        trigger: 'auto',
        pre_tokens: 167979,
        summary: expect.stringContaining('continued from a previous'),
      },
    });
  });

  test('two records joined on one line are both read', () => {
    expect(read('entire-glued-lines.jsonl').counts).toMatchObject({ records: 171, glued: 1, repaired: 0 });
  });

  test('a session that grew repeats what was settled, and changes no existing key', () => {
    const [small, large] = [read('growing/79e9becd-0.jsonl'), read('growing/79e9becd-1.jsonl')];
    expect(small.settled).toBeGreaterThan(100);
    expect(large.drafts.slice(0, small.settled)).toEqual(small.drafts.slice(0, small.settled));
    const grown = keyed(large.drafts);
    const changed = small.drafts.filter(({ key, payload }) => {
      const now = grown.get(key);
      return JSON.stringify(now?.payload) !== JSON.stringify(payload);
    });
    // Only the call that was running when the small file was written.
    expect(changed.map(({ meta }) => meta)).toEqual([{ source: 'import', repaired: true }]);
  });

  test('a last line that was cut is ignored', () => {
    expect(read('agentsview/truncated.jsonl').counts).toMatchObject({
      records: 2,
      messages: 2,
      truncated: 1,
    });
  });
});
