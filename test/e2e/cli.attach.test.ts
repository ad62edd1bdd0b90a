import { expect, test } from 'vitest';
import { json, jsonLines, startTape } from '../support/cli.ts';
import { startProvider } from '../support/provider.ts';
import { sized } from '../support/size.ts';
import { tempHome } from '../support/temp-home.ts';

const words = Array.from({ length: sized(8, 20, 40) }, (_, i) => `word${i} `);
const model = 'openai-compatible/slow';

test('attach follows a run of another process from beginning to end, and leaving it stops nothing', async () => {
  // Long enough for two more processes to start, on a machine that is busy too.
  await using provider = await startProvider(async () => ({ text: words, pauseMs: 200 }));
  using home = tempHome();
  const options = { home: home.path, env: provider.env };
  const running = startTape(['run', 'main', 'Count', '--model', model], options);
  await running.until('word3 ');
  const leaving = startTape(['run', 'main', '--attach'], { home: home.path });
  const attached = startTape(['run', 'main', '--attach'], { home: home.path });
  await leaving.until('word');
  leaving.child.kill('SIGINT');
  expect((await leaving.done).code).toBe(130);
  const [told, seen] = [await running.done, await attached.done];
  expect(told).toMatchObject({ code: 0, stdout: `${words.join('')}\n` });
  expect(seen).toMatchObject({ code: 0, stdout: told.stdout });
  expect(provider.requests).toHaveLength(1);
});

test('attach after the run replays the last run, and refuses a session without one', async () => {
  await using provider = await startProvider(() => ({ text: 'Hello.' }));
  using home = tempHome();
  await home.tape(['run', 'main', 'Hi', '--model', model], { env: provider.env });
  expect(await home.tape(['run', 'main', '--attach'])).toMatchObject({ code: 0, stdout: 'Hello.\n' });
  await home.tape(['new', 'quiet']);
  expect(await home.tape(['run', 'quiet', '--attach'])).toMatchObject({ code: 3 });
  expect(await home.tape(['run', 'main', 'Hi', '--attach'])).toMatchObject({ code: 2 });
});

test('attach replays a killed run as far as it got', async () => {
  await using provider = await startProvider(async () => ({ text: words, pauseMs: 200 }));
  using home = tempHome();
  const running = startTape(['run', 'main', 'Count', '--model', model], {
    home: home.path,
    env: provider.env,
  });
  await running.until('word3 ');
  const attached = startTape(['run', 'main', '--attach'], { home: home.path });
  await attached.until('word');
  running.child.kill('SIGKILL');
  const { stdout, code } = await attached.done;
  expect(code).toBe(1);
  expect(json(await home.tape(['run', 'main', '--attach', '--json']))).toMatchObject({
    finish: 'interrupted',
  });
  expect(stdout.startsWith('word0 word1 word2 ')).toBe(true);
  expect(words.join('').startsWith(stdout.trimEnd())).toBe(true);
});

test('log --follow prints existing entries, then what any process writes, each once', async () => {
  using home = tempHome();
  await home.tape(['append', 'main'], { stdin: '{"role":"user","content":"one"}\n' });
  const following = startTape(['log', 'main', '--follow', '--jsonl'], { home: home.path });
  await following.until('one');
  await home.tape(['append', 'main'], { stdin: '{"role":"user","content":"two"}\n' });
  await following.until('two');
  await home.tape(['anchor', 'main', 'here']);
  await following.until('"here"');
  following.child.kill('SIGINT');
  const { code, stdout } = await following.done;
  expect(code).toBe(130);
  expect(jsonLines({ stdout, stderr: '', code: 0 }).map((line) => line.seq)).toEqual([1, 2, 3, 4]);
});

test('the entries of a run decide how it ended, whatever was written after it', async () => {
  await using provider = await startProvider(() => ({ status: 401, message: 'no such key' }));
  using home = tempHome();
  const failed = await home.tape(['run', 'main', 'Hi', '--model', model], { env: provider.env });
  expect(failed.code).toBe(1);
  await home.tape(['anchor', 'main', 'later']);
  const attached = await home.tape(['run', 'main', '--attach', '--json']);
  expect(attached.code).toBe(1);
  expect(json(attached)).toMatchObject({
    finish: 'error',
    error: { message: expect.stringContaining('no such key') },
  });
});
