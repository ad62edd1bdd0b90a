import { readFileSync } from 'node:fs';
import { ImportError, readTranscript } from '@tapedeck/runtime/import';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import { faults, type Imported, imported, jsonl, outline, tapeOf } from '../support/transcript.ts';

const demo = new URL('../../packages/cli/demo/transcript.jsonl', import.meta.url);
const bytes = readFileSync(demo);

function cut(file: Buffer, at: number): Imported | ImportError | undefined {
  try {
    return imported(file.subarray(0, at));
  } catch (error) {
    if (error instanceof ImportError) return error;
    // Nothing of it is a record, or the first one, which does not say of what session it is.
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

test('a file cut at any byte gives a valid history of the records before the cut', () => {
  const whole = imported(bytes);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: bytes.length }), (at) => {
      const part = cut(bytes, at);
      const ended = bytes.subarray(0, at).toString('latin1').split('\n').length - 1;
      if (part === undefined || part instanceof ImportError) {
        expect(ended).toBeLessThan(2);
        return;
      }
      // The last record is whole with or without its newline.
      expect([ended, ended + 1]).toContain(part.counts.records);
      expect(part.counts.records + part.counts.truncated).toBeLessThanOrEqual(whole.counts.records);
      expect(faults(part.drafts)).toEqual([]);
    }),
    { numRuns: sized(60, 150, 10_000) },
  );
});

test('any bytes give drafts or an ImportError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
      cut(Buffer.concat([bytes.subarray(0, 300), noise]), 10_000);
      cut(Buffer.from(noise), 10_000);
    }),
  );
});

test('records with any links and contents give a valid history', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd', '');
  const block = fc.oneof(
    fc.record({ type: fc.constant('tool_use'), id: name, name }),
    fc.record({
      type: fc.constant('tool_result'),
      tool_use_id: name,
      content: fc.jsonValue({ maxDepth: 2 }),
    }),
    fc.record({ type: fc.constant('text'), text: name }),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const record = fc.record(
    {
      sessionId: fc.constant('s-1'),
      type: fc.constantFrom('user', 'assistant', 'assistant', 'system', 'progress', 'summary'),
      uuid: name,
      parentUuid: fc.option(name),
      logicalParentUuid: name,
      subtype: fc.constant('compact_boundary'),
      isSidechain: fc.boolean(),
      isMeta: fc.boolean(),
      isCompactSummary: fc.boolean(),
      requestId: fc.oneof(name, fc.integer()),
      message: fc.record(
        { id: name, content: fc.oneof(name, fc.array(block, { maxLength: 3 })) },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['sessionId', 'type'] },
  );
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 12 }), (records) => {
      expect(faults(imported(jsonl(records)).drafts)).toEqual([]);
    }),
    { numRuns: sized(200, 600, 40_000) },
  );
});

test('the demo is a small story with everything a real transcript has', () => {
  const { conversations, counts, ...rest } = readTranscript(demo.pathname, { format: 'auto' });
  const [main] = conversations;
  if (main === undefined) throw new TypeError('nothing was planned');
  const drafts = tapeOf(main);
  expect(faults(drafts)).toEqual([]);
  expect([rest, main.title, conversations.length]).toMatchObject([
    { format: 'claude-code', session: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47', derived: [], bad: [] },
    'Release check fails: changelog heading and one test',
    2,
  ]);
  expect([...counts.values()]).toEqual([
    {
      ...{ records: 19, messages: 8, offPath: 4, repaired: 0, compactions: 0, merged: 2, reordered: 0 },
      ...{ dangling: 0, skipped: 0, glued: 0, truncated: 0, irregular: 0 },
    },
  ]);
  expect(outline(drafts).map((line) => line.slice(0, 40))).toMatchInlineSnapshot(`
    [
      "x-claude-code file-history-snapshot",
      "user: scripts/release-check.sh exits wit",
      "assistant: The script prints nothing, so",
      "toolu_01AcmeRead →      1→#!/usr/bin/env",
      "x-claude-code c0ffee05-3a1d-4e52-8f6b-10",
      "assistant: Two checks can fail, and both",
      "toolu_01AcmeGrep → 5:## Unreleased
    19:##",
      "toolu_01AcmeTest →   1) invoice rounding",
      "assistant: Both checks fail, for reasons",
      "user: Don't change anything yet. Give me",
      "assistant: Two tasks, independent of eac",
      "x-claude-code c0ffee17-3a1d-4e52-8f6b-10",
      "x-claude-code summary",
    ]
  `);
});
