import { parseJsonLines, planClaudeCode, reconcile } from '@tapedeck/runtime/import';
import { user, view } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/provider/ask.ts';
import { modes } from '../support/provider/modes.ts';
import { saidIn } from '../support/said.ts';
import { openStore } from '../support/store.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const attached = (uuid: string, parent: string, attachment: { [field: string]: unknown }, more = {}) => ({
  ...{ type: 'attachment', uuid, parentUuid: parent, sessionId: 's-1', attachment },
  ...more,
});
const rendered = (text: string, more = {}) => ({
  rendered: [{ content: `<system-reminder>\n${text}\n</system-reminder>` }],
  ...more,
});

/** What the main session of some records says, and the records that it has beside that. */
function imported(...records: readonly unknown[]) {
  using store = openStore();
  const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
  const [main] = reconcile(store, planClaudeCode({ name: 's-1', lines }));
  const name = main?.session ?? '';
  const said = saidIn(view(store.views.entries(name), { target: { provider: 'anthropic' } }).messages, {
    plain: true,
  });
  const beside = [...store.entries.read(name, { kind: 'x-claude-code' })].map(({ payload }) => payload);
  return { said: said.map(({ role, items }) => `${role}: ${items.join()}`), beside };
}

test('what is attached comes before the prompt to which it is, and its record is kept', () => {
  const note = attached('x1', 'u1', { type: 'anything' }, rendered('One'));
  const other = attached('x2', 'x1', { type: 'hook_success' });
  const { said, beside } = imported(
    person({ uuid: 'u1' }, 'Hello'),
    note,
    other,
    model({ uuid: 'a1', parent: 'x2' }, [says('Yes.')]),
  );
  expect(said).toEqual(['user: One\nHello', 'assistant: Yes.']);
  expect(beside).toEqual([note, other]);
});

test('what is attached to the first prompt that a compaction kept is in view behind that, as the prompt is', () => {
  const preservedSegment = { headUuid: 'u2', anchorUuid: 's1', tailUuid: 'a2' };
  const { said } = imported(
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [says('Yes.')]),
    { ...person({ uuid: 'd1', parent: 'a1' }, ''), type: 'system', subtype: 'turn_duration' },
    person({ uuid: 'u2', parent: 'd1' }, 'Read it'),
    attached('x1', 'u2', { type: 'anything' }, rendered('The file')),
    model({ uuid: 'a2', parent: 'x1' }, [says('Read.')]),
    {
      ...{ type: 'system', subtype: 'compact_boundary', uuid: 'c1', parentUuid: null, sessionId: 's-1' },
      ...{ logicalParentUuid: 'a2', compactMetadata: { trigger: 'manual', preservedSegment } },
    },
    person({ uuid: 's1', parent: 'c1' }, 'summary', { isCompactSummary: true }),
    person({ uuid: 'u3', parent: 'a2' }, 'And now?'),
    model({ uuid: 'a3', parent: 'u3' }, [says('Done.')]),
  );
  const shown = said.join('\n');
  const order = ['summary', 'The file', 'Read it', 'Read.', 'And now?', 'Done.'].map((one) =>
    shown.indexOf(one),
  );
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(order).not.toContain(-1);
  expect(shown).not.toContain('Yes.');
});

test('a turn of the system stays behind its prompt, from the snapshot on that tells of it', () => {
  const turn = (i: number, parent: string, more = {}) => [
    person({ uuid: `u${i}`, parent }, `Prompt ${i}`),
    attached(`s${i}`, `u${i}`, { type: 'date' }, rendered(`System ${i}`, { renderedRole: 'system' })),
    attached(`f${i}`, `s${i}`, { type: 'file' }, rendered(`File ${i}`, { renderedRole: 'user' })),
    model({ uuid: `a${i}`, parent: `f${i}` }, [says(`Answer ${i}`)]),
    attached(`p${i}`, `a${i}`, { type: 'prompt_snapshot', tools: [], ...more }),
  ];
  const { said } = imported(...turn(1, '', { systemTurns: true }), ...turn(2, 'p1'), ...turn(3, 'p2'));
  expect(said).toEqual([
    'user: File 1\nPrompt 1\nSystem 1',
    'assistant: Answer 1',
    'user: File 2\nPrompt 2\nSystem 2',
    'assistant: Answer 2',
    'user: System 3\nFile 3\nPrompt 3',
    'assistant: Answer 3',
  ]);
});

test.each([
  ['a turn of its own is behind the results', { hostsOwnTurn: true }, 'Waited\nA hook'],
  ['none is a turn of the system with the others', {}, 'A hook\nWaited'],
])('a prompt that waited and has %s', (_, more, behind) => {
  const ofSystem = { renderedRole: 'system' };
  const { said } = imported(
    person({ uuid: 'u1' }, 'Read both'),
    attached('p1', 'u1', { type: 'prompt_snapshot', tools: [], systemTurns: true }),
    model({ uuid: 'a1', parent: 'p1', id: 'm' }, [calls('c1')]),
    model({ uuid: 'a2', parent: 'a1', id: 'm' }, [calls('c2')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('c1', 'one')]),
    attached('x1', 'r1', { type: 'hook_additional_context' }, rendered('A hook', ofSystem)),
    person({ uuid: 'r2', parent: 'a2' }, [returns('c2', 'two')]),
    attached('q1', 'r2', { type: 'queued_command', ...more }, rendered('Waited', ofSystem)),
    model({ uuid: 'a3', parent: 'q1' }, [says('Done.')]),
  );
  expect(said[2]).toBe(`user: result c1\none\nresult c2\ntwo\n${behind}`);
});

test('what is attached to one of several results follows all of them, on whichever branch it is', () => {
  const { said } = imported(
    person({ uuid: 'u1' }, 'Read both'),
    model({ uuid: 'a1', parent: 'u1', id: 'm' }, [calls('c1')]),
    model({ uuid: 'a2', parent: 'a1', id: 'm' }, [calls('c2')]),
    person({ uuid: 'r1', parent: 'a1' }, [returns('c1', 'one')]),
    attached('x1', 'r1', { type: 'hook_additional_context' }, rendered('It was read')),
    person({ uuid: 'r2', parent: 'a2' }, [returns('c2', 'two')]),
    model({ uuid: 'a3', parent: 'r2' }, [says('Done.')]),
  );
  expect(said[2]).toBe('user: result c1\none\nresult c2\ntwo\nIt was read');
});

test.each([
  ['queued_command', { prompt: 'And this' }, 'And this'],
  [
    'file',
    { content: { type: 'text', file: { filePath: '/a', content: 'x\ny', startLine: 4 } } },
    /"\/a".*\n4\tx\n5\ty$/s,
  ],
  [
    'file',
    { content: { type: 'image', file: { filePath: '/a.png', base64: 'iVBO', type: 'image/png' } } },
    /a\.png.*\nfile iVBO$/s,
  ],
  ['directory', { path: '/d', content: 'a\nb' }, 'Contents of /d:\na\nb'],
  ['edited_text_file', { filename: '/a', snippet: '1\tx' }, /^Note: \/a changed.*\n1\tx$/s],
  [
    'selected_lines_in_ide',
    { filename: '/a', lineStart: 1, lineEnd: 2, content: 'x' },
    /lines 1 to 2 from \/a:\nx$/,
  ],
  ['opened_file_in_ide', { filename: '/a' }, /opened the file \/a/],
  ['nested_memory', { content: { path: '/m', content: 'Be terse' } }, 'Contents of /m:\nBe terse'],
  ['skill_listing', { content: '- one' }, /skills are available.*\n- one$/s],
  ['critical_system_reminder', { content: 'Mind it' }, 'Mind it'],
  ['hook_success', { hookName: 'Start', hookEvent: 'SessionStart', content: 'Hi' }, 'Start hook success: Hi'],
  [
    'hook_additional_context',
    { hookName: 'Post', content: ['a', 'b'] },
    'Post hook additional context: a\nb',
  ],
  ['hook_stopped_continuation', { hookName: 'Stop', message: 'no' }, 'Stop hook stopped continuation: no'],
  ['date_change', { newDate: '2026-02-03' }, /now 2026-02-03\.$/],
])(
  '%s of a version that did not record what it rendered is rendered from its fields',
  (type, fields, words) => {
    const { said } = imported(person({ uuid: 'u1' }, 'Hello'), attached('x1', 'u1', { type, ...fields }));
    const [, shown = ''] = /^user: (.*)\nHello$/s.exec(said[0] ?? '') ?? [];
    expect(shown).toMatch(words instanceof RegExp ? words : new RegExp(`^${words}$`));
  },
);

test.each([
  { type: 'plan_mode' },
  { type: 'todo_reminder', content: [] },
  { type: 'hook_success', hookEvent: 'PostToolUse', content: 'Hi' },
  { type: 'file', content: { type: 'notebook', file: { cells: [] } } },
  { type: 'date_change' },
  { type: 7 },
])('of what no record has the words nothing is made up: %o', (attachment) => {
  const record = attached('x1', 'u1', attachment);
  const { said, beside } = imported(person({ uuid: 'u1' }, 'Hello'), record);
  expect(said).toEqual(['user: Hello']);
  expect(beside).toEqual([record]);
});

test('what a command of the program printed is sent with the next prompt', () => {
  const printed = {
    type: 'system',
    subtype: 'local_command',
    content: '<local-command-stdout>1</local-command-stdout>',
  };
  const { said } = imported(
    person({ uuid: 'u1' }, '<command-name>/cost</command-name>'),
    { uuid: 's1', parentUuid: 'u1', sessionId: 's-1', ...printed },
    person({ uuid: 'u2', parent: 's1' }, 'And now'),
  );
  expect(said).toEqual([`user: <command-name>/cost</command-name>\n${printed.content}\nAnd now`]);
});

test('what a command drew for the user alone is beside the conversation', () => {
  const ran = (uuid: string, parentUuid: string, content: string) => ({
    ...{ type: 'system', subtype: 'local_command', sessionId: 's-1', uuid, parentUuid, content },
  });
  const drawn = {
    ...ran('s2', 's1', '<local-command-stdout>\u001b[1mContext usage\u001b[22m ⛁ ⛁</local-command-stdout>'),
    isDisplayOnly: true,
  };
  const { said, beside } = imported(
    person({ uuid: 'u1' }, 'Hello'),
    model({ uuid: 'a1', parent: 'u1' }, [says('Hi')]),
    ran('s1', 'a1', '<command-name>/context</command-name>'),
    drawn,
    person({ uuid: 'u2', parent: 's2' }, '## Context Usage', { isMeta: true }),
    person({ uuid: 'u3', parent: 'u2' }, 'And now'),
  );
  expect(said.at(-1)).toBe('user: <command-name>/context</command-name>\n## Context Usage\nAnd now');
  expect(beside).toContainEqual(drawn);
});

describe.each(modes)('$name', (mode) => {
  test.each([
    [
      'tools are named like what every object of JavaScript has',
      ['constructor', '__proto__', 'hasOwnProperty'].flatMap((name, i) => [
        person({ uuid: `u${i}`, parent: i === 0 ? null : `r${i - 1}` }, `Call ${name}`),
        model({ uuid: `a${i}`, parent: `u${i}` }, [calls(`c${i}`, name)]),
        person({ uuid: `r${i}`, parent: `a${i}` }, [returns(`c${i}`)]),
      ]),
    ],
    [
      'files are videos',
      [
        person({ uuid: 'u1' }, [
          { type: 'text', text: 'Look' },
          { type: 'document', source: { type: 'base64', media_type: 'video/mp4', data: 'AAAA' } },
        ]),
      ],
    ],
  ])('accepts what an imported session has where %s', async (_, records) => {
    using store = openStore();
    const { records: lines } = parseJsonLines([Buffer.from(jsonl(records))]);
    reconcile(store, planClaudeCode({ name: 's-1', lines }));
    store.entries.append('s-1', [user('Go on.')]);
    expect(await ask(mode, store.views.entries('s-1'))).toMatchObject({ refused: undefined });
  });
});
