import { stripVTControlCharacters } from 'node:util';
import { assistant, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonLines } from '../support/cli.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const text = [
  '## Cause',
  '',
  'It rounds **half up**, and *not* to `half-even`; see __both__ and snake_case_name, 2 * 3 * 4.',
  '',
  '- one `cent`',
  '1. two',
  '',
  '```ts',
  'const **cents** = `x`;',
  '```',
  '',
  'Unpaired ** and ` and * marks stay.',
].join('\n');

/** The same without marks, and with code indented. */
const read = text
  .replace('**half up**', 'half up')
  .replace('*not*', 'not')
  .replace('`half-even`', 'half-even')
  .replace('__both__', 'both')
  .replace('`cent`', 'cent')
  .replace('const **', '  const **');

const call = toolCall('c1', 'Write', { path: 'a.ts', content: 'one\ntwo\n', mode: { exclusive: true } });

function withMain(): TempHome {
  const home = tempHome();
  home.session(
    'main',
    user('Why?'),
    assistant([{ type: 'text', text }, call]),
    toolResult({ toolCallId: 'c1', toolName: 'Write' }, { type: 'error-text', value: 'first\nsecond' }),
  );
  return home;
}

const terminal = { isTerminal: true, columns: 120, env: { TERM: 'xterm-256color' } } as const;

test.each(['show main@3', 'view main'])(
  'a terminal with colours renders Markdown, and loses nothing: %s',
  async (line) => {
    using home = withMain();
    const { stdout } = await home.here(line.split(' '), terminal);
    expect(stripVTControlCharacters(stdout)).toContain(read);
    expect(stdout).toContain('\u001b[1m## Cause\u001b[22m\n');
    expect(stdout).toContain('\u001b[1mhalf up\u001b[22m');
    expect(stdout).toContain('\u001b[3mnot\u001b[23m');
    expect(stdout).toContain('\u001b[2mhalf-even\u001b[22m');
    expect(stdout).toContain('  \u001b[2mconst **cents** = `x`;\u001b[22m\n');
  },
);

test.each([[{ isTerminal: false }], [{ isTerminal: true, columns: 120, env: { NO_COLOR: '1' } }]])(
  'a pipe, and a terminal without colours, get the text as it is: %j',
  async (io) => {
    using home = withMain();
    for (const line of ['show main@3', 'view main'])
      expect((await home.here(line.split(' '), io)).stdout).toContain(text);
  },
);

test('a call has its arguments on lines of their own, and a result is indented', async () => {
  using home = withMain();
  const shown = `Write(
  path: a.ts
  content:
    one
    two
    
  mode: {"exclusive":true}
)
`;
  expect((await home.here(['show', 'main@3'])).stdout).toContain(shown);
  expect((await home.here(['view', 'main'])).stdout).toContain(shown);
  expect((await home.here(['show', 'main@4'])).stdout).toContain('Write → error\n  first\n  second\n');
});

test('a log renders answers on a terminal with colours, in lines that neither take nor leave a format', async () => {
  using home = tempHome();
  const answer = [
    'It rounds **half up, and then down, and up again, for as long as it takes to fill two lines** and `code`.',
    '```ts',
    'const **cents** = `x`;',
    '```',
  ].join('\n');
  home.session('main', user('Fix **it**.'), assistant(answer));
  const { stdout } = await home.here(['log', 'main', '--full'], { ...terminal, columns: 60 });
  expect(stdout).toContain('Fix **it**.');
  const lines = stdout.split('\n');
  const bold = lines.filter((line) => line.includes('\u001b[1m'));
  expect(bold.length).toBeGreaterThanOrEqual(2);
  for (const line of lines) {
    const count = (format: string) => line.split(`\u001b[${format}m`).length - 1;
    expect([line, count('1') + count('2')]).toEqual([line, count('22')]);
    expect(stripVTControlCharacters(line).length).toBeLessThanOrEqual(60);
  }
  const shown = stripVTControlCharacters(stdout).replace(/ +\d{4}-\S+Z$/gm, '');
  expect(shown.replace(/\s+/g, ' ')).toContain(
    answer
      .replace(/\*\*(half.*lines)\*\*/, '$1')
      .replace('`code`', 'code')
      .replace(/\s+/g, ' '),
  );
  const plain = await home.here(['log', 'main'], { isTerminal: true, env: { NO_COLOR: '1' }, columns: 200 });
  expect(plain.stdout).toContain('**half up');
});

test('show cuts a long argument of a call on a terminal, and says how to see all of it', async () => {
  using home = tempHome();
  const lines = Array.from({ length: 60 }, (_, i) => `line ${i}`).join('\n');
  const input = { path: 'a.ts', content: lines, data: 'x'.repeat(50_000), near: 'y'.repeat(2_010) };
  home.session('main', assistant([toolCall('c1', 'Write', input)]));
  const terminal = { isTerminal: true, columns: 100_000, env: { NO_COLOR: '1' } };
  const whole = (await home.here(['show', 'main@2'])).stdout;
  expect(whole).toContain('line 59');
  expect(whole).toContain('x'.repeat(50_000));
  const { stdout } = await home.here(['show', 'main@2'], terminal);
  const left = lines.length - lines.indexOf('\nline 24');
  expect(stdout).toContain(`    line 23\n    … ${left} more characters (tape show main@2 --full)\n`);
  expect(stdout).toContain(
    `    ${'x'.repeat(2_000)}\n    … 48000 more characters (tape show main@2 --full)\n`,
  );
  expect(stdout).toContain('y'.repeat(2_010));
  const full = await home.here(['show', 'main@2', '--full'], terminal);
  expect(full.stdout).toBe(whole);
});

test('a large output ends with the command that shows all of it', async () => {
  using home = tempHome();
  const large = { toolCallId: 'c1', toolName: 'Read' };
  home.session('main', assistant([toolCall('c1', 'Read', {})]), toolResult(large, 'x'.repeat(400_000)));
  const { stdout } = await home.here(['show', 'main@3']);
  expect(stdout).toMatch(/ {2}… 400000 bytes in total: tape show main@3 --output\n$/);
  expect(stdout.length).toBeLessThan(20_000);
  const log = (await home.here(['log', 'main'])).stdout;
  expect(log).toContain('└ xxx');
  expect(log).toContain(' … (400000 bytes)');
});

test('hostile Markdown is rendered in time, and no text of a tape steers the terminal', async () => {
  using home = tempHome();
  const marks = ['**a ', '` ', '*b ', '__c ', '_', '~~~', '# '].map((mark) => mark.repeat(40_000));
  home.session('main', ...marks.map((mark) => user(mark)), user('**\u001b[2J** `\u009b2J` # \u202e'));
  const { stdout } = await home.here(['view', 'main'], terminal);
  expect(stdout).toContain('\\u{1b}[2J');
  expect(stdout).not.toContain('\u001b[2J');
  expect(stdout).not.toContain('\u009b');
});

test('diff shows what a merge brought, and colours the sides', async () => {
  using home = tempHome();
  home.session('main', user('Plan.'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'other' });
    store.lineage.fork('main', { name: 'child' });
    store.entries.append('child', [assistant('All 212 tests pass.')]);
    store.lineage.merge('child');
  }
  const { stdout } = await home.here(['diff', 'main', 'other']);
  expect(stdout).toContain('<    4  merge      All 212 tests pass.\n');
  const { a } = json<{ a: { recent: unknown } }>(await home.here(['diff', 'main', 'other', '--json']));
  expect(a.recent).toEqual([{ seq: 4, from: 'merge', text: 'All 212 tests pass.' }]);
  expect((await home.here(['diff', 'main', 'other'], terminal)).stdout).toContain('\u001b[31m<    4  merge');
  expect(jsonLines(await home.here(['log', 'main', '--jsonl']))).toHaveLength(4);
});

/** Two forks with answers that have most lines in common. */
function withAnswers(): TempHome {
  const home = tempHome();
  home.session('main', user('Why?'));
  using store = home.open();
  const answer = (way: string, mark: string) =>
    `## Cause\n\n${mark}Rounding${mark} goes **${way}**, and this line has more words than a narrow terminal has room for.\n\n\`\`\`\nround(${way})\n\`\`\``;
  for (const [name, way, mark] of [
    ['one', 'up', '*'],
    ['two', 'down', '*'],
    ['three', 'up', '_'],
  ] as const) {
    store.lineage.fork('main', { name });
    store.entries.append(name, [assistant(answer(way, mark))]);
  }
  return home;
}

test('diff renders Markdown as show does, and a line that continues another says so', async () => {
  using home = withAnswers();
  const shown = async (columns: number) =>
    (await home.here(['diff', 'one', 'two'], { isTerminal: true, columns })).stdout.split('\n');
  const styled = await shown(50);
  expect(styled).toContain(' \u001b[1m## Cause\u001b[22m');
  expect(styled.some((row) => row.includes('\u001b[1mup\u001b[22m'))).toBe(true);
  expect(styled).toContain('\u001b[31m-  \u001b[2mround(up)\u001b[22m\u001b[39m');
  expect(styled.map((row) => stripVTControlCharacters(row)).slice(-12)).toEqual([
    ' ## Cause',
    ' ',
    '-Rounding goes up, and this line has more words',
    '↳than a narrow terminal has room for.',
    '+Rounding goes down, and this line has more words',
    '↳than a narrow terminal has room for.',
    ' ',
    ' ```',
    '-  round(up)',
    '+  round(down)',
    ' ```',
    '',
  ]);
  // A pipe gets the patch as it is.
  const { stdout } = await home.here(['diff', 'one', 'two']);
  expect(stdout).toContain(
    '-*Rounding* goes **up**, and this line has more words than a narrow terminal has room',
  );
  expect(stdout).toContain('\n-round(up)\n+round(down)\n');
});

test('lines that differ in their marks alone keep them in a diff', async () => {
  using home = withAnswers();
  const { stdout } = await home.here(['diff', 'one', 'three'], { isTerminal: true, columns: 200 });
  const changed = stripVTControlCharacters(stdout)
    .split('\n')
    .filter((row) => /^[-+][^-+]/.test(row));
  expect(changed.map((row) => row.slice(0, 22))).toEqual([
    '-*Rounding* goes **up*',
    '+_Rounding_ goes **up*',
  ]);
});

test('an output that an imported program kept in a file is shown as the model got it, and in full on request', async () => {
  using home = tempHome();
  const begun = '<persisted-output>\nFull output saved to: /p/tool-results/b1.txt\n\n1\n</persisted-output>';
  const meta = { source: 'import', savedAs: 'b1.txt' };
  const result = toolResult({ toolCallId: 'c1', toolName: 'Read' }, { type: 'text', value: begun }, meta);
  home.session('main', assistant([toolCall('c1', 'Read', {})]), result);
  const page = (await home.here(['show', 'main@3'])).stdout;
  expect(page).toContain('  <persisted-output>\n');
  expect(page).toMatch(/ {2}… in full: tape show main@3 --output\n$/);
  const without = await home.here(['show', 'main@3', '--output']);
  expect(without.stdout).toContain('<persisted-output>');
  expect(without.stderr).toContain('b1.txt with the whole output was not found by an import');

  {
    using store = home.open();
    const payload = { type: 'tool-result-file', file: 'b1.txt', content: Buffer.from('1\n2\n3\n') };
    store.entries.append('main', [{ kind: 'x-claude-code', payload }]);
    store.lineage.fork('main', { name: 'kid' });
  }
  for (const name of ['main', 'kid'])
    expect((await home.here(['show', `${name}@3`, '--output', '--raw'])).stdout).toBe('1\n2\n3\n');
  expect((await home.here(['show', 'main@3', '--output', '--bytes', '2..2', '--raw'])).stdout).toBe('2');
});
