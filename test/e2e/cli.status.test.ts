import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { anchor } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonLines, startTape } from '../support/cli.ts';
import { atFullSize } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

function slowScript(home: TempHome): string {
  writeFileSync(home.file('slow.json'), JSON.stringify([{ text: 'slow', delayMs: 60_000 }]));
  return `script:${home.file('slow.json')}`;
}

interface Shown {
  readonly session: string;
  readonly state: string;
  readonly phase?: string;
}

test.runIf(atFullSize)(
  'status shows another process which process runs what, in which phase, and what waits',
  async () => {
    using home = tempHome();
    home.session('calm');
    const running = startTape(['run', 'main', 'Go', '--model', slowScript(home)], { home: home.path });
    await running.until('Created session main');
    let found: Shown[] = [];
    while (found[0]?.phase !== 'streaming') found = json(await home.tape(['status', '--json']));
    await home.tape(['send', 'main', 'later']);
    const { pid } = running.child;
    expect(json(await home.tape(['status', 'main', '--json']))).toEqual([
      {
        session: 'main',
        state: 'busy',
        phase: 'streaming',
        run: expect.stringMatching(/^[0-9A-Z]{26}$/),
        started_at: expect.stringMatching(/^\d{4}-.+Z$/),
        lifecycle: 'active',
        queued: 1,
        waiting: [],
        owner: { id: expect.any(String), pid, host: expect.any(String) },
      },
    ]);
    expect((await home.tape(['status'])).stdout).toBe(
      `main  busy, streaming  lifecycle active  1 queued  process ${pid}\n`,
    );
    expect(await home.tape(['doctor'])).toMatchObject({ code: 0 });
    running.child.kill('SIGKILL');
    await running.done;
    // A dead process runs nothing, whatever it left behind; its run has no end.
    expect((await home.tape(['status'])).stdout).toBe(
      'main  interrupted  lifecycle active  1 queued  continue it with: tape recover main\n',
    );
    expect(json(await home.tape(['sessions', '--json']))).toMatchObject([
      { session: 'main', interrupted: true },
      { session: 'calm' },
    ]);
    expect((await home.tape(['sessions'])).stdout).toMatch(/^main\tsession\tinterrupted\t/);
    expect((await home.tape(['status', '--all', '--quiet'])).stdout).toBe('main\ncalm\n');
  },
);

test('status reports no active runs, no home, and no session', async () => {
  using home = tempHome();
  const missing = { cwd: home.path, env: { TAPE_HOME: home.file('none') } };
  expect(await home.here(['status', '--json'], missing)).toMatchObject({ code: 3, stdout: '' });
  expect(await home.here(['status', 'main'], missing)).toMatchObject({ code: 3 });
  expect(existsSync(home.file('none'))).toBe(false);
  expect(await home.here(['status', '--json'])).toMatchObject({ code: 0, stdout: '[]\n' });
  home.session('main', anchor('here'));
  expect(await home.here(['status'])).toEqual({ code: 0, stdout: '', stderr: 'No active runs\n' });
  expect((await home.here(['status', 'mian'])).code).toBe(3);
});

test('status shows the task and the delivery of a child', async () => {
  using home = tempHome();
  home.session('main');
  using store = home.open();
  store.lineage.fork('main', { name: 'kid', deliver: 'merge' });
  store.sessions.update('kid', { task: 'completed' });
  store.lineage.merge('kid', { text: 'done' });
  const [kid] = json<object[]>(await home.here(['status', 'kid', '--json']));
  expect(kid).toMatchObject({ state: 'idle', lifecycle: 'active', task: 'completed', delivery: 'merged' });
});

test('status --watch prints a line for every change until Ctrl-C, and writes nothing', async () => {
  using home = tempHome();
  home.session('main');
  home.session('other');
  const watching = startTape(['status', 'main', '--watch', '--jsonl'], { home: home.path });
  await watching.until('"idle"');
  const model = slowScript(home);
  const running = startTape(['run', 'main', 'Go', '--model', model], { home: home.path });
  await watching.until('"streaming"');
  await home.tape(['send', 'main', 'later', '--mode', 'collect']);
  await watching.until('"queued":1');
  running.child.kill('SIGINT');
  await running.done;
  await watching.until('"state":"idle","lifecycle":"active","queued":1');
  const before = home.contents();
  watching.child.kill('SIGINT');
  const ended = await watching.done;
  expect(ended.code).toBe(130);
  expect(home.contents()).toEqual(before);
  const states = jsonLines<Shown & { queued: number }>(ended).map(
    ({ session, state }) => `${session} ${state}`,
  );
  expect(new Set(states)).toEqual(new Set(['main idle', 'main busy']));
  expect(states[0]).toBe('main idle');
  expect(states.at(-1)).toBe('main idle');
});

test.runIf(atFullSize)('status --watch notices a process that is killed', async () => {
  using home = tempHome();
  home.session('main');
  const watching = startTape(['status', '--watch'], { home: home.path });
  const running = startTape(['run', 'main', 'Go', '--model', slowScript(home)], { home: home.path });
  await watching.until('main  busy, streaming');
  running.child.kill('SIGKILL');
  await running.done;
  await watching.until('main  interrupted');
  watching.child.kill('SIGINT');
  expect((await watching.done).code).toBe(130);
});

test('doctor accepts the file of active runs in a home, and not its neighbours', async () => {
  using home = tempHome();
  home.session('main');
  const running = startTape(['run', 'main', 'Go', '--model', slowScript(home)], { home: home.path });
  while (!existsSync(home.file('run/sessions.json'))) await sleep(5);
  running.child.kill('SIGINT');
  await running.done;
  writeFileSync(home.file('run/notes.txt'), 'mine', { mode: 0o644 });
  symlinkSync('/dev/null', home.file('run/sessions.json.0123456789ab.part'));
  const { findings } = json<{ findings: { code: string; message: string }[] }>(
    await home.here(['doctor', '--json']),
  );
  const strays = findings.filter(({ message }) => message.includes('/run/')).map(({ code }) => code);
  expect(strays).toEqual(['unknown-file', 'unknown-file']);
});
