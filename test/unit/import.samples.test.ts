import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readTranscript } from '@tapedeck/runtime/import';
import type { JsonObject } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { faults } from '../support/transcript.ts';

// Real transcripts, read in place: they are not part of the project.
const samples = fileURLToPath(new URL('../../../shared/samples/claude-code', import.meta.url));
const absent = !existsSync(samples);
const files = absent ? [] : globSync('**/*.jsonl', { cwd: samples }).sort();
const read = (file: string) => {
  const { conversations, counts, ...rest } = readTranscript(join(samples, file), { format: 'auto' });
  const [main] = conversations;
  if (main === undefined) throw new TypeError(`nothing is planned for ${file}`);
  return { ...rest, conversations, drafts: main.spine, counts: counts.get(main.file) };
};

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

describe.skipIf(absent)(`real transcripts (skipped unless ${samples} is there)`, () => {
  test.each(files.filter((file) => basename(file) !== 'journal.jsonl'))('are valid histories: %s', (file) => {
    const { conversations, counts, session } = read(file);
    for (const { spine, settled } of conversations) {
      expect(faults(spine)).toEqual([]);
      expect(settled).toBeLessThanOrEqual(spine.length);
    }
    expect(counts?.messages).toBeGreaterThan(0);
    expect(session).not.toBe('');
  });

  test('a workflow’s journal is no transcript', () => {
    const journal = files.find((file) => basename(file) === 'journal.jsonl') ?? '';
    expect(() => read(journal)).toThrow(expect.objectContaining({ code: 'IMPORT_UNKNOWN_FORMAT' }));
  });

  test('a fork: both ways are conversations', () => {
    const file = 'entire-small-fork.jsonl';
    const records = rawRecords(file);
    const { counts, conversations } = read(file);
    expect(counts).toMatchObject({
      records: records.length,
      messages: new Set(ids(records)).size + prompts(records).length,
      repaired: 0,
      merged: split(records),
    });
    expect(records).toHaveLength(78);
    expect(conversations.map(({ kind }) => kind)).toEqual(['main', 'branch']);
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
      repaired: open.length,
      compactions: records.filter((r) => r.subtype === 'compact_boundary').length,
      reordered: 0,
    });
    expect(open).toHaveLength(2);
    expect(drafts.filter(({ kind }) => kind === 'tool-result')).toHaveLength(answered.size + open.length);
    expect(drafts.find(({ mark }) => mark === 'boundary')).toMatchObject({
      payload: { state: { summary: expect.stringContaining('continued from a previous') } },
      meta: { trigger: 'auto', tokens_before: 167979 },
    });
  });

  test('two records joined on one line are both read', () => {
    expect(read('entire-glued-lines.jsonl').counts).toMatchObject({ records: 171, glued: 1, repaired: 0 });
  });

  test('a session that grew repeats what was settled', () => {
    const [small, large] = [read('growing/79e9becd-0.jsonl'), read('growing/79e9becd-1.jsonl')];
    const settled = small.conversations[0]?.settled ?? 0;
    expect(settled).toBeGreaterThan(40);
    expect(large.drafts.slice(0, settled)).toEqual(small.drafts.slice(0, settled));
  });

  test('a last line that was cut is ignored', () => {
    expect(read('agentsview/truncated.jsonl').counts).toMatchObject({
      records: 2,
      messages: 2,
      truncated: 1,
    });
  });
});
