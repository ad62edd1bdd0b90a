import { isUtf8 } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { isAbsolute, join } from 'node:path';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors/kinds.ts';
import { pathText, shellLine } from '../escape.ts';
import { exit } from '../exit.ts';
import { keptName } from '../home.ts';
import { assertOwn } from '../origin.ts';
import { canAsk } from '../question.ts';
import { cronTimer } from './cron.ts';
import { hookCommand, hookHome, hooksAreOff, withHook } from './hook.ts';
import type { Job, NotStarted, Runs, Timer } from './job.ts';
import { launchdTimer } from './launchd.ts';
import { absoluteCommand } from './own-command.ts';
import { fileAt } from './place.ts';
import { type Part, type Settled, settle } from './settle.ts';
import { systemdTimer } from './systemd.ts';

/** What is to happen to what starts imports. */
export interface Installation {
  readonly act: 'install' | 'uninstall';
  /** What starts one each hour, in the place of a hook at the end of sessions. */
  readonly timer: boolean;
  readonly yes: boolean;
  readonly dryRun: boolean;
}

/** Shows what starts an import by itself, and writes or removes it when the user agrees. */
export async function installImports(installation: Installation, context: Context): Promise<number> {
  const { act, timer } = installation;
  // An import that starts by itself writes the home as if the user had named it.
  if (act === 'install' && context.home.isFound) assertOwn(context.home, context.io);
  return timer ? await installTimer(installation, context) : await installHook(installation, context);
}

async function installHook({ act, yes, dryRun }: Installation, context: Context): Promise<number> {
  const command = act === 'install' ? hookCommand(await jobIn(context)) : undefined;
  const place = fileAt(settingsFile(context));
  const config = command === undefined ? null : withHook('', command);
  const other = otherHome(hookHome(place.read()), context);
  const what =
    act === 'install'
      ? `Write this to ${place.where}${insteadOf(other, 'hook')}?`
      : `Remove the hook${ofHome(other)} from ${place.where}?`;
  const question = config === null ? what : `Claude Code, at the end of each session:\n${config}${what}`;
  const parts = [{ place, change: (text: string) => withHook(text, command) }];
  const state = await settle({ act, parts, question, yes, dryRun }, context);
  if (act === 'install' && hooksAreOff(place.read()))
    context.status(`Hooks are turned off in ${place.where} (disableAllHooks): nothing starts the import`);
  await say({ act, by: 'claude-code', places: [place.where], state, config, other, dryRun }, context);
  if (act === 'uninstall' && state !== 'shown') sayTimer(context);
  return exit.done;
}

/** Says that a timer imports still: who wants no more imports may not think of it. */
function sayTimer(context: Context): void {
  if (!timersFor(context).some((timer) => timer.isWritten())) return;
  context.status(
    context.inHome(
      'A timer still starts an import each hour (remove it with: tape import --uninstall --timer)',
    ),
  );
}

async function installTimer({ act, yes, dryRun }: Installation, context: Context): Promise<number> {
  const timers = timersFor(context);
  const job = act === 'install' ? await jobIn(context) : undefined;
  const chosen = job === undefined ? timers.filter((timer) => timer.isWritten()) : [timerHere(timers)];
  const parts = chosen.flatMap((timer) => timer.parts(job));
  const places = parts.map(({ place }) => place.where);
  const config = job === undefined ? null : await textOf(parts);
  const other = otherHome(
    chosen.map((timer) => timer.homeIn()).find((home) => home !== undefined),
    context,
  );
  const what =
    act === 'install'
      ? `Write this${insteadOf(other, 'timer')}, and start it?`
      : `Remove ${places.join(' and ')}${ofHome(other)}?`;
  const question = config === null ? what : `Each hour:\n${config}${what}`;
  const settling = { act, parts, question, yes, dryRun };
  const onAgreed = () => {
    if (act === 'uninstall') for (const timer of chosen) timer.stop();
  };
  const state = await settle({ ...settling, onAgreed }, context);
  const [timer] = chosen;
  // One that was written before, and is not running, starts now.
  const fault = act === 'uninstall' || state === 'shown' || dryRun ? undefined : timer?.start();
  const by = timer?.name ?? null;
  await say({ act, by, places, state, config, other, isTimer: true, fault, dryRun }, context);
  return fault === undefined ? exit.done : exit.failed;
}

interface Said {
  readonly act: 'install' | 'uninstall';
  readonly by: string | null;
  readonly places: readonly string[];
  readonly state: Settled;
  readonly config: string | null;
  /** The home into which it imported before, where that is another one. */
  readonly other: string | undefined;
  readonly isTimer?: boolean;
  readonly fault?: NotStarted | undefined;
  readonly dryRun: boolean;
}

async function say(said: Said, context: Context): Promise<void> {
  const { by, places, state, config, other, fault, dryRun } = said;
  // A question has shown it.
  const isShown = state === 'shown' && config !== null && (dryRun || !canAsk(context));
  const lines = [...(isShown ? [config.trimEnd()] : []), context.inHome(sentence(said))];
  await context.answer({
    json: {
      ...{ by, places, state, config },
      ...(other !== undefined && { other_home: other }),
      ...(fault !== undefined && { not_started: fault.why }),
    },
    quiet: places.join('\n'),
    human: lines.join('\n'),
  });
  if (fault !== undefined) context.status(`It does not run: ${fault.why} (start it with: ${fault.command})`);
}

function sentence({ act, places, state, other, isTimer = false }: Said): string {
  const where = places.join(' and ');
  const [what, option] = isTimer ? (['timer', ' --timer'] as const) : (['hook', ''] as const);
  // What was there before is undone by what wrote it, with its home.
  const before = `tape import --install${option}${other === undefined ? '' : ` --home ${shellLine(other)}`}`;
  if (state === 'installed') {
    const undo = other === undefined ? `tape import --uninstall${option}` : before;
    return `Installed in ${where}${insteadOf(other, what)} (undo with: ${undo})`;
  }
  if (state === 'removed') return `Removed from ${where}${ofHome(other)} (undo with: ${before})`;
  const again = `tape import --${act}${option} --yes`;
  if (state === 'shown' && act === 'uninstall')
    return `Not removed. Remove it${ofHome(other)} from ${where} with: ${again}`;
  if (state === 'shown')
    return `Not written. Write ${where}${insteadOf(other, what)}${other === undefined ? '' : ','} with: ${again}`;
  if (act === 'install') return `${where} ${places.length > 1 ? 'have' : 'has'} it already: nothing to do`;
  return where === ''
    ? `No ${what} is installed: nothing to do`
    : `${where} has no ${what} of this command: nothing to do`;
}

function insteadOf(other: string | undefined, what: 'hook' | 'timer'): string {
  return other === undefined ? '' : `, in the place of the ${what} of the home ${pathText(other)}`;
}

function ofHome(other: string | undefined): string {
  return other === undefined ? '' : ` (of the home ${pathText(other)})`;
}

/** The home into which something imports, where that is another one than that of this command. */
function otherHome(given: string | undefined, { home }: Pick<Context, 'home'>): string | undefined {
  return given === (home.server?.given ?? home.dir) ? undefined : given;
}

/** The texts as they would be where there is nothing yet. */
async function textOf(parts: readonly Part[]): Promise<string> {
  const texts = parts.map(async ({ place, change }) => `${place.where}:\n${await change('')}\n`);
  return (await Promise.all(texts)).join('');
}

/**
 * An import of all that is new, into this home.
 * @throws UsageError for a path that no line of a file can hold
 */
async function jobIn({ io, home }: Context): Promise<Job> {
  const { transcriptTools } = await import('@tapedeck/runtime/import');
  const env: Record<string, string> = {};
  const noted = (name: string, value: string | undefined) => {
    if (value !== undefined && value !== '') env[name] = value;
    return value;
  };
  const watched = new Proxy(io.env, { get: (all, name) => noted(String(name), all[String(name)]) });
  for (const tool of transcriptTools) tool.roots({ env: watched, home: userHome(io) });
  // Where this user's trust in the home is recorded.
  noted('XDG_STATE_HOME', io.env.XDG_STATE_HOME);
  const command = [...absoluteCommand(), 'import', '--yes', '--home', keptName(home, 'have imports started')];
  for (const word of [...command, ...Object.values(env)])
    if (/\p{Cc}/u.test(word)) throw new UsageError(`cannot install '${word}': it has a control character`);
  return { command, env };
}

function settingsFile({ io }: Context): string {
  const { CLAUDE_CONFIG_DIR: given } = io.env;
  return join(given === undefined || given === '' ? join(userHome(io), '.claude') : given, 'settings.json');
}

/** What can start a job each hour, the best first. */
function timersFor({ io }: Context): readonly Timer[] {
  const home = userHome(io);
  const { XDG_CONFIG_HOME: given = '' } = io.env;
  const units = join(isAbsolute(given) ? given : join(home, '.config'), 'systemd', 'user');
  const run = runsWith(io.env);
  return [launchdTimer(join(home, 'Library', 'LaunchAgents'), run), systemdTimer(units, run), cronTimer(run)];
}

/** @throws UsageError without one */
function timerHere(timers: readonly Timer[]): Timer {
  const found = timers.find((timer) => timer.isHere());
  if (found !== undefined) return found;
  throw new UsageError(
    'cannot install a timer: this machine has no launchd, no systemd of this user, and no cron',
    {
      hint: 'have the import started at the end of sessions: tape import --install',
    },
  );
}

/** A program that answers later does not answer. */
const waitMs = 20_000;

function runsWith(env: Context['io']['env']): Runs {
  return (program, args, input) => {
    const ran = spawnSync(program, args, { env: { ...env }, input, timeout: waitMs });
    if (ran.error !== undefined && ran.status === null) return undefined;
    const [stdout, stderr] = [ran.stdout, ran.stderr].map(String) as [string, string];
    return { code: ran.status ?? 1, stdout, isText: isUtf8(ran.stdout), stderr };
  };
}
