import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { UsageError } from '../errors/kinds.ts';
import { exit } from '../exit.ts';
import { fileAt } from '../install/place.ts';
import type { Io } from '../io.ts';
import { completionScripts, type Shell, shells } from '../output/completion-script.ts';
import { defineVerb, type Verb } from './verb.ts';

export const completion: Verb = defineVerb({
  command: 'completion [shell]',
  group: 'Start',
  summary: 'Print or install the completion of tape for a shell',
  detail:
    'Completes verbs, options and their values, names of sessions, anchors behind an @, and the topics of tape help. With --install, writes the script where the ' +
    'shell looks for those of its user. Needs no tape home.',
  examples: [
    ['tape completion bash > tape.bash', 'Print the script for bash'],
    ['tape completion fish --install', 'Install it for fish'],
  ],
  arguments: { shell: { describe: 'Shell (default: that of $SHELL)', choices: shells } },
  options: {
    install: { type: 'boolean', describe: "Write the script into the user's directory of the shell" },
  },
  run: async ({ shell: given, install }, { io, answer }) => {
    const shell = (given as Shell | undefined) ?? shellOf(io);
    const script = completionScripts[shell];
    if (install !== true) {
      await answer({ json: { shell, script }, human: script.trimEnd() });
      return exit.done;
    }
    const file = placeOf(shell, io);
    await fileAt(file).write('install', () => script);
    const more =
      shell === 'zsh' ? ` Add its directory to fpath, before compinit: fpath=(${dirname(file)} $fpath)` : '';
    await answer({
      json: { shell, file },
      quiet: file,
      human: `Wrote ${file}: a new ${shell} completes tape (remove the file to undo).${more}`,
    });
    return exit.done;
  },
});

/** @throws UsageError for a shell without a script */
function shellOf({ env }: Io): Shell {
  const name = basename(env.SHELL ?? '');
  const found = shells.find((shell) => shell === name);
  if (found !== undefined) return found;
  throw new UsageError(
    name === '' ? 'cannot tell the shell: SHELL is not set' : `cannot complete in ${name}: it has no script`,
    { hint: `name one: tape completion ${shells.join('|')}` },
  );
}

/** Where a shell finds the scripts of its user. */
function placeOf(shell: Shell, { env }: Io): string {
  const home = env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
  const within = (given: string | undefined, ...rest: readonly string[]) =>
    given !== undefined && isAbsolute(given) ? given : join(home, ...rest);
  const data = within(env.XDG_DATA_HOME, '.local', 'share');
  if (shell === 'bash') return join(data, 'bash-completion', 'completions', 'tape');
  if (shell === 'zsh') return join(data, 'zsh', 'site-functions', '_tape');
  return join(within(env.XDG_CONFIG_HOME, '.config'), 'fish', 'completions', 'tape.fish');
}
