import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { homeToComplete } from '../support/home-to-complete.ts';
import { tapeProgram } from '../support/programs.ts';
import { onTerminal, type Step, skipsTerminals } from '../support/pty.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Types into a shell that has the completion, and returns what it printed. */
async function typed(shell: string, steps: readonly Step[]): Promise<string> {
  using home = homeToComplete();
  using dir = tempDir();
  mkdirSync(dir.file('bin'));
  writeFileSync(dir.file('bin/tape'), `#!/bin/sh\nexec "${process.execPath}" "${tapeProgram}" "$@"\n`, {
    mode: 0o755,
  });
  const { stdout } = await home.here(['completion', shell]);
  writeFileSync(dir.file('script'), stdout);
  const start = shell === 'zsh' ? 'autoload -U compinit; compinit -D -u; ' : '';
  const { output } = await onTerminal({
    argv: shell === 'zsh' ? ['zsh', '-f', '-i'] : ['bash', '--norc', '--noprofile', '-i'],
    env: {
      PATH: `${dir.file('bin')}:${process.env.PATH}`,
      HOME: dir.path,
      TAPE_HOME: home.path,
      TAPE_TRUST_HOME: '1',
      PS1: '> ',
    },
    cwd: dir.path,
    columns: 160,
    steps: [
      { until: '> ' },
      { type: `${start}source ./script; echo rea''dy\n` },
      { until: 'ready' },
      ...steps,
      { type: 'exit\n' },
    ],
  });
  return output;
}

const line = (text: string, expected: string): readonly Step[] => [
  { type: `${text}\t` },
  { until: expected },
  { type: '\u0015' },
];

for (const shell of ['bash', 'zsh']) {
  const has = existsSync(`/usr/bin/${shell}`) || existsSync(`/bin/${shell}`);
  const isSkipped = !has || skipsTerminals(`completion in ${shell}`);
  test.skipIf(isSkipped)(`${shell} completes verbs, sessions and anchors (needs ${shell})`, async () => {
    await typed(shell, [
      ...line('tape sess', 'tape sessions'),
      ...line('tape log release-', 'tape log release-notes'),
      ...line('tape show release@rea', 'tape show release@ready'),
      ...line('tape log dm:sl', 'tape log dm:slack:u1'),
      ...line('tape help exit', 'tape help exit-codes'),
      ...line('tape log release --onel', 'tape log release --oneline'),
      ...line('tape --home $TAPE_HOME log dm:sl', 'tape --home $TAPE_HOME log dm:slack:u1'),
    ]);
  });
}

test.skipIf(!existsSync('/usr/bin/fish'))(
  'fish completes what tape knows, and files where it knows nothing (needs fish)',
  async () => {
    using home = homeToComplete();
    using dir = tempDir();
    mkdirSync(dir.file('bin'));
    writeFileSync(dir.file('bin/tape'), `#!/bin/sh\nexec "${process.execPath}" "${tapeProgram}" "$@"\n`, {
      mode: 0o755,
    });
    const env = {
      PATH: `${dir.file('bin')}:${process.env.PATH}`,
      HOME: dir.path,
      TAPE_HOME: home.path,
      TAPE_TRUST_HOME: '1',
    };
    await home.here(['completion', 'fish', '--install'], { env });
    writeFileSync(dir.file('relics.json'), '');
    const lines = ['tape log rel', 'tape show release@rea', 'tape log release --role us', 'tape import rel'];
    const asked = lines.map((text) => `complete -C '${text}'`).join('; echo; ');
    const { stdout, stderr } = spawnSync('fish', ['-c', asked], { encoding: 'utf8', env, cwd: dir.path });
    expect({
      stderr,
      offered: stdout
        .trimEnd()
        .split('\n\n')
        .map((text) => text.split('\n')),
    }).toEqual({
      stderr: '',
      offered: [['release', 'release-notes'], ['release@ready'], ['user'], ['relics.json']],
    });
  },
);
