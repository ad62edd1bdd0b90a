import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
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

/** Runs docs/verify.py for each line of JSON arguments, and answers with one line: exit code, stdout, stderr. */
const server = `
import contextlib, io, json, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import verify
with open(sys.argv[2]) as requests, open(sys.argv[3], "w") as answers:
    for request in requests:
        out, err, code = io.StringIO(), io.StringIO(), None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = verify.main(json.loads(request))
            except SystemExit as exit:
                code = exit.code
        answers.write(json.dumps([code, out.getvalue(), err.getvalue()]) + "\\n")
        answers.flush()
`;

/**
 * Asks one process of Python, which starts with the first question and ends with this process: its start takes several
 * times what a verification does. The pipes have names, so that both sides can wait without an event loop.
 */
const ask = (() => {
  let pipes: { readonly requests: number; readonly answers: number } | undefined;
  const open = () => {
    const dir = mkdtempSync(join(tmpdir(), 'python-'));
    const [requests = '', answers = ''] = ['requests', 'answers'].map((name) => join(dir, name));
    execFileSync('mkfifo', [requests, answers]);
    const child = spawn('python3', ['-c', server, join(root, 'docs'), requests, answers], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    child.unref();
    const opened = { requests: openSync(requests, 'w'), answers: openSync(answers, 'r') };
    rmSync(dir, { recursive: true });
    return opened;
  };
  return (args: readonly string[]): readonly [code: number, stdout: string, stderr: string] => {
    pipes ??= open();
    writeSync(pipes.requests, `${JSON.stringify(args)}\n`);
    let answer = '';
    const bytes = Buffer.alloc(65_536);
    while (!answer.endsWith('\n')) {
      const length = readSync(pipes.answers, bytes);
      if (length === 0) throw new Error(`docs/verify.py failed on ${args.join(' ')}`);
      answer += bytes.toString('latin1', 0, length);
    }
    return JSON.parse(answer);
  };
})();

function verdictOf(path: string): Verdict {
  const [status, stdout, stderr] = ask(['--json', path]);
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
