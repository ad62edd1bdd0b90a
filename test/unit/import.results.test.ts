import { expect, test } from 'vitest';
import {
  calls,
  faults,
  imported,
  model,
  outline,
  person,
  read,
  returns,
  says,
} from '../support/transcript.ts';

const asks = (...ids: string[]) =>
  model(
    { uuid: 'a1', id: 'm' },
    ids.map((id) => calls(id)),
  );

test('each of several results in one record is an entry with its own key', () => {
  const { drafts, lines } = read([
    asks('t1', 't2'),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t2', 'b'), returns('t1', 'a')]),
  ]);
  expect(lines).toEqual(['assistant: [t1] [t2]', 't1 → a', 't2 → b']);
  expect(drafts.map(({ key }) => key)).toEqual(['cc:a1', 'cc:r1:t1', 'cc:r1:t2']);
});

test('a result on a branch that parallel calls made answers its call', () => {
  const { lines, counts } = read([
    asks('t1', 't2'),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'a')]),
    person({ uuid: 'r2', parent: 'a1' }, [returns('t2', 'b')]),
    model({ uuid: 'a2', parent: 'r1' }, [says('done')]),
  ]);
  expect(lines).toEqual(['assistant: [t1] [t2]', 't1 → a', 't2 → b', 'assistant: done']);
  expect(counts).toMatchObject({ offPath: 0, repaired: 0, reordered: 0 });
});

test('a call without a result is answered as interrupted, behind the results that came', () => {
  const { drafts, lines, counts } = read([
    asks('t1', 't2'),
    person({ uuid: 'r2', parent: 'a1' }, [returns('t2', 'b')]),
    person({ uuid: 'u1', parent: 'r2' }, 'stop'),
  ]);
  expect(lines).toEqual(['assistant: [t1] [t2]', 't2 → b', 't1 → interrupted', 'user: stop']);
  expect(drafts[2]).toEqual({
    kind: 'tool-result',
    key: 'cc:a1:t1:interrupted',
    payload: {
      type: 'tool-result',
      toolCallId: 't1',
      toolName: 'Read',
      output: { type: 'error-text', value: 'interrupted' },
    },
    meta: { source: 'import', repaired: true },
  });
  expect(counts.repaired).toBe(1);
});

test('the first of several results counts, one on the path before one beside it; the others are kept', () => {
  const { lines } = read([
    asks('t1'),
    person({ uuid: 'r0', parent: 'a1' }, [returns('t1', 'beside')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'first')]),
    person({ uuid: 'r2', parent: 'r1' }, [returns('t1', 'again')]),
    person({ uuid: 'u1', parent: 'r2' }, [returns('t1', 'once more'), says('hi')]),
  ]);
  expect(lines).toEqual([
    'assistant: [t1]',
    't1 → first',
    'x-claude-code r0',
    'x-claude-code r2',
    'user: hi',
    'x-claude-code u1',
  ]);
});

test('a result without a call on the path is kept', () => {
  const { lines, counts } = read([
    person({ uuid: 'u1' }, 'one'),
    model({ uuid: 'a1', parent: 'u1' }, [calls('t1')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1')]),
    person({ uuid: 'u2', parent: 'u1' }, [returns('nowhere'), returns('')]),
    person({ uuid: 'u3', parent: 'u2' }, 'on'),
  ]);
  expect(lines).toEqual(['user: one', 'x-claude-code u2', 'user: on']);
  expect(counts.offPath).toBe(1);
});

test('a result that follows another message is moved to its call', () => {
  const { lines, counts } = read([
    asks('t1'),
    person({ uuid: 'u1', parent: 'a1' }, 'meanwhile'),
    model({ uuid: 'a2', parent: 'u1' }, [says('yes')]),
    person({ uuid: 'r1', parent: 'a2' }, [returns('t1', 'late'), says('and this')]),
  ]);
  expect(lines).toEqual([
    'assistant: [t1]',
    't1 → late',
    'user: meanwhile',
    'assistant: yes',
    'user: and this',
  ]);
  expect(counts.reordered).toBe(1);
});

test('other contents of a record beside the path begin a branch when its result is used', () => {
  const { lines, plan } = read([
    asks('t1'),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1'), says('aside')]),
    model({ uuid: 'a2', parent: 'a1' }, [says('done')]),
  ]);
  expect(lines).toEqual(['assistant: [t1]', 't1 → ok', 'assistant: done']);
  expect(outline(plan.conversations[1]?.spine ?? [])).toEqual(['assistant: [t1]', 't1 → ok', 'user: aside']);
});

test('a call id that appears twice is one call', () => {
  const { lines } = read([
    asks('t1'),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1')]),
    model({ uuid: 'a2', parent: 'r1' }, [says('again'), calls('t1')]),
    model({ uuid: 'a3', parent: 'a2' }, [calls('t2'), calls('t2', 'Other')]),
  ]);
  expect(lines).toEqual([
    'assistant: [t1]',
    't1 → ok',
    'assistant: again',
    'x-claude-code a2',
    'assistant: [t2]',
    't2 → interrupted',
    'x-claude-code a3',
  ]);
});

test('a result names its subagent, and is marked as a failure although its output is files', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'QUJD' } };
  const { drafts } = read([
    asks('t1'),
    person({ uuid: 'r1', parent: 'a1' }, [returns('t1', [image], { is_error: true })], {
      toolUseResult: { status: 'completed', agentId: 'b7' },
    }),
  ]);
  expect(drafts[1]?.meta).toMatchObject({ source: 'import', agentId: 'b7', isError: true, uuid: 'r1' });
});

test('names that mean something to JavaScript are plain names', () => {
  const line = `{"type":"assistant","uuid":"__proto__","parentUuid":null,"message":{"id":"__proto__","content":[{"type":"tool_use","id":"constructor","name":"__proto__","input":{"__proto__":{"x":1}}}]}}\n`;
  const { drafts } = imported(line);
  expect(faults(drafts)).toEqual([]);
  expect(outline(drafts)).toEqual(['assistant: [constructor]', 'constructor → interrupted']);
  expect(JSON.stringify(drafts[0]?.payload)).toContain('"input":{"__proto__":{"x":1}}');
});
