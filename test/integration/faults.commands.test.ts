import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tapeHere } from '../support/cli.ts';
import { compileCache } from '../support/compile-cache.ts';
import { faultPlace } from '../support/fault-acts.ts';
import { olderFaults, rowsOf } from '../support/fault-check.ts';
import {
  bundle,
  commands,
  exported,
  type FaultCommand,
  filesIn,
  homeHas,
  look,
  restoredPlace,
} from '../support/fault-commands.ts';
import { copyHome, inLanes } from '../support/fault-sweep.ts';
import { tapeProgram } from '../support/programs.ts';
import { sized } from '../support/size.ts';
import { type Injection, skipsTracing, type Traced, trace } from '../support/strace.ts';
import {
  chosen,
  draftOf,
  followed,
  hitOf,
  type Point,
  pointsOf,
  withLogs,
} from '../support/syscall-points.ts';
import { tempDir } from '../support/temp-dir.ts';

/**
 * Every system call that a command makes on its files is in one run the last before SIGKILL, fails in one with EIO
 * and, where a full disk can stop it, in one with ENOSPC. The command is done then, or nothing of it is there.
 */
describe.skipIf(skipsTracing('faults of commands'))('a fault at any system call', () => {
  for (const [name, command] of Object.entries(commands))
    test(
      `of ${name} leaves all of it or nothing, and it can be repeated`,
      async () => {
        using dir = tempDir();
        const sweep = await prepare(command, dir.path);
        const points = chosen(sweep.points, { push: 2, full: 4 });
        expect(points.length).toBeGreaterThan(sized(1, 3, 10));
        expect(await inLanes(2, points, (point, i) => tryPoint(sweep, dir.file(`${i}`), point))).toEqual([]);
      },
      sized(1_200_000, 1_200_000, 7_200_000),
    );
});

interface CommandSweep {
  readonly command: FaultCommand;
  readonly template: string;
  readonly points: readonly Point[];
  /** What is there before and after the command without faults. */
  readonly before: Found;
  readonly after: Found;
  /** The rows of a database of an older schema. */
  readonly older?: string;
}

interface Found {
  readonly state: string;
  readonly files: readonly string[];
}

async function prepare(command: FaultCommand, dir: string): Promise<CommandSweep> {
  const template = join(dir, 'template');
  mkdirSync(join(template, 'copies'), { recursive: true });
  await command.prepare(template);
  const before = found(begin(template, join(dir, 'before')));
  const base = begin(template, join(dir, 'after'));
  const run = await traced(command, base);
  expect({ stderr: run.stderr, done: isAcknowledged(run) }).toEqual({ stderr: '', done: true });
  const after = found(base);
  const older =
    command.upgrades === undefined ? {} : { older: rowsOf(olderIn(begin(template, join(dir, 'older')))) };
  return { command, template, points: pointsOf(run.calls), before, after, ...older };
}

function olderIn(base: string): string {
  const { db, copy } = faultPlace(base);
  return existsSync(db) ? db : copy;
}

function begin(template: string, base: string): string {
  copyHome(template, base);
  return base;
}

function found(base: string): Found {
  const files = filesIn(base);
  const { state, faults } = look(base);
  expect(faults).toEqual([]);
  return { state, files };
}

async function traced({ args }: FaultCommand, base: string, inject?: Injection): Promise<Traced> {
  const { dir, db, graph, copy } = faultPlace(base);
  const restored = restoredPlace(base);
  const databases = [db, copy, restored.db].flatMap((path) => [path, `${path}.schema-1`]);
  const line = [...args(base), '--json'];
  return await trace(
    [`--import=${join(import.meta.dirname, '../support/fixed-drafts.ts')}`, tapeProgram, ...line],
    {
      paths: [
        ...databases.flatMap((path) => [path, draftOf(path)]).flatMap(withLogs),
        ...[base, dir, dirname(copy), restored.dir],
        ...[graph, restored.graph, join(base, 'transcript.jsonl'), join(base, bundle)],
        ...[exported(base), draftOf(exported(base)), join(dir, 'import-000000000000.part')],
      ],
      syscalls: followed,
      log: `${base}.log`,
      env: {
        PATH: process.env.PATH,
        HOME: '/nonexistent',
        TAPE_HOME: dir,
        NODE_COMPILE_CACHE: compileCache,
      },
      ...(inject !== undefined && { inject }),
    },
  );
}

async function tryPoint({ command, ...sweep }: CommandSweep, base: string, point: Point): Promise<string[]> {
  begin(sweep.template, base);
  const run = await traced(command, base, point);
  const killed = point.kind === 'SIGKILL';
  const hit = hitOf(run.calls, point);
  const faults = [...(killed ? endOfKilled(run) : endOfFailed(run, hit))];
  for (const name of command.reads)
    if (!readFileSync(join(base, name)).equals(readFileSync(join(sweep.template, name))))
      faults.push(`${name} has changed`);
  if (command.erases !== undefined && isEmptied(run) && homeHas(faultPlace(base), command.erases))
    faults.push('the erased text is still in a file');
  const files = filesIn(base);
  const now = look(base);
  faults.push(...now.faults);
  const isDone = now.state === sweep.after.state;
  if (!isDone && now.state !== sweep.before.state) faults.push(`half of it is there: ${now.state}`);
  if (isAcknowledged(run) && !isDone) faults.push('it was acknowledged, and is not there');
  // What cannot be removed stays.
  const mayStay = killed || /^(?:unlink|rmdir)/.test(point.syscall);
  const allowed = (isDone ? sweep.after : sweep.before).files;
  for (const name of files)
    if (!mayStay && !allowed.includes(name) && !isCopyBefore(name)) faults.push(`left: ${name}`);
  faults.push(...upgradeFaults(command, base, sweep.older), ...(await repeat(command, base, isDone)));
  const again = look(base);
  faults.push(...again.faults);
  if (again.state !== sweep.after.state)
    faults.push(`repeated, and not as without the fault: ${again.state}`);
  const { syscall, ordinal, kind } = point;
  return faults.map(
    (text) => `${kind} at ${syscall} ${ordinal}: ${text}\n    ${hit}\n    ${run.stdout}${run.stderr}`,
  );
}

/** A copy from before an upgrade, which a failed one leaves. */
function isCopyBefore(name: string): boolean {
  return /\/tape\.db\.schema-1$/.test(name);
}

function* endOfKilled({ code, signal }: Traced): Generator<string> {
  if (signal !== 'SIGKILL') yield `ended with ${code ?? signal}`;
}

function* endOfFailed({ code, stdout, stderr }: Traced, hit: string): Generator<string> {
  if (!hit.includes('(INJECTED)')) yield 'the fault was not met';
  if (isAcknowledged({ stdout })) return;
  const { error } = parsed(stderr) as { error?: { code?: string } };
  if (code === null || !/^(?:TAPE|GRAPH|IMPORT)_/.test(error?.code ?? ''))
    yield `ended with ${code} and without a typed error`;
}

/** An answer is on stdout; the exit code says also what a check of a restored home found. */
function isAcknowledged({ stdout }: Pick<Traced, 'stdout'>): boolean {
  return stdout !== '';
}

function isEmptied({ stdout }: Traced): boolean {
  return (parsed(stdout) as { log_emptied?: boolean }).log_emptied === true;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

function upgradeFaults({ upgrades }: FaultCommand, base: string, older: string | undefined): string[] {
  if (upgrades === undefined || older === undefined) return [];
  const place = upgrades === 'home' ? faultPlace(base) : restoredPlace(base);
  return existsSync(place.db) ? olderFaults(place, older) : [];
}

/** The next person repeats the command; what is there already may refuse it. */
async function repeat({ args }: FaultCommand, base: string, isDone: boolean): Promise<string[]> {
  const again = await tapeHere(args(base), { home: faultPlace(base).dir });
  return isAcknowledged(again) || (isDone && again.code === 4)
    ? []
    : [`cannot be repeated: ${again.code} ${again.stderr}`];
}
