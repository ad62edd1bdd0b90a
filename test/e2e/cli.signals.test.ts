import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, startTape } from '../support/cli.ts';
import { tapeProgram } from '../support/programs.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const ends: readonly (readonly [NodeJS.Signals, number])[] = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
];

test.each(sized(ends.slice(1, 2), ends, ends))(
  '%s during a run ends the process with exit code %i, and the session continues',
  async (signal, code) => {
    using home = tempHome();
    home.session('main', user('Earlier'));
    const script = home.file('answers.json');
    writeFileSync(script, JSON.stringify([{ text: 'Late.', delayMs: 60_000 }]));
    const run = ['run', 'main', 'Go', '--model', `script:${script}`];
    const { child, done } = startTape(run, { home: home.path });
    child.stdin?.end();
    await expect.poll(() => home.contents().rows.entry ?? 0, { timeout: 30_000 }).toBeGreaterThan(2);
    child.kill(signal);
    const ended = await done;
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(json(await home.here(['verify', '--json']))).toMatchObject({ ok: true });
    writeFileSync(script, JSON.stringify([{ text: 'Done.' }, { text: 'Done.' }]));
    const next = await home.here(['run', 'main', 'Again', '--model', `script:${script}`]);
    expect(next).toMatchObject({ code: 0, stdout: 'Done.\n' });
    expect(json(await home.here(['check', '--json']))).toMatchObject({ ok: true });
  },
);

test('a reader that closes its end early is no failure', () => {
  using home = tempHome();
  home.session('main', ...Array.from({ length: 3_000 }, (_, i) => user(`message ${i} ${'x'.repeat(100)}`)));
  for (const form of ['', '--jsonl', '--json']) {
    const line = `"${process.execPath}" "${tapeProgram}" log main -n 5000 ${form} | head -c 10 > /dev/null; echo \${PIPESTATUS[0]}`;
    const { stdout, stderr } = spawnSync('bash', ['-c', line], {
      env: { PATH: process.env.PATH, HOME: '/nonexistent', TAPE_HOME: home.path, TAPE_TRUST_HOME: '1' },
      encoding: 'utf8',
    });
    expect([form, stdout, stderr]).toEqual([form, '0\n', '']);
  }
});
