import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { TranscriptFormat } from '@tapedeck/runtime/import';
import { isBundle } from '@tapedeck/tape/internal';
import type { Answer, Context } from '../context.ts';
import { describeError } from '../errors/describe.ts';
import { UsageError } from '../errors/kinds.ts';
import { errorText } from '../errors/print.ts';
import { jsonText, pathText } from '../escape.ts';
import { exit } from '../exit.ts';
import { beginningOf, headOf, importBundle } from '../import/bundle.ts';
import { parted } from '../import/conversations.ts';
import { knownSources } from '../import/known-sources.ts';
import { namedPath } from '../import/named-path.ts';
import { importTranscript, type TranscriptChoices } from '../import/transcript.ts';
import { stdinWord, timeOf } from '../input.ts';
import { type Io, PipeClosed } from '../io.ts';
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
    const narrows = [tool, project, since, dryRun].some((one) => one !== undefined);
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
      return await importFound(
        { paths: files, tool, project, since: from, raw, strict, yes, dryRun },
        context,
      );
    }
    const [file = '', ...others] = files;
    const how: How = {
      as,
      raw,
      strict,
      format: format as How['format'],
      table: await knownSources(context.home),
    };
    if (others.length === 0) return await importFile(file, how, context);
    if (as !== undefined)
      throw new UsageError(`cannot import ${files.length} files as '${as}': it is the name of one session`, {
        hint: 'import them without --as, or one by one',
      });
    if (files.filter((one) => one === stdinWord).length > 1)
      throw new UsageError('cannot import stdin twice: it is read once');
    return await importAll(files, how, context);
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

interface How extends Omit<TranscriptChoices, 'format'> {
  readonly format: 'auto' | 'bundle' | TranscriptFormat;
}

/** Imports files one after the other, each with its receipt. Returns the exit code of the first that failed, as a whole or in part. */
async function importAll(files: readonly string[], how: How, context: Context): Promise<number> {
  const { io, options, inHome } = context;
  const asJson = options.json === true || options.jsonl === true;
  const done = new Map<number, object>();
  let failed: number | undefined;
  // A copy that was made since finds what its source has got, as where `knownFirst` orders what was found.
  const isKnown = (file: string) => (how.table?.at(resolve(io.cwd, file))?.at ?? 0) > 0;
  for (const [at, file] of parted([...files.entries()], ([, one]) => isKnown(one)).flat()) {
    const answer = async (receipt: Answer) => {
      const json = { file: file === stdinWord ? '-' : file, ...(receipt.json as object) };
      if (options.json === true) done.set(at, json);
      else await context.answer({ ...receipt, json });
    };
    try {
      const code = await importFile(file, how, { ...context, answer });
      if (code !== exit.done) failed ??= code;
    } catch (error) {
      if (error instanceof PipeClosed || io.interrupted) throw error;
      const { hint, exit: code } = describeError(error);
      io.err(errorText(error, { asJson, hint: hint && inHome(hint) }));
      failed ??= code;
    }
  }
  if (done.size > 0) await io.out(`${jsonText(files.flatMap((_, at) => done.get(at) ?? []))}\n`);
  return failed ?? exit.done;
}

/** Imports a file, and prints its receipt. Returns 1 if a part of it was left out. */
async function importFile(
  file: string,
  { as, raw, strict, format, table }: How,
  context: Context,
): Promise<number> {
  const { io } = context;
  const isStdin = file === stdinWord;
  const { path, stat: found } = isStdin ? { path: 'stdin', stat: undefined } : await namedPath(file, io);
  // Such as `<(…)` of a shell.
  const isPipe = found === undefined || found.isFIFO();
  // Without a word, one to which no program writes would look as if the import had stopped.
  if (isPipe && !isStdin && !/^\/(?:dev\/fd|proc)\//.test(path))
    context.status(`Reading ${pathText(file)}, a pipe, until the program ends that writes to it`);
  // What a pipe has given is gone from it: it is read once.
  const piped = isPipe ? await beginningOf(path, isStdin ? io.stdin : createReadStream(path)) : undefined;
  if (format === 'bundle' || (format === 'auto' && (await isBundle(piped?.head ?? (await headOf(path)))))) {
    await importBundle(piped?.source ?? path, { as, raw }, context);
    return exit.done;
  }
  const source = { path, named: isStdin ? 'stdin' : file, chunks: piped?.chunks };
  return await importTranscript(source, { as, raw, strict, format, table }, context);
}
