import { describe, expect, test } from 'vitest';
import { calls, model, outline, person, read, returns, says } from '../support/transcript.ts';

const progress = (uuid: string, parent: string, more = {}) => ({
  type: 'progress',
  uuid,
  parentUuid: parent,
  ...more,
});

describe('the path', () => {
  test('leads to the last record; an edited prompt begins another conversation', () => {
    const { lines, counts, plan } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [says('1')]),
      person({ uuid: 'u2', parent: 'a1' }, 'two'),
      model({ uuid: 'a2', parent: 'u2' }, [says('2')]),
      person({ uuid: 'u3', parent: 'a1' }, 'two, better'),
      model({ uuid: 'a3', parent: 'u3' }, [says('3')]),
    ]);
    expect(lines).toEqual(['user: one', 'assistant: 1', 'user: two, better', 'assistant: 3']);
    expect(outline(plan.conversations[1]?.spine ?? []).slice(2)).toEqual(['user: two', 'assistant: 2']);
    expect(counts).toMatchObject({ records: 6, messages: 6, offPath: 0, dangling: 0 });
  });

  test('runs through progress records, and does not end with one', () => {
    const { lines, counts } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [calls('t1')]),
      progress('p1', 'a1'),
      person({ uuid: 'r1', parent: 'p1' }, [returns('t1')]),
      model({ uuid: 'a2', parent: 'r1' }, [says('done')]),
      progress('p2', 'a2'),
    ]);
    expect(lines).toEqual([
      'user: one',
      'assistant: [t1]',
      't1 → ok',
      'x-claude-code p1',
      'assistant: done',
      'x-claude-code p2',
    ]);
    expect(counts.offPath).toBe(2);
  });

  test('leaves subagents inside the file to conversations of their own', () => {
    const { lines, session, plan } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [says('1')]),
      person({ uuid: 's1' }, 'a task', { isSidechain: true, agentId: 'x' }),
      model({ uuid: 's2', parent: 's1' }, [calls('t9')], { isSidechain: true, agentId: 'x' }),
    ]);
    expect(lines).toEqual(['user: one', 'assistant: 1']);
    expect(plan.conversations.map(({ kind, name }) => [kind, name])).toEqual([
      ['main', 's-1'],
      ['subagent', 'agent-x'],
    ]);
    expect(session).toBe('s-1');
  });

  test('is the sidechain itself in the file of a subagent, which is a separate session', () => {
    const side = { isSidechain: true, agentId: 'b7' };
    const { lines, session } = read([
      person({ uuid: 's1' }, 'a task', side),
      model({ uuid: 's2', parent: 's1' }, [calls('t1')], side),
      person({ uuid: 's3', parent: 's2' }, [returns('t1')], side),
    ]);
    expect(lines).toEqual(['user: a task', 'assistant: [t1]', 't1 → ok']);
    expect(session).toBe('agent-b7');
  });

  test('bridges a parent that is missing from the file: a derived edge leads to the record before', () => {
    const { lines, counts, plan } = read([
      person({ uuid: 'u0' }, 'zero'),
      person({ uuid: 'u1', parent: 'gone' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [says('1')]),
    ]);
    expect(lines).toEqual(['user: zero', 'user: one', 'assistant: 1']);
    expect(counts.dangling).toBe(1);
    expect(plan.derived).toMatchObject([{ of: 'cc:u1', from: 'cc:u0', why: 'parent-missing' }]);
  });

  test('ends where its parents run in a circle', () => {
    const { lines, counts } = read([
      person({ uuid: 'u1', parent: 'a1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [says('1')]),
    ]);
    expect(lines).toEqual(['user: one', 'assistant: 1']);
    expect(counts.dangling).toBe(1);
    expect(read([person({ uuid: 'u1', parent: 'u1' }, 'me')]).lines).toEqual(['user: me']);
  });

  test('is the order of the file where records have no uuid', () => {
    const bare = (type: string, content: unknown) => ({ type, message: { content } });
    const { lines } = read([
      bare('user', 'one'),
      bare('assistant', [says('1'), calls('t1')]),
      bare('user', 'two'),
      bare('assistant', [says('2')]),
    ]);
    expect(lines).toEqual([
      'user: one',
      'assistant: 1 [t1]',
      't1 → interrupted',
      'user: two',
      'assistant: 2',
    ]);
  });

  test('contains the first of two records with one uuid; the other is kept', () => {
    const { lines, drafts } = read([
      person({ uuid: 'u1' }, 'one'),
      model({ uuid: 'a1', parent: 'u1' }, [says('1')]),
      person({ uuid: 'u1' }, 'one'),
    ]);
    expect(lines).toEqual(['user: one', 'assistant: 1', 'x-claude-code u1']);
    expect(drafts.map(({ key }) => key)).toEqual(['cc:u1', 'cc:a1', 'cc:line:3']);
  });
});

describe('a compaction', () => {
  const told = [person({ uuid: 'u1' }, 'one'), model({ uuid: 'a1', parent: 'u1' }, [calls('t1')])];
  const boundary = (more = {}) => ({
    type: 'system',
    subtype: 'compact_boundary',
    uuid: 'b1',
    parentUuid: null,
    timestamp: 'then',
    compactMetadata: { trigger: 'auto', preTokens: 1234 },
    ...more,
  });
  const summary = (parent: string | null) =>
    person({ uuid: 'c1', parent }, 'What happened.', {
      isCompactSummary: true,
      isVisibleInTranscriptOnly: true,
    });
  const next = (parent: string) => [person({ uuid: 'u2', parent }, 'two')];

  test.each([
    ['the record it names', boundary({ logicalParentUuid: 'a1' }), 0],
    [
      'the record before it, when the one it names is not in the file',
      boundary({ logicalParentUuid: 'x' }),
      1,
    ],
    ['the record before it, when it names none', boundary(), 0],
  ])('is one boundary with the summary, and follows %s', (_, record, dangling) => {
    const { lines, drafts, counts } = read([
      ...told,
      progress('p1', 'a1'),
      record,
      summary('b1'),
      ...next('c1'),
    ]);
    expect(lines.filter((line) => !line.startsWith('x-'))).toEqual([
      'user: one',
      'assistant: [t1]',
      't1 → interrupted',
      '# compact/1 What happened.',
      'user: two',
    ]);
    expect(drafts.find(({ mark }) => mark === 'boundary')).toMatchObject({
      kind: 'anchor',
      key: 'cc:b1',
      payload: { state: { summary: 'What happened.' } },
      meta: { source: 'import', trigger: 'auto', tokens_before: 1234, uuid: 'b1', timestamp: 'then' },
    });
    expect(counts).toMatchObject({ compactions: 1, messages: 3, repaired: 1, dangling });
  });

  test('without a summary is still a boundary', () => {
    const { drafts } = read([...told, boundary(), ...next('b1')]);
    expect(drafts.find(({ mark }) => mark === 'boundary')?.payload).toEqual({ state: {} });
  });

  test('of an older version is only a summary', () => {
    const { lines } = read([...told, summary(null), ...next('c1')]);
    expect(lines.slice(2)).toEqual(['t1 → interrupted', '# compact/1 What happened.', 'user: two']);
  });

  test('is numbered by its order on the path', () => {
    const again = boundary({ uuid: 'b2', logicalParentUuid: 'u2' });
    const { lines } = read([
      ...told,
      boundary(),
      summary('b1'),
      ...next('c1'),
      again,
      person({ uuid: 'u3', parent: 'b2' }, 'x'),
    ]);
    expect(lines.filter((line) => line.startsWith('#'))).toEqual([
      '# compact/1 What happened.',
      '# compact/2 -',
    ]);
  });
});

describe('records beside the path', () => {
  test('are kept whole, at their place in the file', () => {
    const snapshot = { type: 'file-history-snapshot', messageId: 'u1', snapshot: {} };
    const { drafts } = read([
      { type: 'summary', summary: 'Other', leafUuid: 'elsewhere' },
      person({ uuid: 'u1' }, 'one'),
      snapshot,
      { type: 'a-type-of-next-year', deep: { er: [1] } },
      model({ uuid: 'a1', parent: 'u1' }, [says('1')]),
      { type: 'system', subtype: 'turn_duration', uuid: 'y1', parentUuid: 'a1' },
      { type: 'attachment', uuid: 'y2', parentUuid: 'y1', attachment: {} },
    ]);
    expect(drafts.map(({ kind, key }) => [kind, key])).toEqual([
      ['x-claude-code', 'cc:line:1'],
      ['message', 'cc:u1'],
      ['x-claude-code', 'cc:line:3'],
      ['x-claude-code', 'cc:line:4'],
      ['message', 'cc:a1'],
      ['x-claude-code', 'cc:y1'],
      ['x-claude-code', 'cc:y2'],
    ]);
    expect(drafts[2]?.payload).toEqual(snapshot);
  });

  test('give the title: the user’s before a model’s before a summary of this file', () => {
    const one = person({ uuid: 'u1' }, 'one');
    const own = { type: 'summary', summary: 'Own', leafUuid: 'u1' };
    const ai = { type: 'ai-title', aiTitle: 'Model' };
    const foreign = { type: 'summary', summary: 'Other', leafUuid: 'elsewhere' };
    expect(read([one, foreign]).title).toBeUndefined();
    expect(read([one, own, foreign]).title).toBe('Own');
    expect(read([ai, one, own]).title).toBe('Model');
    expect(read([{ type: 'custom-title', customTitle: 'Mine' }, ai, one]).title).toBe('Mine');
  });

  test('that are too large for an entry are only named', () => {
    const blob = 'x'.repeat(17 * 1024 * 1024);
    const { drafts, counts } = read([
      person({ uuid: 'u1' }, 'one'),
      { type: 'attachment', uuid: 'y1', parentUuid: 'u1', attachment: { blob } },
    ]);
    expect(drafts[1]).toMatchObject({ payload: { type: 'attachment', uuid: 'y1' }, key: 'cc:y1' });
    expect(counts.skipped).toBe(1);
  });
});

test('the session is the last one that a record of the conversation names: a forked file begins with records of another', () => {
  const { session } = read([
    person({ uuid: 'u1' }, 'one', { sessionId: 'first' }),
    model({ uuid: 'a1', parent: 'u1' }, [says('1')], { sessionId: 'second' }),
    { type: 'mode', sessionId: 'third' },
  ]);
  expect(session).toBe('second');
});
