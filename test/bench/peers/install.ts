import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Peer } from './peer.ts';

const limitMs = 300_000;

/**
 * Installs a peer's packages into a directory of its own, without running their scripts. What would compile
 * better-sqlite3 gets the version of this workspace, whose package has the addon. Returns the directory whose modules
 * the peer imports: of a peer without packages, that of the bench.
 */
export async function install({ packages }: Peer, dir: string): Promise<string> {
  if (Object.keys(packages).length === 0) return import.meta.dirname;
  mkdirSync(dir, { recursive: true });
  const { version } = createRequire(import.meta.url)('better-sqlite3/package.json') as { version: string };
  writeFileSync(
    join(dir, 'package.json'),
    JSON.stringify({
      private: true,
      type: 'module',
      dependencies: packages,
      overrides: { 'better-sqlite3': version },
    }),
  );
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier'];
  const npm = spawn('npm', args, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], timeout: limitMs });
  const [said, [code]] = await Promise.all([
    text(npm.stderr),
    once(npm, 'close') as Promise<[number | null]>,
  ]);
  if (code === 0) return dir;
  const reason = said
    .split('\n')
    .filter((line) => line.startsWith('npm error'))
    .slice(0, 2)
    .map((line) => line.replace(/^npm error\s*/, ''))
    .join(': ');
  throw new Error(
    `npm does not install it: ${reason || (code === null ? 'it takes too long' : said.trim())}`,
  );
}
