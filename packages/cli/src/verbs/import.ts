import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { UsageError } from '../errors/kinds.ts';
import { importNamed, type NamedFormat } from '../import/named-files.ts';
import { stdinWord, timeOf } from '../input.ts';
import type { Io } from '../io.ts';
import { defineVerb, type Verb } from './verb.ts';

export const importVerb: Verb = defineVerb({
  command: 'import [files..]',
  group: 'Start',
  summary: 'Import transcripts of another agent, or bundles',
  detail:
    'Without a file, finds the transcripts of Claude Code on this machine, in its own folders and in those of import.roots in config.yaml, and imports what is new in them; the first time it says what it found, and asks on a terminal. A file that has not changed since is not read; one that was moved, copied or compressed is known again. What import.exclude or a .tapeignore names is left out: patterns as in .gitignore, for files and for the working directories of sessions. ' +
    'A bundle, which tape export wrote, is verified as a whole before anything of it is visible. Its sessions keep their ids and hashes, and are foreign data: ' +
    'nothing that was approved elsewhere is approved here. Importing it again adds nothing; a bundle that has grown adds what is new; one whose session went on in another way here is refused, or ' +
    'taken alongside with --as. A transcript of Claude Code becomes a tree of sessions: its conversation, a fork for each prompt that was typed anew, and a child for each subagent, ' +
    'which is merged when its result came back. The other files of its session are read with it. Records that are no part of a conversation become entries that views skip. A saved session of NEXUS3 or a session.jsonl becomes one, too; what they permit counts for nothing here. Importing a file that has grown adds what is new; what a file has in place of what was read of it becomes a session beside the first, forked where the two part. A line that is no record is left out, and named on stderr with the reason. ' +
    'Of several files each is imported for itself: one that cannot be imported keeps no other from it, and gives the exit code. ' +
    '--install has Claude Code start an import at the end of each session, with a hook in its settings; with --timer, systemd, launchd or cron starts one each hour. It shows what it writes, and asks.',
  examples: [
    ['tape import', 'Import every transcript on this machine'],
    ['tape import --dry-run', 'Say what that would take'],
    ['tape import main.tape.zst', 'Import a bundle'],
    ['tape import ~/.claude/projects/app/2f1c.jsonl --as main', 'Import a transcript as session main'],
    ['tape import ~/.claude/projects/app/*.jsonl', 'Import each transcript of a directory'],
    ['tape import --install', 'Show the hook that imports what each session leaves, and ask to write it'],
  ],
  arguments: { files: 'Bundles, also compressed, transcripts, or directories of transcripts (-: stdin)' },
  options: {
    as: {
      type: 'string',
      describe: 'Name of the session (default: that of the bundle, or the id in the transcript)',
    },
    format: {
      type: 'string',
      default: 'auto',
      choices: ['auto', 'claude-code', 'nexus3', 'session-jsonl', 'bundle'],
      describe: 'Format of the file',
    },
    raw: { type: 'boolean', describe: 'Keep what has the form of a secret' },
    strict: { type: 'boolean', describe: 'Leave out a transcript with a bad or irregular line' },
    tool: {
      type: 'string',
      choices: ['claude-code', 'codex', 'pi', 'gemini-cli', 'opencode'],
      describe: 'Only transcripts of this tool',
    },
    project: {
      type: 'string',
      takes: 'DIR',
      describe: 'Only sessions that began in this directory or below it',
    },
    since: {
      type: 'string',
      describe: 'Only files that changed at this time or later: 2026-11-21, 2h or yesterday',
    },
    yes: { type: 'boolean', describe: 'Import, install or uninstall without a question' },
    'dry-run': { type: 'boolean', describe: 'Say what was found, and write nothing' },
    forget: {
      type: 'string',
      describe: 'Erase what came from this file, folder or imported session, and never import it again',
    },
    install: {
      type: 'boolean',
      describe: 'Have each end of a session of Claude Code start an import: shows the hook, and asks',
    },
    timer: { type: 'boolean', describe: 'With --install or --uninstall: start one each hour instead' },
    uninstall: { type: 'boolean', describe: 'Remove what --install wrote' },
    hook: { type: 'boolean', hidden: true },
    turn: { type: 'boolean', hidden: true },
  },
  conflicts: {
    forget: ['as', 'raw', 'strict', 'tool', 'project', 'since', 'yes'],
    install: ['uninstall', 'forget', 'as', 'raw', 'tool', 'project', 'since'],
    uninstall: ['forget', 'as', 'raw', 'tool', 'project', 'since'],
  },
  run: async (args, context) => {
    const { files = [], as, format, raw, strict, tool, project, since, yes, dryRun, forget } = args;
    assertNamed(files, forget);
    if (args.hook === true) {
      const { startAside } = await import('../install/start-aside.ts');
      return startAside(context);
    }
    if (args.install === true || args.uninstall === true) {
      if (files.length > 0)
        throw new UsageError('cannot install an import of some files: it imports what is new');
      const { installImports } = await import('../install/imports.ts');
      const act = args.install === true ? 'install' : 'uninstall';
      return await installImports(
        { act, timer: args.timer === true, yes: yes === true, dryRun: dryRun === true },
        context,
      );
    }
    if (args.timer === true) throw new UsageError('cannot use --timer without --install or --uninstall');
    if (forget !== undefined) {
      if (files.length > 0) throw new UsageError(`cannot import and forget '${forget}' at once`);
      const { forgetSource } = await import('../forget/forget.ts');
      return await forgetSource(forget, { dryRun }, context);
    }
    // With `--yes` a file that is named is what it is without: nothing is asked.
    const narrows = [tool, project, since].some((one) => one !== undefined);
    if (files.length === 0 || narrows || (await hasDirectory(files, context.io))) {
      if (as !== undefined)
        throw new UsageError(`cannot import what is found as '${as}': it is the name of one session`, {
          hint: 'name one file, without an option that searches',
        });
      if (files.includes(stdinWord)) throw new UsageError('cannot search stdin for transcripts');
      if (format !== 'auto' && format !== 'claude-code')
        throw new UsageError(`cannot search for files of the format ${format}: name each`);
      const { importFound } = await import('../import/found.ts');
      const from = sinceOf(since, context.io.now());
      const wanted = { paths: files, tool, project, since: from, raw, strict, yes, dryRun };
      const act = async () => await importFound(wanted, context);
      if (args.turn !== true) return await act();
      const { inTurn } = await import('../install/in-turn.ts');
      return await inTurn(context, act);
    }
    const how = { as, raw, strict, format: format as NamedFormat };
    return await importNamed(files, { ...how, dryRun: dryRun === true }, context);
  },
});

/**
 * An empty word, such as a variable of a shell that is not set, would be the working directory: what lies there would be forgotten.
 * @throws UsageError
 */
function assertNamed(files: readonly string[], forget: string | undefined): void {
  if (files.includes('')) throw new UsageError("cannot import '': it names no file");
  if (forget === '') throw new UsageError('cannot use --forget: it is empty');
}

/** Whether one of the files is a directory. */
async function hasDirectory(files: readonly string[], { cwd }: Pick<Io, 'cwd'>): Promise<boolean> {
  for (const file of files) {
    const found = file === stdinWord ? undefined : await stat(resolve(cwd, file)).catch(() => undefined);
    if (found?.isDirectory() === true) return true;
  }
  return false;
}

/** @throws UsageError */
function sinceOf(since: string | undefined, now: number): number | undefined {
  const from = since === undefined ? undefined : timeOf(since, now);
  if (since !== undefined && from === undefined)
    throw new UsageError(`cannot import what changed since '${since}': it is no time`, {
      hint: 'write it as 2026-11-21, 2026-11-21T10:00, 2h or yesterday',
    });
  return from;
}
