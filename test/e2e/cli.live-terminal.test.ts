import { writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { anchor, user } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tapeProgram } from '../support/programs.ts';
import { onTerminal, type Step, skipsTerminals } from '../support/pty.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const esc = '\u001b';

/** Runs lines of a shell on a terminal, in which `tape` is the command. */
async function shell(
  home: TempHome,
  line: string,
  { steps = [], columns = 80, rows = 24 }: { steps?: readonly Step[]; columns?: number; rows?: number } = {},
): Promise<{ output: string; code: number }> {
  const tape = `tape() { "${process.execPath}" "${tapeProgram}" "$@"; }`;
  return await onTerminal({
    argv: ['bash', '-c', `${tape}\n${line}`],
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home.path,
      TAPE_HOME: home.path,
      TAPE_TRUST_HOME: '1',
      TAPE_PAGER: 'cat',
    },
    columns,
    rows,
    steps,
  });
}

/** The longest line between two marks of an output. */
function widest(output: string, from: string, to: string): number {
  const part = stripVTControlCharacters(output.slice(output.indexOf(from) + from.length, output.indexOf(to)));
  return Math.max(...part.split(/\r?\n/).map((line) => line.trimEnd().length));
}

/** Fails where a command leaves a terminal with a colour, a hidden cursor, or another screen. */
function expectCleanEnd(output: string): void {
  const formats = [...output.matchAll(new RegExp(`${esc}\\[(\\d+)m`, 'g'))].map(([, code]) => Number(code));
  const open = formats.reduce((on, code) => {
    if (code === 0) return new Set<string>();
    const kind =
      code === 39 || (code >= 30 && code < 38) || code >= 90
        ? 'colour'
        : code === 3 || code === 23
          ? 'italic'
          : 'weight';
    const next = new Set(on);
    if ([22, 23, 39].includes(code)) next.delete(kind);
    else next.add(kind);
    return next;
  }, new Set<string>());
  expect([...open]).toEqual([]);
  for (const mode of ['25', '1049', '2004']) {
    const [set, reset] = mode === '25' ? ['l', 'h'] : ['h', 'l'];
    expect(output.lastIndexOf(`${esc}[?${mode}${set}`)).toBeLessThanOrEqual(
      output.lastIndexOf(`${esc}[?${mode}${reset}`),
    );
  }
}

const long = Array.from({ length: 30 }, (_, i) => `word${i}`).join(' ');

/** A home with a model that answers after a minute. */
function withSlowModel(): { readonly home: TempHome; readonly model: string } {
  const home = tempHome();
  home.session('main', user('Earlier'), anchor('task-start'));
  writeFileSync(home.file('answers.json'), JSON.stringify([{ text: 'Late.', delayMs: 60_000 }]));
  return { home, model: `script:${home.file('answers.json')}` };
}

describe.skipIf(skipsTerminals('live terminals'))('on a terminal', () => {
  test('what is printed after a resize fits the new width', async () => {
    using home = tempHome();
    home.session('main', user(long), user(long));
    const { output, code } = await shell(
      home,
      'echo A; tape log main; echo B; read x; tape log main; echo C; read x; tape log main; echo D',
      {
        steps: [
          { until: 'B\r\n' },
          { rows: 24, columns: 120 },
          { type: '\n' },
          { until: 'C\r\n' },
          { rows: 24, columns: 50 },
          { type: '\n' },
        ],
      },
    );
    expect(code).toBe(0);
    const widths = [
      widest(output, 'A\r\n', 'B\r\n'),
      widest(output, 'B\r\n', 'C\r\n'),
      widest(output, 'C\r\n', 'D\r\n'),
    ];
    expect(widths[0]).toBeGreaterThan(70);
    expect(widths[0]).toBeLessThanOrEqual(80);
    expect(widths[1]).toBeGreaterThan(100);
    expect(widths[1]).toBeLessThanOrEqual(120);
    expect(widths[2]).toBeLessThanOrEqual(50);
  });

  test('a log that is followed fits the width that its terminal has by then, and Ctrl-C ends it', async () => {
    using home = tempHome();
    home.session('main', user('Earlier'));
    writeFileSync(home.file('line.jsonl'), `${JSON.stringify({ role: 'user', content: `later ${long}` })}\n`);
    const { output, code } = await shell(
      home,
      '(read x </dev/tty; sleep 0.3; tape append main --quiet <"$TAPE_HOME/line.jsonl") & tape log main --follow --full',
      {
        steps: [
          { until: 'Earlier' },
          { rows: 24, columns: 50 },
          { type: '\n' },
          { until: 'word29' },
          { type: '\u0003' },
        ],
      },
    );
    expect(code).toBe(130);
    const later = stripVTControlCharacters(output.slice(output.indexOf('later')));
    expect(Math.max(...later.split(/\r?\n/).map((line) => line.trimEnd().length))).toBeLessThanOrEqual(50);
    expectCleanEnd(output);
  });

  test('less fills a window that became larger, and ends the command with exit code 0', async () => {
    using home = tempHome();
    home.session('main', ...Array.from({ length: 200 }, (_, i) => user(`line ${i}.`)));
    const { output, code } = await shell(home, 'TAPE_PAGER="less -FRX" tape log main --oneline', {
      rows: 10,
      steps: [
        { until: 'line 8.' },
        { until: ':' },
        { rows: 40, columns: 80 },
        // less looks at the size again with the next key, if the signal came in the midst of its own work.
        { type: 'r' },
        { until: 'line 25.' },
        { type: 'q' },
      ],
    });
    expect(code).toBe(0);
    expect(output).not.toContain('line 199.');
    expectCleanEnd(output);
  });

  test('Ctrl-C in a run ends it with exit code 130, and the tape says so', async () => {
    const { home, model } = withSlowModel();
    using _ = home;
    const busy = 'until tape status main | grep -q busy; do sleep 0.1; done; echo It runs';
    const { output, code } = await shell(home, `(${busy}) & tape run main Go --model ${model}`, {
      steps: [{ until: 'It runs' }, { type: '\u0003' }],
    });
    expect(code).toBe(130);
    expect(output).not.toMatch(/at .*\.js:\d+/);
    expectCleanEnd(output);
    expect(json(await home.here(['status', 'main', '--json']))).toMatchObject([{ state: 'idle' }]);
    expect((await home.here(['log', 'main', '--all', '--oneline'])).stdout).toContain('aborted: ');
    expect(json(await home.here(['verify', '--json']))).toMatchObject({ ok: true });
  });

  test('Ctrl-C in a delegation leaves no child running and no drawing half done', async () => {
    const { home, model } = withSlowModel();
    using _ = home;
    const { output, code } = await shell(
      home,
      `tape delegate main --since task-start --model ${model} --task "Check the one" --task "Check the other"`,
      { steps: [{ until: 'running' }, { rows: 24, columns: 40 }, { type: '\u0003' }] },
    );
    expect(code).toBe(130);
    expectCleanEnd(output);
    const statuses = json<{ state: string }[]>(await home.here(['status', '--all', '--json']));
    expect(statuses.map(({ state }) => state).filter((state) => state === 'busy')).toEqual([]);
    expect(json(await home.here(['verify', '--json']))).toMatchObject({ ok: true });
    expect((await home.here(['recover', '--abort'])).code).toBe(0);
    expect(json(await home.here(['check', '--json']))).toMatchObject({ ok: true });
  });

  test('Ctrl-C while a log is piped ends the pipe, and leaves no escape', async () => {
    using home = tempHome();
    home.session('main', user('Earlier'));
    const { output, code } = await shell(home, 'set -o pipefail; tape log main --follow | cat', {
      steps: [{ until: 'Earlier' }, { type: '\u0003' }],
    });
    expect(code).toBe(130);
    expect(output).not.toContain(esc);
  });
});
