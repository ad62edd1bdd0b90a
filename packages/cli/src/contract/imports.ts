import { z } from 'zod';
import {
  type Contracts,
  count,
  flag,
  lines,
  listed,
  listOf,
  logEmptied,
  mark,
  names,
  printed,
  shape,
  text,
  whole,
} from './form.ts';

const Counts: z.ZodObject = shape('Counts', 'What was read of a transcript.', {
  records: count('JSON objects'),
  messages: count('messages of users and agents'),
  off_path: count('records beside the conversation'),
  repaired: count('tool calls without a result, answered as interrupted'),
  compactions: count('boundaries at which the agent compacted the conversation'),
  merged: count('messages that were made of several records'),
  reordered: count('results that were moved to their message'),
  dangling: count('records whose parent is not in the file, or leads in a circle'),
  skipped: count('lines without a record, and records too large to keep'),
  glued: count('lines with several records'),
  truncated: count('1 where the last line ends inside a record'),
  irregular: count('records that were taken though something in them is wrong'),
});

/** What `import` says of a bundle, of a transcript, and of each of several files beside that. */
const ofBundle = {
  session: text('name of the exported session here'),
  sessions: count('number of sessions in the bundle'),
  entries: count('number of new entries; 0 when all existed before'),
  filled: count('entries that were here, and got their content'),
  absent: count('entries of these sessions whose content is not here'),
  names: names('names of the sessions'),
  became: z
    .record(z.string(), z.enum(['new', 'grown', 'same', 'copy', 'kept']))
    .describe('what became of each session; `kept`: an ancestor that went on in another way here'),
  aliases_taken: names('other names that name something else here'),
  redacted_elsewhere: names('entries that were redacted elsewhere, and have their content here'),
};
/** What transcripts brought. */
const sums = {
  sessions: count('number of sessions that have it: one for each branch and subagent'),
  entries: count('number of new entries; 0 when all existed before'),
  repaired: count('tool calls without a result, answered as interrupted'),
  derived: count('edges that no record names, which this import concluded from others'),
  redacted: count('secrets that were replaced in new entries'),
  omitted: count('new entries that were too large, and say how large'),
  names: names('names of the sessions'),
};
/** What was found in files that had to be read. */
const ofReading = {
  counts: Counts.readonly()
    .describe(
      'what was read, of all of a file in which something is new; absent where nothing had to be read',
    )
    .optional(),
  bad_lines: z
    .array(z.strictObject({ line: whole, offset: whole, why: z.string() }))
    .describe(
      'places of lines that were left out, and what is wrong with each: those that are no record, and a last one that ends inside a record; at most 100',
    )
    .optional(),
  irregular_lines: z
    .array(z.strictObject({ line: whole, offset: whole, why: z.string() }))
    .describe(
      'places of lines that were taken though something in them is wrong, such as several records on one, one of another format, or an id that was used before; at most 100',
    )
    .optional(),
};
const inFile = { file: text('the file, as it was named') };
/** A transcript that `import` found on this machine. */
const foundFile = {
  file: text('its path'),
  tool: text('the program that wrote it'),
  session: text("the tool's own id of what it holds"),
  role: z.enum(['main', 'subagent', 'part']).describe('its place in its conversation'),
  project: text('working directory that its first records name').optional(),
  bytes: count('its size'),
};
const found = {
  tools: listOf('what was found of each tool', {
    tool: text('its name'),
    read: flag('its transcripts are imported, and not only recognised'),
    conversations: count('number of conversations'),
    files: count('number of files'),
    bytes: count('their size'),
    new_files: count('number of files that are new, or have changed'),
    new_bytes: count('their size'),
    oldest: text('time of the oldest record, or of the oldest file'),
  }),
  unknown: listOf('files that look like transcripts of no tool that is known', {
    file: text('its path'),
    like: text('what it looks like').optional(),
  }),
  excluded: count('files and directories that a pattern left out'),
  forgotten: count('files of conversations that were forgotten'),
  empty: count('files without content'),
};
const leftOutFiles = listOf('files that were left out, whole or in part', {
  file: text('its path'),
  session: text('the session of it that took nothing; others may have what is new').optional(),
  why: text('why'),
});
const dryFile = { ...foundFile, new: flag('there is something in it to import') };
const importedFile = {
  ...foundFile,
  seen: z
    .enum(['new', 'unchanged', 'grown', 'moved', 'compressed', 'copied', 'rewritten', 'version'])
    .describe('what it is to what was read before'),
  entries: count('number of new entries'),
  redacted: count('secrets that were replaced in them').optional(),
  names: sums.names.optional(),
  ...ofReading,
  error: z
    .strictObject({ code: text('why'), message: text('why') })
    .describe('why it was left out')
    .optional(),
};
/** A transcript that the user named, with the other files of its conversation. */
const ofTranscriptFile = {
  ...sums,
  ...ofReading,
  files: listOf('the files of its conversation; none for a stream', importedFile),
  left_out: leftOutFiles,
};
const ofFound = {
  ...sums,
  ...found,
  files: listOf('what became of each file', importedFile),
  left_out: leftOutFiles,
  gone: names('files of earlier imports that are not there any more; their sessions stay'),
  gone_sessions: names('names of the sessions that this import has marked: no file has them any more'),
};

/** The verb that takes transcripts of other programs, and bundles. */
export const importVerbs: Contracts = {
  import: {
    json: [
      ...printed(ofBundle, 'for a bundle'),
      ...printed(ofTranscriptFile, 'for a transcript'),
      ...listed(
        z.union([
          z.strictObject({ ...inFile, ...ofBundle }),
          z.strictObject({ ...inFile, ...ofTranscriptFile }),
        ]),
        'for several files',
      ),
      ...printed(ofFound, 'for what is found'),
      lines(z.strictObject(importedFile), 'for what is found, with `--jsonl`'),
      ...printed(
        {
          dry_run: mark('nothing was written'),
          ...found,
          files: listOf('each file', dryFile),
          left_out: leftOutFiles,
        },
        'with `--dry-run`',
      ),
      lines(z.strictObject(dryFile), 'with `--dry-run --jsonl`'),
      ...printed(
        {
          forgotten: names('paths of the files that are not taken again'),
          names: names('names of the sessions that came from them'),
          entries: count('number of entries that were erased'),
          quoted_by: names(
            'files that may still have what was said: raw traffic, and copies of the database',
          ),
          log_emptied: logEmptied.optional(),
          dry_run: mark('nothing was written').optional(),
        },
        'with `--forget`',
      ),
      ...printed(
        {
          by: z
            .enum(['claude-code', 'launchd', 'systemd', 'cron'])
            .describe('what starts the imports; null when nothing does')
            .nullable(),
          places: names('the files, or the crontab'),
          state: z
            .enum(['shown', 'installed', 'removed', 'unchanged'])
            .describe('what became of them; `shown`: they were not written'),
          config: text('what they have then, where nothing was before; null for `--uninstall`').nullable(),
          other_home: text('the home into which it imported before, where that is another one').optional(),
          not_started: text('why a timer that was written does not run').optional(),
        },
        'with `--install` or `--uninstall`',
      ),
    ],
    quiet:
      'the name of the session, for several files of each; with `--dry-run` the files with something new, with `--forget` those that it names',
    exits: {
      1: 'files were left out, or sessions of one; or the file cannot be read, is empty, or is neither a whole bundle, a transcript of Claude Code nor a saved session',
      2: 'the name is not allowed',
      3: 'there is no such file',
      4: 'another session has the name, a session went on in another way here, was deleted or is being written, or the file contradicts an earlier import of it',
    },
  },
};
