import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { install } from '../bench/peers/install.ts';
import type { Peer } from '../bench/peers/peer.ts';
import type { Row } from '../bench/topic.ts';
import { chosen } from '../bench/topics.ts';
import { sized } from '../support/size.ts';
import { skipsTracing } from '../support/strace.ts';
import { tempDir } from '../support/temp-dir.ts';

const program = fileURLToPath(new URL('../bench/run.ts', import.meta.url));

/** A search path with an npm that writes down how it was called, and fails. */
function withNpm(bin: string): { path: string; calls: () => string } {
  mkdirSync(bin);
  const file = join(bin, 'calls');
  const script = `#!/bin/sh\necho "$@" >> '${file}'\necho 'npm error code E404' >&2\nexit 1\n`;
  writeFileSync(join(bin, 'npm'), script, { mode: 0o755 });
  const path = [bin, dirname(process.execPath), process.env.PATH].join(delimiter);
  return { path, calls: () => (existsSync(file) ? readFileSync(file, 'utf8') : '') };
}

const peer: Peer = {
  name: 'some store',
  packages: { 'some-store': '1.2.3' },
  load: () => Promise.reject(new Error('it is not installed')),
};

test('peers run only when they are named, or quickly', () => {
  const names = (...given: Parameters<typeof chosen>) => chosen(...given).map(([name]) => name);
  expect(names([], false)).not.toContain('peers');
  expect(names([], false)).toContain('append');
  expect(names([], true)).toContain('peers');
  expect(names(['peers'], false)).toEqual(['peers']);
});

test('a peer is installed at its pinned version, without scripts, in a directory of its own, or the reason is given', async () => {
  using dir = tempDir();
  const npm = withNpm(dir.file('bin'));
  vi.stubEnv('PATH', npm.path);
  try {
    await expect(install(peer, dir.file('install'))).rejects.toThrow('npm does not install it: code E404');
  } finally {
    vi.unstubAllEnvs();
  }
  expect(npm.calls()).toMatch(/^install --ignore-scripts /);
  const manifest = JSON.parse(readFileSync(dir.file('install/package.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  expect(manifest.dependencies).toEqual(peer.packages);
});

if (sized(false, true, true))
  test('a quick run compares the stores that need no packages, and installs none', async () => {
    using dir = tempDir();
    using work = tempDir();
    const npm = withNpm(dir.file('bin'));
    const file = dir.file('rows.json');
    const args = ['--conditions=@tapedeck/source', program, 'peers', '--quick', '--json', file];
    const child = spawn(process.execPath, args, {
      env: { ...process.env, PATH: npm.path, TMPDIR: work.path },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    expect(code).toBe(0);
    expect(npm.calls()).toBe('');
    expect(readdirSync(work.path)).toEqual([]);

    const rows = JSON.parse(readFileSync(file, 'utf8')) as Row[];
    const stores = ['Tapedeck', 'naive SQLite, FULL', 'naive SQLite, default', 'JSONL, fdatasync'];
    const of = (work: RegExp) => rows.filter((row) => work.test(row.work));
    for (const work of [/^open, and read/, /^read all/, /^list of/, /^append/, /^fork of/])
      for (const row of of(work)) {
        expect(row.ours, row.work).toBeGreaterThan(0);
        expect(stdout).toContain(row.work);
      }
    for (const work of [/^fork of \d+ entries$/, /^append of an entry to \d+$/, /kill -9/])
      expect(of(work).map(({ store }) => store)).toEqual(stores);
    expect(of(/kill -9/).map(({ ratio }) => ratio)).toEqual([1, 1, 1, 1]);
    if (!skipsTracing('which stores wait for the disk'))
      expect(of(/waited for the disk/).map(({ ratio }) => ratio)).toEqual([1, 1, 0, 1]);
  });
