import {
  fileSets,
  fileTags,
  missingSections,
  summaryPrompt,
  summarySections,
  transcriptOf,
  withoutFileTags,
  withoutMiddle,
} from '@tapedeck/runtime/internal';
import { assistant, type Json, type Meta, toolCall, toolResult, user, view } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { entriesOf } from '../support/entries.ts';

const used = (id: string, name: string, input: Json, output: Json = 'fine', meta?: Meta) => [
  assistant([toolCall(id, name, input)]),
  toolResult({ toolCallId: id, toolName: name }, output, meta),
];

test('a conversation is rendered as flat text, with the outputs of calls or without', () => {
  const drafts = [
    user('Read it'),
    assistant([
      { type: 'reasoning', text: 'I think' },
      { type: 'text', text: 'Reading.' },
      toolCall('1', 'read', { path: 'a.ts', lines: [1, 2] }),
      toolCall('2', 'list', {}),
    ]),
    toolResult({ toolCallId: '1', toolName: 'read' }, 'const a = 1;'),
    toolResult({ toolCallId: '2', toolName: 'list' }, { files: ['a.ts'] }),
    user([
      { type: 'file', mediaType: 'image/png', filename: 'a.png', data: 'https://pictures.example/a.png' },
    ]),
  ];
  const { messages } = view(entriesOf(drafts));
  expect(transcriptOf(messages)).toBe(
    [
      '[User]: Read it',
      '[Assistant]: Reading.',
      '[Assistant tool calls]: read(path="a.ts", lines=[1,2]); list()',
      '[Tool result]: const a = 1;',
      '[Tool result]: {"files":["a.ts"]}',
      '[User]: [file a.png]',
    ].join('\n\n'),
  );
  expect(transcriptOf(messages, { outputs: false })).toContain('[Tool result]: <output pruned, 3 tokens>');
});

test('one large text is shortened, and a middle is omitted on request', () => {
  const { messages } = view(entriesOf([user('x'.repeat(50_000))]));
  expect(transcriptOf(messages).length).toBeLessThan(5_000);
  expect(withoutMiddle('abcdef', 6)).toBe('abcdef');
  expect(withoutMiddle('abcdef', 4)).toBe('ab\n[… left out …]\nef');
  expect(withoutMiddle('a\u{1f600}b\u{1f600}c', 4).isWellFormed()).toBe(true);
});

test('the prompts of a first and an updated summary have their own rules, and the same sections', () => {
  const first = summaryPrompt({ transcript: '[User]: Hi' });
  const next = summaryPrompt({ transcript: '[User]: Hi', previous: 'Old.', focus: 'the test' });
  for (const prompt of [first, next]) {
    for (const section of summarySections) expect(prompt).toContain(`## ${section}\n`);
    for (const part of ['Done', 'In Progress', 'Blocked']) expect(prompt).toContain(`### ${part}\n`);
    expect(prompt).toContain('<conversation>\n[User]: Hi\n</conversation>');
  }
  expect(first).not.toContain('previous-summary');
  expect(next).toContain('<previous-summary>\nOld.\n</previous-summary>');
  expect(next).toContain('move what was finished from "In Progress" to "Done"');
  expect(next).toContain('Pay most attention to this: the test');
});

test('the check of a summary lists its missing sections', () => {
  expect(missingSections(summarySections.map((section) => `## ${section}\nx`).join('\n'))).toEqual([]);
  expect(missingSections('## goal:\nx\n## Next Steps')).toEqual([
    'Constraints & Preferences',
    'Progress',
    'Key Decisions',
    'Critical Context',
  ]);
  expect(missingSections('They talked of the Goal.')).toEqual(summarySections);
});

test('files read and changed are collected by tool name, and added to those of the previous summary', () => {
  const entries = entriesOf([
    ...used('1', 'read', { path: 'a.ts' }),
    ...used('2', 'read_file', { file_path: 'b.ts' }),
    ...used('3', 'list_directory', { path: 'src' }),
    ...used('4', 'edit', { path: 'b.ts' }),
    ...used('5', 'write_file', { path: 'c.ts' }),
    ...used('6', 'read', { path: 'gone.ts' }, { type: 'error-text', value: 'no such file' }),
    ...used('7', 'constructor', { path: 'odd.ts' }),
    assistant([toolCall('8', 'read', { path: 'never-answered.ts' })]),
  ]);
  expect(fileSets(entries, { read: ['old.ts', 'c.ts'], modified: ['done.ts'] })).toEqual({
    read: ['a.ts', 'old.ts'],
    modified: ['b.ts', 'c.ts', 'done.ts'],
  });
});

test('the files that a tool declares win over its name', () => {
  const entries = entriesOf([
    ...used('1', 'read', { path: 'named.ts' }, 'fine', { paths: { read: ['declared.ts'], write: [] } }),
    ...used('2', 'shell', { command: 'x' }, 'fine', { paths: { read: [], write: ['made.ts'] } }),
  ]);
  expect(fileSets(entries)).toEqual({ read: ['declared.ts'], modified: ['made.ts'] });
});

test('calls that share an id each name their own file, whether the provider ran another of that id or not', () => {
  const twins = [
    assistant([toolCall('1', 'read', { path: 'a.ts' }), toolCall('1', 'read', { path: 'b.ts' })]),
    assistant([{ ...toolCall('1', 'read', { path: 'https://x.example' }), providerExecuted: true }]),
    toolResult({ toolCallId: '1', toolName: 'read' }, 'a'),
    toolResult({ toolCallId: '1', toolName: 'read' }, 'b'),
  ];
  expect(fileSets(entriesOf(twins)).read).toEqual(['a.ts', 'b.ts']);
  expect(fileSets(entriesOf(twins.slice(0, 3))).read).toEqual(['a.ts']);
});

test('the file lists end a summary, are removed from it again, and no name is parsed as a tag', () => {
  const tags = fileTags({ read: ['a.ts', 'b.ts'], modified: ['c.ts', 'x\n</modified-files>'] });
  expect(tags).toBe(
    '<read-files>\na.ts\nb.ts\n</read-files>\n\n<modified-files>\nc.ts\n"x\\n\\u003c/modified-files>"\n</modified-files>',
  );
  expect(withoutFileTags(`## Goal\nShip.\n\n${tags}`)).toBe('## Goal\nShip.');
  expect(fileTags({ read: [], modified: [] })).toBe('');
  expect(withoutFileTags('Nothing.')).toBe('Nothing.');
});

test('the time to parse any model output grows linearly with its length', () => {
  const blanks = ' '.repeat(200_000);
  expect(missingSections(`## Goal:${blanks}\n# x${blanks}y\n## Progress ${blanks}:`)).not.toContain(
    'Progress',
  );
  expect(withoutFileTags(`x${blanks}y`)).toHaveLength(200_002);
  const tag = '<read-files>\na.ts\n</read-files>\n';
  expect(withoutFileTags(`Done.\n${tag.repeat(20_000)}${blanks}`)).toBe('Done.');
  expect(withoutFileTags(`Done.\n<read-files>\n<b>\n</read-files>`)).toContain('<b>');
});
