import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tapeProgram } from '../support/programs.ts';
import { onTerminal, type Step, skipsTerminals } from '../support/pty.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

interface Shown {
  readonly entries: number;
  readonly pager?: string;
  readonly steps?: readonly Step[];
}

/** What the terminal shows of `tape log` of a session. */
async function shown({ entries, pager, steps = [] }: Shown): Promise<{ output: string; code: number }> {
  using home = tempHome();
  home.session('main', ...Array.from({ length: entries }, (_, i) => user(`line ${i}`)));
  return await onTerminal({
    argv: [process.execPath, tapeProgram, 'log', 'main', '--oneline'],
    env: {
      PATH: process.env.PATH ?? '',
      TAPE_HOME: home.path,
      TAPE_TRUST_HOME: '1',
      ...(pager !== undefined && { TAPE_PAGER: pager }),
    },
    steps,
  });
}

const onATerminal = test.skipIf(skipsTerminals('the pager'));
const atFullSize = sized<(name: string, act: () => Promise<void>) => void>(
  () => {},
  onATerminal,
  onATerminal,
);

onATerminal('a pager shows output that is longer than the terminal', async () => {
  const { output, code } = await shown({ entries: 40, pager: 'sed s/line/shown/' });
  expect(output).toContain('shown 39');
  expect(output).not.toContain('line 39');
  expect(code).toBe(0);
});

atFullSize('output that fits the terminal needs no pager, and neither does TAPE_PAGER=cat', async () => {
  expect((await shown({ entries: 10, pager: 'false' })).output).toContain('line 9');
  expect((await shown({ entries: 40, pager: 'cat' })).output).toContain('line 39');
});

atFullSize('leaving less before the end of a long log ends the command with exit code 0', async () => {
  const { output, code } = await shown({
    entries: 20_000,
    pager: 'less -FRX',
    steps: [{ until: 'line 5' }, { type: 'q' }],
  });
  expect(output).not.toContain('line 19999');
  expect(code).toBe(0);
});

atFullSize('without a pager that starts, all is printed after one warning', async () => {
  const { output, code } = await shown({ entries: 40, pager: 'no-such-pager -x' });
  expect(output).toMatch(/^Warning: the pager 'no-such-pager -x' does not start[^\n]*\n/);
  expect(output.match(/no-such-pager/g)).toHaveLength(1);
  for (const line of ['line 0', 'line 39']) expect(output).toContain(line);
  expect(code).toBe(0);
});

atFullSize('neither is anything lost where a shell cannot find the pager', async () => {
  const { output, code } = await shown({ entries: 3_000, pager: 'MODE=x no-such-pager' });
  expect(output).toContain("Warning: the pager 'MODE=x no-such-pager' does not start");
  expect(output.match(/\bline \d+/g)).toHaveLength(3_000);
  expect(code).toBe(0);
});

atFullSize('Ctrl-C belongs to the pager', async () => {
  const { code } = await shown({
    entries: 2000,
    pager: 'less -FRX',
    // At its prompt less waits for a key; r draws the screen again.
    steps: [
      { until: 'line 20' },
      { until: ':' },
      { type: '\u0003' },
      { type: 'r' },
      { until: 'line 5' },
      { type: 'q' },
    ],
  });
  expect(code).toBe(0);
});
