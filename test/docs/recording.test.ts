import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tapeProgram } from '../support/programs.ts';
import { onTerminal, skipsTerminals } from '../support/pty.ts';
import { tempDir } from '../support/temp-dir.ts';
import { page, root, updating } from './pages.ts';
import { type Scene, terminalSvg } from './terminal-svg.ts';

const file = join(root, 'docs/recording.svg');
const [columns, rows] = [108, 24];

/** What the recording shows, in the home of the demo. */
const commands = [
  ['sessions'],
  ['log', 'main', '-n', '5'],
  ['fork', 'main', '--as', 'idea', '--task', 'Try another order'],
  ['graph'],
];

/** Runs the command on a terminal, at one moment: two runs show the same. */
async function record(): Promise<readonly Scene[]> {
  using dir = tempDir();
  const at = Date.UTC(2026, 10, 21, 10);
  const tape = async (args: readonly string[], now: number) => {
    const { output, code } = await onTerminal({
      argv: [process.execPath, '--import', `data:text/javascript,Date.now=()=>${now}`, tapeProgram, ...args],
      env: {
        PATH: process.env.PATH ?? '',
        HOME: dir.path,
        TAPE_HOME: dir.file('home'),
        TAPE_TRUST_HOME: '1',
        TAPE_PAGER: 'cat',
      },
      rows,
      columns,
    });
    if (code !== 0) throw new Error(`tape ${args.join(' ')} failed: ${output}`);
    return output;
  };
  await tape(['demo', '--home', dir.file('home')], at);
  const scenes: Scene[] = [];
  for (const args of commands) {
    const typed = args.map((word) => (/\s/.test(word) ? `"${word}"` : word)).join(' ');
    scenes.push({ command: `tape ${typed}`, output: await tape(args, at + 2 * 3600 * 1000) });
  }
  return scenes;
}

test.skipIf(skipsTerminals('the recording'))(
  'the recording in the README is what the command shows',
  async () => {
    const svg = terminalSvg(await record(), {
      columns,
      rows,
      title: 'A recording of tape in a terminal',
      description: `Lists the sessions of the demo, shows the end of a log with two merged children, forks, and draws the graph: ${commands.map((args) => `tape ${args.join(' ')}`).join('; ')}.`,
    });
    if (updating) writeFileSync(file, svg);
    const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
    expect(before, 'stale: write it anew with pnpm docs:recording').toBe(svg);
    expect(Buffer.byteLength(svg)).toBeLessThan(60_000);
    expect(page('README.md')).toMatch(/!\[[^\]]{40,}\]\(docs\/recording\.svg\)/);
  },
);

test('the recording is an image that stands alone', () => {
  const svg = readFileSync(file, 'utf8');
  expect(svg).not.toMatch(/<script|<foreignObject|<image|@import|url\(|href=/i);
  expect(svg).toContain('prefers-color-scheme: dark');
  expect(svg).toContain('prefers-reduced-motion');
  expect(svg).toMatch(/<title[^>]*>.+<\/title>\n<desc/);
  expect(svg).not.toContain('\u001b');
});
