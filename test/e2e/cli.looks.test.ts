import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { fixedClock } from '../support/clock.ts';
import { type TerminalHome, terminalHome } from '../support/terminal-home.ts';

/** Whether to write the looks anew instead of comparing them. */
const updating = process.env.UPDATE_LOOKS === '1';

/** What a user sees, by the file that has it. */
const looks: Readonly<Record<string, readonly string[]>> = {
  help: ['--help', 'help log'],
  overview: ['overview'],
  sessions: ['sessions', 'sessions --tree', 'children release', 'children main'],
  log: ['log main', 'log shop', 'log release', 'log shop --oneline'],
  graph: ['graph', 'graph main', 'log release --graph', 'lineage main'],
  status: ['status', 'status main'],
  check: ['check'],
  usage: ['usage', 'usage main --tree'],
};

let home: TerminalHome;

beforeAll(async () => {
  // Everything happens at once, so that what runs at the same time has the same order each time.
  vi.spyOn(Date, 'now').mockImplementation(fixedClock().now);
  home = await terminalHome();
});

afterAll(() => {
  home[Symbol.dispose]();
  vi.restoreAllMocks();
});

/** What a terminal is sent, with its escapes in a form that a reader of a difference sees. */
async function lookOf(lines: readonly string[]): Promise<string> {
  const parts: string[] = [];
  for (const color of [false, true])
    for (const columns of [80, 120])
      for (const line of lines) {
        const expected = line === 'check' ? 1 : 0;
        const shown = (await home.look(line, { columns, color, expected })).replaceAll('\u001b', '\\e');
        parts.push(`═══ tape ${line} · ${columns} columns${color ? ' · colours' : ''}\n${shown}`);
      }
  return parts.join('\n');
}

test.each(Object.entries(looks))('%s looks as it did', async (name, lines) => {
  const file = new URL(`looks/${name}.txt`, import.meta.url);
  const look = await lookOf(lines);
  if (updating) writeFileSync(file, look);
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  expect(look, 'changed: look at it, then write it with UPDATE_LOOKS=1').toBe(before);
});
