import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTapeStore } from '@tapedeck/tape';
import { describe, expect, test } from 'vitest';
import {
  branchedTranscript,
  branchedSession as session,
  shownIn,
  subagentOfBranched,
} from '../support/branched-transcript.ts';
import { tapeHere } from '../support/cli.ts';
import { compileCache } from '../support/compile-cache.ts';
import { copyHome, inLanes } from '../support/fault-sweep.ts';
import { tapeProgram } from '../support/programs.ts';
import { sized } from '../support/size.ts';
import { type Injection, skipsTracing, trace } from '../support/strace.ts';
import { chosen, followed, hitOf, type Point, pointsOf, withLogs } from '../support/syscall-points.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonl, person } from '../support/transcript.ts';

const homeIn = (base: string) => join(base, 'home');

/** Writes transcripts: a session with a branch and a subagent, and a copy of it that goes on elsewhere. */
function write(base: string, { part }: { readonly part: number }): void {
  const lines = branchedTranscript(40_000);
  const copy = session.replace('5f3c', '6f3c');
  const records = lines.slice(0, 6).map((line) => JSON.parse(line.replaceAll(session, copy)));
  const { uuid } = records.findLast((one) => one.uuid !== undefined);
  const more = person({ uuid: 'c1', parent: uuid }, 'go on elsewhere', { sessionId: copy });
  const place = join(base, 'transcripts');
  mkdirSync(join(place, session, 'subagents'), { recursive: true });
  const some = lines.slice(0, Math.ceil(part * lines.length));
  writeFileSync(join(place, `${session}.jsonl`), `${some.join('\n')}\n`);
  writeFileSync(join(place, session, 'subagents/agent-x.jsonl'), subagentOfBranched);
  writeFileSync(join(place, `${copy}.jsonl`), jsonl(part < 1 ? records : [...records, more]));
}

const line = (base: string) => ['import', join(base, 'transcripts'), '--yes', '--json'];

const importing = async (base: string) => {
  const { stdout, stderr } = await tapeHere(line(base), { home: homeIn(base) });
  return stdout === '' ? stderr : JSON.parse(stdout);
};

async function traced(base: string, inject?: Injection) {
  const home = homeIn(base);
  const own = ['tape.db', 'session_graph.jsonl', 'sources.jsonl', 'sources.jsonl.sessions'];
  return await trace([tapeProgram, ...line(base)], {
    paths: [home, ...own.map((name) => join(home, name)).flatMap(withLogs)],
    syscalls: followed,
    log: `${base}.log`,
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      TAPE_HOME: home,
      TAPE_TRUST_HOME: '1',
      NODE_COMPILE_CACHE: compileCache,
    },
    ...(inject !== undefined && { inject }),
  });
}

/** What is in a home, and what is wrong with it. */
function look(base: string) {
  using store = openTapeStore(join(homeIn(base), 'tape.db'));
  const problems = [...store.verifyDatabase(), ...store.verify()].map(({ message }) => message);
  return { ...shownIn(store), problems, left: store.imports.unfinished().length };
}

type Seen = ReturnType<typeof look>;

/** An import of all that is found, from a home as it is before. */
interface Sweep {
  readonly template: string;
  readonly before: Seen;
  readonly after: Seen;
}

async function tryPoint({ template, before, after }: Sweep, base: string, point: Point): Promise<string[]> {
  copyHome(template, base);
  const run = await traced(base, point);
  const hit = hitOf(run.calls, point);
  const faults: string[] = [];
  if (point.kind === 'SIGKILL' ? run.signal !== 'SIGKILL' : !hit.includes('(INJECTED)'))
    faults.push(`the fault was not met: ${run.code ?? run.signal}`);
  const errors = run.stderr.trimEnd().split('\n').at(-1) ?? '';
  if (point.kind !== 'SIGKILL' && run.stdout === '' && !/"(?:TAPE|GRAPH|IMPORT)_\w+"/.test(errors))
    faults.push(`ended with ${run.code} and without a typed error`);
  const now = look(base);
  faults.push(...now.problems);
  for (const [name, shown] of Object.entries(now.views)) {
    const whole = [before.views[name], after.views[name]].map((one) => JSON.stringify(one));
    if (!whole.includes(JSON.stringify(shown))) faults.push(`a part of ${name} is shown`);
  }
  const [repeated, again] = [await importing(base), await importing(base)];
  if (JSON.stringify(look(base)) !== JSON.stringify(after))
    faults.push(`repeated, and not as without the fault: ${JSON.stringify(repeated)}`);
  if (again.entries !== 0) faults.push(`not done when it was repeated: ${JSON.stringify(again)}`);
  const { syscall, ordinal, kind } = point;
  return faults.map(
    (text) => `${kind} at ${syscall} ${ordinal}: ${text}\n    ${hit}\n    ${run.stdout}${run.stderr}`,
  );
}

describe.skipIf(skipsTracing('faults of imports'))(
  'a fault at any system call of an import of all that is found',
  () => {
    test.each([
      ['an empty home', 0],
      ['a home that has a part of each', 0.5],
    ])(
      'into %s shows no part of a session, and the next import ends as one without the fault',
      async (_, part) => {
        using dir = tempDir();
        const template = dir.file('template');
        mkdirSync(homeIn(template), { recursive: true, mode: 0o700 });
        openTapeStore(join(homeIn(template), 'tape.db'))[Symbol.dispose]();
        if (part > 0) {
          write(template, { part });
          await importing(template);
        }
        write(template, { part: 1 });
        const whole = dir.file('whole');
        copyHome(template, whole);
        const run = await traced(whole);
        expect(JSON.parse(run.stdout)).toMatchObject({ left_out: [] });
        const sweep = { template, before: look(template), after: look(whole) };
        expect(sweep.after).toMatchObject({ problems: [], left: 0 });
        expect(Object.keys(sweep.after.views).length).toBe(4);
        const points = chosen(pointsOf(run.calls), { push: 2, full: 12 });
        expect(points.length).toBeGreaterThan(sized(1, 3, 10));
        expect(await inLanes(2, points, (point, i) => tryPoint(sweep, dir.file(`${i}`), point))).toEqual([]);
      },
      sized(1_200_000, 1_200_000, 7_200_000),
    );
  },
);
