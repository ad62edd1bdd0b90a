import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { anchor, assistant, user } from '@tapedeck/tape';
import { entryBytesMax } from '@tapedeck/tape/store';
import { describe, expect, test } from 'vitest';
import { compileCache } from '../support/compile-cache.ts';
import { sized } from '../support/size.ts';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const bin = fileURLToPath(new URL('../../packages/cli/bin/tape.js', import.meta.url));

/** Runs `tape` with a heap of this many megabytes; counts its output instead of keeping it. */
async function small(home: TempHome, args: readonly string[], megabytes = 192) {
  const child = spawn(process.execPath, [`--max-old-space-size=${megabytes}`, bin, ...args], {
    env: { PATH: process.env.PATH, TAPE_HOME: home.path, NODE_COMPILE_CACHE: compileCache },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [lines, bytes, errors, last] = [0, 0, '', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1;
    bytes += chunk.length;
    last = chunk.subarray(-500).toString('utf8');
  });
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`tape ${args.join(' ')} ended with ${code}: ${errors.slice(0, 500)}`);
  return { lines, bytes, last };
}

/** The same in this process, whose heap has no limit. */
async function here(home: TempHome, args: readonly string[]): ReturnType<typeof small> {
  const { code, stdout, stderr } = await home.here(args);
  if (code !== 0) throw new Error(`tape ${args.join(' ')} ended with ${code}: ${stderr.slice(0, 500)}`);
  return { lines: stdout.split('\n').length - 1, bytes: Buffer.byteLength(stdout), last: stdout.slice(-500) };
}

/** Sizes of a push prove nothing about a heap. */
const scaled = sized(here, small, small);
const limit = sized(60_000, 180_000, 1_800_000);

describe('a heap of 192 MB suffices for', () => {
  test(
    'a long tape: it is printed, verified, searched and counted without being held in memory',
    async () => {
      using home = tempHome();
      const count = sized(6_000, 12_000, 1_000_000);
      {
        using store = home.open();
        store.sessions.open('main');
        for (let n = 0; n < count; n += 1000)
          store.entries.append(
            'main',
            Array.from({ length: 1000 }, (_, i) =>
              assistant(`entry ${n + i} ${'x'.repeat(200)}`, { usage: { input: 2, output: 1 } }),
            ),
          );
      }
      expect(await scaled(home, ['log', 'main', '--jsonl'])).toMatchObject({ lines: count + 1 });
      expect((await scaled(home, ['verify'])).last).toBe(
        `ok: 1 session, ${count + 1} entries, all hashes match\n`,
      );
      expect(await scaled(home, ['log', 'main', '--quiet', '-n', '5'])).toMatchObject({ lines: 5 });
      expect(await scaled(home, ['search', `entry ${count - 1}`, '--quiet'])).toMatchObject({ lines: 1 });
      // Per entry a heading, its text and two empty lines.
      expect(await scaled(home, ['logs', 'main'])).toMatchObject({ lines: 5 + 4 * count });
      expect((await scaled(home, ['logs', 'main', '--verbose', '--jsonl'])).lines).toBe(count + 2);
      expect((await scaled(home, ['logs', 'main', '-o', home.file('logs')])).last).toContain(
        'Wrote 1 file to',
      );
      expect(await scaled(home, ['usage', 'main', '--quiet'])).toMatchObject({ last: `${3 * count}\n` });
    },
    limit,
  );

  test('one JSON document of a long tape is printed as it is read', { timeout: limit }, async () => {
    using home = tempHome();
    const count = sized(4_000, 10_000, 300_000);
    {
      using store = home.open();
      store.sessions.open('main');
      for (let n = 0; n < count; n += 1000)
        store.entries.append(
          'main',
          Array.from({ length: 1000 }, (_, i) => user(`entry ${n + i} ${'x'.repeat(5000)}`)),
        );
    }
    const { bytes, last } = await small(home, ['log', 'main', '--json'], 48);
    expect(bytes).toBeGreaterThan(count * 5000);
    expect(last).toMatch(/\}\]\n$/);
  });

  test(
    'a chain of forks of forks: the last reads through all of them',
    async () => {
      using home = tempHome();
      const depth = sized(100, 150, 2_000);
      {
        using store = home.open();
        store.sessions.open('s0');
        for (let n = 1; n <= depth; n += 1) {
          store.entries.append(`s${n - 1}`, [user(`I am ${n - 1}`)]);
          store.lineage.fork(`s${n - 1}`, { name: `s${n}` });
        }
      }
      const last = `s${depth}`;
      // A session's first mark or fork's start, and what it said, for each; and the last has said nothing.
      expect(await scaled(home, ['log', last, '--jsonl'])).toMatchObject({ lines: 2 * depth + 1 });
      expect(await scaled(home, ['view', last, '--json'])).toMatchObject({ lines: 1 });
      expect(await scaled(home, ['lineage', last])).toMatchObject({ lines: expect.any(Number) });
      expect((await scaled(home, ['verify', last])).last).toMatch(/^ok: /);
      expect((await scaled(home, ['verify'])).last).toMatch(/^ok: /);
      expect(await scaled(home, ['graph', '--format', 'tree'])).toMatchObject({ lines: depth + 1 });
      expect(await scaled(home, ['usage', '--tree', '--json'])).toMatchObject({ lines: 1 });
      expect(await scaled(home, ['search', 'I am 0', '--quiet'])).toMatchObject({ lines: 1 });
    },
    limit,
  );

  if (sized(false, true, true))
    test(
      'the largest possible entry',
      async () => {
        using home = tempHome();
        const text = 'x'.repeat(entryBytesMax - 200);
        home.session('main', user('before'), user(text), anchor('after'));
        expect((await small(home, ['log', 'main', '--jsonl'])).bytes).toBeGreaterThan(text.length);
        // The start of the session is no part of the conversation.
        expect(await small(home, ['log', 'main'])).toMatchObject({ lines: 3 });
        expect(await small(home, ['log', 'main', '--all'])).toMatchObject({ lines: 4 });
        expect((await small(home, ['view', 'main', '--json'])).bytes).toBeGreaterThan(text.length);
        expect((await small(home, ['verify'])).last).toMatch(/^ok: /);
        expect(await small(home, ['search', 'before', '--quiet'])).toMatchObject({ lines: 1 });
        expect((await small(home, ['backup', home.file('copy.db')])).last).toMatch(/^Backed up/);
      },
      limit,
    );

  test(
    'many sessions: they are listed and verified',
    async () => {
      using home = tempHome();
      const [tapes, forks] = [sized(200, 300, 100_000), sized(100, 150, 10_000)];
      {
        using store = home.open();
        for (let n = 0; n < tapes; n += 1) store.sessions.open(`t${n}`);
        for (let n = 0; n < forks; n += 1) store.lineage.fork('t0', { name: `f${n}` });
      }
      const all = tapes + forks;
      expect(await scaled(home, ['sessions', '--quiet'])).toMatchObject({ lines: all });
      expect(await scaled(home, ['graph', '--format', 'tree'])).toMatchObject({ lines: all });
      // A heading, and a line for all of them together.
      expect(await scaled(home, ['usage'])).toMatchObject({ lines: all + 2 });
      expect((await scaled(home, ['verify'])).last).toMatch(`ok: ${all} sessions`);
      expect((await scaled(home, ['audit'])).last).toMatch(`ok: ${all} sessions`);
    },
    limit,
  );
});
