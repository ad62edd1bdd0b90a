import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Problem } from '@tapedeck/tape/store';
import { root } from './imports.ts';

/** The codes that docs/verify.py does not know: it says so in its first lines. */
const unknown: ReadonlySet<string> = new Set(['view-contradicted']);

/** What docs/verify.py finds as well, and a check by its audit alone. */
const audited: ReadonlySet<string> = new Set(['edge-on-one-side']);

type Found = Pick<Problem, 'session' | 'seq'> & { readonly code: string };

/**
 * Says that the machine has no Python 3, for tests that need it.
 * @throws Error with `CI=true`, where nothing of them is skipped
 */
export function skipsPython(what: string): boolean {
  if (hasPython) return false;
  if (process.env.CI === 'true') throw new Error(`cannot test ${what}: there is no python3`);
  console.warn(`skipped: ${what}; there is no python3`);
  return true;
}

const hasPython: boolean = spawnSync('python3', ['--version']).status === 0;

/** The verdict of docs/verify.py, a second program that knows nothing but docs/format.md. */
interface Verdict {
  readonly code: number | null;
  readonly problems: readonly Found[];
}

function verdictOf(path: string): Verdict {
  const { status, stdout, stderr } = spawnSync('python3', [join(root, 'docs/verify.py'), '--json', path], {
    encoding: 'utf8',
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  });
  if (stderr !== '') throw new Error(stderr);
  const { problems } = JSON.parse(stdout) as { problems: Found[] };
  return { code: status, problems };
}

/**
 * What only one of two programs finds in a home or a tape.db: a store, whose problems are given, and docs/verify.py.
 * Nothing where there is no Python.
 * @param isAudited the given problems are also those of an audit
 */
export function disagreements(
  path: string,
  problems: readonly Found[],
  { isAudited = problems.length === 0 }: { readonly isAudited?: boolean } = {},
): string[] {
  if (!hasPython) return [];
  const { code, problems: all } = verdictOf(path);
  const theirs = isAudited ? all : all.filter((problem) => !audited.has(problem.code));
  const ours = problems.filter((problem) => !unknown.has(problem.code));
  const [here, there] = [texts(ours), texts(theirs)];
  return [
    ...[...here].filter((text) => !there.has(text)).map((text) => `only the store: ${text}`),
    ...[...there].filter((text) => !here.has(text)).map((text) => `only verify.py: ${text}`),
    ...(code === (all.length > 0 ? 5 : 0) ? [] : [`verify.py exits ${code}`]),
  ];
}

/** A home's files differ in one code alone for the second program. */
function texts(problems: readonly Found[]): ReadonlySet<string> {
  return new Set(
    problems.map(({ code, session, seq }) =>
      JSON.stringify([code.startsWith('graph-') ? 'graph-differs' : code, session, seq]),
    ),
  );
}
