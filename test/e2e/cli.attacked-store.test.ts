import { lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { assistant, openTapeStore, toolCall, toolResult, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { startProcess } from '../support/process.ts';
import { tempHome } from '../support/temp-home.ts';

test('a backup completes while another process writes without pause, and contains whole tapes', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    for (let i = 0; i < 20; i += 1)
      store.entries.append(
        'main',
        Array.from({ length: 100 }, () => user('x'.repeat(5000))),
      );
  }
  await using _writer = startProcess(
    `import { openTapeStore, user } from '@tapedeck/tape';
     const store = openTapeStore(process.argv[1]);
     store.sessions.open('busy');
     console.log('writing');
     setInterval(() => store.entries.append('busy', [user('y')]), 5);`,
    home.db,
  );
  await _writer.prints('writing');
  expect((await home.tape(['backup', home.file('copy.db')])).code).toBe(0);
  using copy = openTapeStore(home.file('copy.db'), { readonly: true });
  expect(copy.sessions.find('main')?.head).toBe(2001);
  expect([...copy.verify()]).toEqual([]);
});

test('show --output prints the output of a tool, in whatever form it is stored', async () => {
  using home = tempHome();
  {
    using store = home.open();
    store.sessions.open('main');
    const ids = ['a', 'b', 'c'];
    store.entries.append('main', [assistant(ids.map((id) => toolCall(id, 'read', {})))]);
    const bytes = { type: 'json', value: new Uint8Array(1000).fill(120) } as never;
    const list = { type: 'content', value: [{ type: 'text', text: `${'y'.repeat(300_000)}END` }] };
    const looks = { type: 'json', value: { type: 'blob', as: 'json', value: 5 } };
    for (const [i, output] of [bytes, list, looks].entries())
      store.entries.append('main', [toolResult({ toolCallId: ids[i] ?? '', toolName: 'read' }, output)]);
  }
  const output = async (seq: number, ...more: string[]) =>
    (await home.here(['show', `main@${seq}`, '--output', ...more])).stdout;
  expect(await output(3, '--raw')).toBe('x'.repeat(1000));
  expect(await output(3, '--raw', '--bytes', '990..2000')).toBe('x'.repeat(10));
  expect((await output(4)).endsWith('END"}]\n')).toBe(true);
  expect(JSON.parse(await output(5))).toEqual({ type: 'blob', as: 'json', value: 5 });
});

test('doctor --fix changes no mode through a link', async () => {
  using home = tempHome();
  home.session('main');
  mkdirSync(home.file('outside'), { mode: 0o755 });
  writeFileSync(home.file('outside/shared'), '', { mode: 0o644 });
  symlinkSync(home.file('outside/shared'), home.file('.gitignore'));
  const { code, stdout } = await home.here(['doctor', '--fix']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('.gitignore')]);
  expect(statSync(home.file('outside/shared')).mode & 0o777).toBe(0o644);
  expect(lstatSync(home.file('.gitignore')).isSymbolicLink()).toBe(true);
});

test('redact requires a reason; search -n 0 prints no hit', async () => {
  using home = tempHome();
  home.session('main', user('hello'));
  const before = home.contents();
  expect((await home.here(['redact', 'main@2', '--reason', ' '])).code).toBe(2);
  expect(home.contents()).toEqual(before);
  expect((await home.here(['search', 'hello', '-n', '0', '--json'])).stdout).not.toContain('hello');
  expect((await home.here(['recover', '--quiet'])).stdout).toBe('');
});
