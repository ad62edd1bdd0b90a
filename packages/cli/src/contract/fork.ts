import { z } from 'zod';
import {
  type Contracts,
  count,
  document,
  dryRun,
  type Form,
  flag,
  listOf,
  noPoint,
  noSession,
  object,
  parent,
  printed,
  range,
  session,
  shape,
  text,
  whole,
} from './form.ts';

const previewEntries = listOf('entries that would be written', {
  seq: whole,
  kind: z.string(),
  name: z.string().optional(),
});

const inherited = {
  parent,
  from_anchor: text('anchor where the inherited part begins; null without `--since`').nullable(),
  base: count('last inherited position; those of the child follow it'),
  range: range.nullable().describe('inherited positions, both ends included; null for none'),
  snapped_from: count('requested cut, when it lay inside a batch of tool calls').optional(),
};

const forked = z.strictObject({
  session: text('name of the child'),
  tape: text('tape of the child'),
  ...inherited,
  repeated: flag('true when the key made this child before'),
});

export const ForkPreview: z.ZodObject = shape('ForkPreview', 'A fork that was not made.', {
  session: text(
    'name of the child; null without `--as` and `--key`, where each fork gets a new name',
  ).nullable(),
  ...inherited,
  repeated: flag('true when the key made this child before: nothing would be written'),
  entries: previewEntries,
  dry_run: dryRun,
});

const complete = 'false when a tool ran that does not declare its files: there may be more conflicts';
export const conflicts: z.ZodType = listOf('keys and files that both sides wrote', {
  what: text('`state:KEY` or `file:PATH`'),
  child: count('position at which the child wrote it'),
  parent: count('position at which the parent has it'),
  via: text('sibling whose merge wrote it').optional(),
});

const child = text('name of the child');
const merged = z.strictObject({
  parent,
  child,
  state: z.enum(['merged', 'discarded', 'queued']).describe('`queued`: it is in the inbox of the parent'),
  seq: count('position of the merge on the tape of the parent; null while queued').nullable(),
  range: range.nullable().describe('positions of the child that the merge covers; null while queued'),
  repeated: flag('true when the merge existed before'),
  complete: z.boolean().nullable().describe(complete),
  conflicts,
});

const mergePreview: Form = document(
  merged.extend({
    entries: previewEntries,
    text: text('text of the message; null for none').nullable(),
    dry_run: dryRun,
  }),
  'with `--dry-run`',
);

const DiffSide: z.ZodObject = shape('DiffSide', 'One side of a comparison, after the base.', {
  session,
  at: count('position that was compared'),
  ranges: z.array(range).describe('positions that only this side has'),
  entries: count('number of entries'),
  read: count('how many of the newest were read for what follows; absent when all were').optional(),
  messages: object('number of messages', { user: whole, assistant: whole, merge: whole }),
  recent: listOf('the last messages, at most `-n`, cut; absent with `--stat`', {
    seq: whole,
    from: z.enum(['user', 'assistant', 'merge']),
    text: z.string(),
  }).optional(),
  tools: listOf('calls of each tool', { tool: z.string(), calls: whole }),
  files: listOf('files that tools read or wrote, and where last', {
    path: z.string(),
    wrote: z.boolean(),
    seq: whole,
  }),
  state: listOf('keys of the state of anchors', { key: z.string(), seq: whole }),
  answer: count('position of its last answer').nullable(),
  complete: flag('false when there are more tools, files or keys, or not all entries were read'),
});

const diffed = z.strictObject({
  base: object('null when the sessions share no tape', {
    session: text('session whose tape has the base'),
    seq: count('both show the same up to it'),
    shared: range.nullable().describe('positions that both have'),
  }).nullable(),
  a: DiffSide.describe('first side'),
  b: DiffSide.describe('second side'),
  both: z.array(z.string()).describe('`state:KEY` or `file:PATH` that both wrote since the base'),
});

/** Verbs that fork sessions, merge them and compare them. */
export const forkVerbs: Contracts = {
  fork: {
    json: [
      document(
        forked.extend({
          workspace: text('directory of its worktree, with `--workspace worktree`').optional(),
        }),
      ),
      document(ForkPreview, 'with `--dry-run`'),
    ],
    quiet: 'the name of the child',
    exits: {
      1: 'the worktree cannot be made; the child exists, and gets the worktree when it runs',
      2: 'the options contradict each other, the name is not allowed, or there is no repository for a worktree',
      3: 'no such session, anchor or position',
      4: 'the name is taken, or the key made another child',
    },
  },
  branch: {
    json: [document(forked)],
    quiet: 'its name',
    exits: {
      2: 'the options contradict each other, the name is not allowed, or a rewind hides the point',
      3: 'no such session, anchor or position',
      4: 'the session runs, the name is taken, or the key made another child',
    },
  },
  merge: {
    json: [
      document(
        merged.extend({
          artifact: object('patch of its worktree; see [format.md](format.md#worktrees)', {
            type: z.literal('patch'),
            blob: z.string(),
            bytes: whole,
            files: z.array(
              z.strictObject({
                path: z.string(),
                change: z.enum(['added', 'changed', 'deleted', 'renamed']),
                from: z.string().optional(),
                mode: z.string().optional(),
              }),
            ),
            base: z.string(),
            tree: z.string(),
          }).optional(),
          applied: object('present with `--apply`', {
            state: z
              .enum(['applied', 'already', 'empty'])
              .describe('`already`: the files had the changes before; `empty`: the child changed no file'),
            dir: z.string(),
            files: z.array(z.string()).describe('files of `dir` that were changed'),
          }).optional(),
          kept: object('its worktree, when it cannot be removed yet', {
            path: z.string(),
            why: z.string(),
          }).optional(),
        }),
      ),
      ...printed({ child, complete: z.boolean().describe(complete), conflicts }, 'with `--check`'),
      mergePreview,
    ],
    quiet: '`PARENT@SEQ`, or the id of the inbox item',
    exits: {
      1: 'the text cannot be written: no summary could be made, or there is no structured result; or the changes in the worktree cannot be recorded, or not be written to the files, which are as before',
      2: 'the options contradict each other, or `--into-dir` is in no git repository',
      3: 'no such session, or, with `--apply`, the child has no worktree',
      4: 'the child runs or has open calls, was merged in another way, was not forked from the parent, conflicts with `--on-conflict refuse`, or does not fit the files with `--apply`, and nothing was merged; or the parent is archived',
      6: 'another process still writes the parent after `--wait`: the merge is in its inbox',
    },
  },
  discard: {
    json: [document(merged), mergePreview],
    quiet: '`PARENT@SEQ`, or the id of the inbox item',
    exits: {
      ...noSession,
      4: 'the child runs, has open calls or was merged; or the parent is archived',
      6: 'another process still writes the parent after `--wait`: the discard is in its inbox',
    },
  },
  diff: {
    json: [
      document(
        diffed.extend({
          answers: text(
            'last answers as a unified diff, empty when they are equal; null when one is missing, or they have too little in common',
          ).nullable(),
        }),
      ),
      document(diffed, 'with `--stat`'),
    ],
    quiet: 'the common base as `SESSION@SEQ`, or nothing',
    exits: { ...noPoint },
  },
};
