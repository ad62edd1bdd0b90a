import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { json } from './cli.ts';
import { tempDir } from './temp-dir.ts';
import { tempHome } from './temp-home.ts';

/** A user with a tape home, settings of Claude Code, and programs of the tests in the place of those of the machine. */
export function installDesk({
  settings,
  programs = {},
  env = {},
}: {
  readonly settings?: string;
  readonly programs?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
} = {}) {
  const dir = tempDir();
  const home = tempHome();
  const file = dir.file('.claude/settings.json');
  if (settings !== undefined) {
    mkdirSync(dirname(file));
    writeFileSync(file, settings);
  }
  mkdirSync(dir.file('bin'));
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(dir.file(`bin/${name}`), `#!/bin/sh\ncd '${dir.path}'\n${script}\n`);
    chmodSync(dir.file(`bin/${name}`), 0o755);
  }
  const given = { HOME: dir.path, PATH: dir.file('bin'), ...env };
  const run = async (...args: string[]) => await home.here(['import', ...args], { env: given });
  return {
    ...{ dir, home, file, env: given, run },
    runs: async (...args: string[]) => json(await run(...args, '--json')),
    text: () => readFileSync(file, 'utf8'),
    [Symbol.dispose]: () => {
      home[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

/** A hook of Claude Code. */
export interface Hook {
  readonly command: string;
  readonly timeout: number;
}

/** The hooks at the end of sessions in some settings. */
export function hooksIn(settings: string): readonly Hook[] {
  const { hooks = {} } = JSON.parse(settings) as { hooks?: { SessionEnd?: { hooks: Hook[] }[] } };
  return (hooks.SessionEnd ?? []).flatMap((group) => group.hooks);
}
