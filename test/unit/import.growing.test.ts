import { readFileSync } from 'node:fs';
import { ImportError, readTranscript, type Transcript } from '@tapedeck/runtime/import';
import type { Draft } from '@tapedeck/tape';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';
import {
  calls,
  faults,
  imported,
  jsonl,
  model,
  outline,
  person,
  returns,
  says,
} from '../support/transcript.ts';

const demo = new URL('../../packages/cli/demo/transcript.jsonl', import.meta.url);
const bytes = readFileSync(demo);

/** A linear story: nothing in it is left later. */
const story = Buffer.from(
  jsonl([
    { type: 'summary', summary: 'Fünf', leafUuid: 'a4' },
    person({ uuid: 'u1' }, 'what is \u2028 “this”?'),
    model({ uuid: 'a1', parent: 'u1', id: 'm1' }, [{ type: 'thinking', thinking: '…', signature: 's' }]),
    model({ uuid: 'a2', parent: 'a1', id: 'm1' }, [calls('t1')]),
    { type: 'progress', uuid: 'p1', parentUuid: 'a2' },
    person({ uuid: 'r1', parent: 'p1' }, [returns('t1', '\u{1f4fc}')]),
    model({ uuid: 'a3', parent: 'r1', id: 'm2' }, [says('a'), calls('t2'), calls('t3')]),
    person({ uuid: 'r3', parent: 'a3' }, [returns('t3')]),
    person({ uuid: 'r2', parent: 'r3' }, [returns('t2')]),
    model({ uuid: 'a4', parent: 'r2', id: 'm3' }, [says('b')], { usage: { output_tokens: 3 } }),
    { type: 'system', subtype: 'turn_duration', uuid: 'y1', parentUuid: 'a4' },
    person({ uuid: 'u2', parent: 'y1' }, 'thanks'),
    model({ uuid: 'a5', parent: 'u2', id: 'm4' }, [says('c')]),
  ]),
);

function cut(file: Buffer, at: number): Transcript | ImportError {
  try {
    return imported(file.subarray(0, at));
  } catch (error) {
    if (error instanceof ImportError) return error;
    throw error;
  }
}

const keyed = (drafts: readonly Draft[]) => new Map(drafts.map((draft) => [draft.key, draft]));

test('a file cut at any byte gives a valid history of the records before the cut', () => {
  const whole = imported(bytes);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: bytes.length }), (at) => {
      const part = cut(bytes, at);
      const ended = bytes.subarray(0, at).toString('latin1').split('\n').length - 1;
      if (part instanceof ImportError) {
        expect(ended).toBe(0);
        return;
      }
      // The last record is whole with or without its newline.
      expect([ended, ended + 1]).toContain(part.counts.records);
      expect(part.counts.records + part.counts.truncated).toBeLessThanOrEqual(whole.counts.records);
      expect(faults(part.drafts)).toEqual([]);
    }),
    { numRuns: sized(60, 500, 10_000) },
  );
});

test('settled drafts of a cut file are the first drafts of the whole one', () => {
  const { drafts } = imported(story);
  for (let at = 0; at <= story.length; at += 1) {
    const part = cut(story, at);
    if (part instanceof ImportError) continue;
    expect(faults(part.drafts)).toEqual([]);
    expect(drafts.slice(0, part.settled)).toEqual(part.drafts.slice(0, part.settled));
  }
});

test.each([
  ['a call waits for its result', [model({ uuid: 'a1' }, [says('x'), calls('t1')])], 0],
  ['the message may go on', [model({ uuid: 'a1' }, [says('x')])], 0],
  [
    'its calls are answered and it may go on',
    [model({ uuid: 'a1' }, [calls('t1')]), person({ uuid: 'r1', parent: 'a1' }, [returns('t1')])],
    0,
  ],
  [
    'the model said that it stopped',
    [{ ...model({ uuid: 'a1' }, []), message: { content: [says('x')], stop_reason: 'end_turn' } }],
    1,
  ],
  [
    'the turn was closed',
    [model({ uuid: 'a1' }, [says('x')]), { type: 'system', uuid: 'y', parentUuid: 'a1' }],
    2,
  ],
  ['a prompt follows', [model({ uuid: 'a1' }, [calls('t1')]), person({ uuid: 'u1', parent: 'a1' }, 'no')], 3],
  [
    'a boundary waits for its summary',
    [{ type: 'system', subtype: 'compact_boundary', uuid: 'b', parentUuid: null }],
    0,
  ],
])('the end of a file is settled or not: %s', (_, records, settled) => {
  expect(imported(jsonl(records)).settled).toBe(settled);
});

test('a grown file repeats keys and contents, so that only its rest is new', () => {
  const lines = story.toString().split('\n');
  const grown = keyed(imported(story).drafts);
  for (let n = 2; n < lines.length; n += 1) {
    const part = imported(lines.slice(0, n).join('\n'));
    for (const draft of part.drafts.slice(0, part.settled)) expect(grown.get(draft.key)).toEqual(draft);
  }
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
    { requiredKeys: ['type'] },
  );
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 12 }), (records) => {
      expect(faults(imported(jsonl(records)).drafts)).toEqual([]);
    }),
    { numRuns: sized(200, 2_000, 40_000) },
  );
});

test('the demo is a small story with everything a real transcript has', () => {
  const { drafts, ...rest } = readTranscript(demo.pathname, { format: 'auto' });
  expect(faults(drafts)).toEqual([]);
  expect(rest).toEqual({
    format: 'claude-code',
    session: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47',
    title: 'Release check fails: changelog heading and one test',
    settled: drafts.length,
    bad: [],
    counts: {
      records: 19,
      messages: 6,
      offPath: 4,
      repaired: 0,
      compactions: 0,
      merged: 2,
      reordered: 0,
      dangling: 0,
      skipped: 0,
      glued: 0,
      truncated: 0,
    },
  });
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
      "x-claude-code c0ffee13-3a1d-4e52-8f6b-10",
      "x-claude-code c0ffee14-3a1d-4e52-8f6b-10",
      "user: Don't change anything yet. Give me",
      "assistant: Two tasks, independent of eac",
      "x-claude-code c0ffee17-3a1d-4e52-8f6b-10",
      "x-claude-code summary",
    ]
  `);
});
