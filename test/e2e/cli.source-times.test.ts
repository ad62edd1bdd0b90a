import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

const record = (n: number, timestamp: string) => ({
  type: 'user',
  uuid: `u${n}`,
  parentUuid: n === 1 ? null : `u${n - 1}`,
  sessionId: 's-1',
  timestamp,
  message: { role: 'user', content: `message ${n}` },
});

test('log, show and sessions know when an imported entry happened, beside when it was recorded', async () => {
  using home = tempHome();
  const times = ['2025-03-01T09:00:00.000Z', '2025-03-02T10:30:00.000Z'];
  const file = home.file('session.jsonl');
  writeFileSync(file, times.map((time, i) => `${JSON.stringify(record(i + 1, time))}\n`).join(''));
  await home.here(['import', file, '--as', 'old']);
  await home.here(['append', 'new'], { stdin: '{"content":"Now."}\n' });
  const entries = json<{ at: string; source_at?: string }[]>(
    await home.here(['log', 'old', '--kind', 'message', '--json']),
  );
  expect(entries.map(({ source_at }) => source_at)).toEqual(times);
  for (const { at, source_at } of entries)
    expect(Date.parse(at)).toBeGreaterThan(Date.parse(source_at ?? ''));
  expect((await home.here(['show', 'old@4'])).stdout).toMatch(/2025-03-02T10:30:00.000Z, recorded 2/);
  const listed = json<{ session: string; last_message_at: string }[]>(
    await home.here(['sessions', '--json']),
  );
  expect(listed.map(({ session }) => session)).toEqual(['new', 'old']);
  expect(listed[1]?.last_message_at).toBe(times[1]);
  const names = async (...args: string[]) => (await home.here(['sessions', '--quiet', ...args])).stdout;
  expect(await names('--since', '2025-03-02')).toBe('new\nold\n');
  expect(await names('--since', '2025-03-02T12:00+01:00')).toBe('new\n');
  const since = async (time: string, ...args: string[]) =>
    (await home.here(['log', 'old', '--kind', 'message', '--since', time, '--quiet', ...args])).stdout;
  expect(await since('2025-03-01')).toBe('3\n4\n');
  expect(await since('2025-03-01', '-n', '1')).toBe('4\n');
  expect(await since('2025-03-01T09:00:01')).toBe('4\n');
  expect(await since('2099-01-01')).toBe('');
  expect(await since('2 weeks ago')).toBe('');
  expect(await names('--since', 'yesterday')).toBe('new\n');
  expect(jsonError(await home.here(['sessions', '--since', 'soon', '--json']))).toMatchObject({
    code: 'CLI_USAGE',
  });
  // The name of an anchor goes before a time.
  await home.here(['anchor', 'new', '2025-03-01']);
  await home.here(['append', 'new'], { stdin: '{"content":"Later."}\n' });
  expect((await home.here(['log', 'new', '--since', '2025-03-01', '--quiet'])).stdout).toBe('4\n');
});

test('alias and unalias name a session again, in show and sessions too', async () => {
  using home = tempHome();
  home.session('dm:slack:u1');
  expect(json(await home.here(['alias', 'dm:slack:u1', 'dm:mom', '--reason', 'known', '--json']))).toEqual({
    session: 'dm:slack:u1',
    aliases: ['dm:mom'],
    repeated: false,
  });
  expect(json(await home.here(['alias', 'dm:slack:u1', 'dm:mom', '--json']))).toMatchObject({
    repeated: true,
  });
  expect(json(await home.here(['show', 'dm:mom', '--json']))).toMatchObject({ aliases: ['dm:mom'] });
  expect(json(await home.here(['sessions', '--json']))).toMatchObject([{ aliases: ['dm:mom'] }]);
  // What gets or creates a session gets that one.
  await home.here(['append', 'dm:mom'], { stdin: '{"content":"Hi"}\n' });
  expect(json(await home.here(['new', 'dm:mom', '--json']))).toMatchObject({
    session: 'dm:slack:u1',
    created: false,
    head: 2,
  });
  expect(await home.here(['unalias', 'dm:slack:u1'])).toMatchObject({ code: 4 });
  expect(json(await home.here(['unalias', 'dm:mom', '--json']))).toEqual({
    session: 'dm:slack:u1',
    aliases: [],
  });
  expect(await home.here(['unalias', 'dm:mom'])).toMatchObject({ code: 3 });
  expect(home.lines().map(({ type, reason }) => [type, reason])).toEqual([
    ['session', undefined],
    ['alias', 'known'],
    ['unalias', ''],
  ]);
});
