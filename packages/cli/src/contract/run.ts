import { z } from 'zod';
import { conflicts, ForkPreview } from './fork.ts';
import {
  busy,
  type Contracts,
  count,
  document,
  dryRun,
  type Form,
  flag,
  lines,
  listed,
  listOf,
  names,
  noSession,
  object,
  parent,
  printed,
  session,
  shape,
  text,
} from './form.ts';
import { outcomeText, task } from './session.ts';

/** A number of tokens as a provider reports it, which need not be a whole number. */
export const tokenCount = (what: string): z.ZodNumber => z.number().describe(what);

/** Token counts that do not overlap. */
export const tokens: Readonly<Record<string, z.ZodNumber>> = {
  input: tokenCount('input tokens, without those of a cache'),
  output: tokenCount('output tokens, without reasoning'),
  reasoning: tokenCount('tokens of reasoning'),
  cache_read: tokenCount('tokens read from a cache'),
  cache_write: tokenCount('tokens written to a cache'),
};

const Tokens: z.ZodObject = z
  .strictObject(tokens)
  .meta({ id: 'Tokens', description: 'Token counts that do not overlap.' });

const OneRun: z.ZodObject = shape('OneRun', 'A run and how it ended.', {
  session,
  run: text('ULID of the run, in the meta of its entries'),
  text: text('text of the last answer'),
  finish: z
    .enum(['stop', 'length', 'halted', 'waiting', 'aborted', 'filtered', 'error'])
    .describe(
      'how it ended; `length`: the answer was cut, `filtered`: a content filter cut it, `halted`: a limit was reached, `waiting`: a call needs an answer',
    ),
  steps: count('number of model calls'),
  usage: Tokens.describe('tokens of its model calls'),
  from: count('first position of the run'),
  to: count('last position of the run'),
  error: object('present when the model failed', {
    code: z.string(),
    message: z.string(),
    retry_at: z.string().optional().describe('when its provider takes calls again, if it said so'),
  }).optional(),
  nothing_to_continue: z
    .literal(true)
    .optional()
    .describe(
      'present on a run without a prompt that found nothing unfinished: no model was called, and nothing was written',
    ),
});

export const Run: z.ZodObject = OneRun.extend({
  other_runs: z.array(OneRun).optional().describe('other runs of the command, for messages that waited'),
}).meta({ id: 'Run', description: 'The run that a command started, and how it ended.' });

/** What happens to children during a run or a delegation. Lines have the fields of `SessionEvent` in the library. */
const childLines = [
  z
    .strictObject({
      type: z.literal('child-progress').describe('the line is about a child'),
      session: text('name of the child'),
      task: text('its task').optional(),
      toolCallId: text('id of the call that delegates, if one does').optional(),
      state: z
        .enum(['started', 'running', 'waiting', 'ended'])
        .describe('`waiting`: for the answer to a call, its own or one below'),
      phase: z
        .enum(['reasoning', 'answering', 'tool', 'retrying'])
        .optional()
        .describe('what it does, while it runs'),
      steps: count('its model calls so far'),
      tokens: tokenCount('their tokens'),
      tool: text('the tool that runs, or the tools that wait').optional(),
      text: text('the line that it writes; at its end, the beginning of its result').optional(),
      status: task.optional().describe('how its task ended'),
      error: text('why it failed').optional(),
    })
    .meta({
      id: 'ChildProgress',
      description: 'How a child does: a line at its start, its end, and between.',
    }),
  z
    .strictObject({
      type: z.literal('tool-waiting').describe('the line is about calls that wait'),
      calls: listOf('calls that wait', {
        toolCallId: text('id of the call, as `tape approve` of this session takes it'),
        name: text('name of the tool'),
        display: text('the argument that represents the call').optional(),
        input: z.unknown().describe('input of the call'),
        for: z.enum(['approval', 'result', 'tool', 'children']).describe('what it waits for'),
        session: text('the session below whose call it is; absent for its own').optional(),
        claims: names('with `approval`: all that the call claims to do').optional(),
        offers: names('with `approval`: what an answer can be given for, for good').optional(),
        askedFor: names(
          'senders of messages whose rules ask again, whatever answer counts for good',
        ).optional(),
      }),
    })
    .meta({ id: 'ToolWaiting', description: 'Calls of a session, or of sessions below it, wait.' }),
] as const;

const itemId = text('id of the inbox item; of a message that was on the tape before, its key');

const sent: readonly Form[] = [
  document(
    Run.extend({ id: itemId, state: z.literal('started').describe('the command ran it') }),
    'when the command runs the session',
  ),
  ...printed(
    {
      session,
      id: itemId,
      state: z
        .enum(['queued', 'started', 'steered', 'interrupted'])
        .describe(
          '`started`: another process runs it, or it was on the tape before; `steered` and `interrupted` by the `--mode` of `send`',
        ),
    },
    'when another process or none runs it, or the item existed before',
  ),
];

const Recovered: z.ZodObject = shape('Recovered', 'What a recovery did with a session.', {
  session,
  id: text('ULID'),
  act: z
    .enum(['continue', 'abort', 'merge', 'answer', 'wait', 'leave'])
    .describe(
      '`merge`: it had ended, and only its result was due; `answer`: its run was over, and only calls of it lacked results; `leave`: another process runs it',
    ),
  model: text('name of the model that it continues with').optional(),
  view: object('digest of its view, as of `tape view --manifest`', {
    before: text('as the killed process left it'),
    after: text('after the recovery; absent with `--dry-run`').optional(),
  }),
  head: object('its last position', {
    before: count('as the killed process left it'),
    after: count('after the recovery; absent with `--dry-run`').optional(),
  }),
  saved: flag('a part of an answer was saved, and not on the tape yet'),
  calls: listOf('calls that had no result', {
    call: z.string(),
    tool: z.string(),
    became: z
      .enum(['repeated', 'unknown', 'not-run', 'answered', 'open'])
      .describe(
        '`repeated`: it ran again; `unknown`: it may have run, and its result says so; `open`: it waits',
      ),
    for: z
      .enum(['approval', 'result', 'tool', 'children'])
      .describe('what an open call waits for; `tool`: approved, it waits for a run with its tool')
      .optional(),
  }),
  queued: count('messages and answers that are left in its inbox'),
});

const delegated = {
  parent,
  children: listOf('one for each task, in the order of the tasks', {
    session: z.string(),
    status: task,
    merged: z.boolean(),
    repeated: flag('true when an earlier command with this task or `--key` had forked the child'),
    seq: count('position of the merge; null without one').nullable(),
    conflicts,
    text: outcomeText,
    usage: Tokens.nullable().describe('null when nothing ran'),
    output: z.unknown().optional().describe('result in the form of `--schema`'),
    error: text('why it failed, or could not be merged').optional(),
  }),
};

const Delegated: z.ZodObject = shape(
  'Delegated',
  'The children that a command delegated to, and how they ended.',
  delegated,
);

const Worked: z.ZodObject = shape('Worked', 'What a worker has done, when it is stopped.', {
  ended: count('children that ended, or wait for an answer'),
  gave_back: count('children that it left to other workers'),
});

const workerLines = [
  z
    .strictObject({
      type: z.literal('child-started').describe('the line is about a child that begins'),
      session: text('name of the child'),
      parent,
      depth: count('number of forks between it and its root'),
    })
    .meta({ id: 'ChildStarted', description: 'A worker begins a child, or continues it.' }),
  z
    .strictObject({
      type: z.literal('child-ended').describe('the line is about a child that ended'),
      session: text('name of the child'),
      status: task
        .nullable()
        .describe('how its task ended; `running`: it waits for an answer; null: it could not be read'),
    })
    .meta({ id: 'ChildEnded', description: 'A worker is done with a child.' }),
  z
    .strictObject({
      type: z.literal('child-given-back').describe('the line is about a child that is left to others'),
      session: text('name of the child'),
      error: text('why'),
    })
    .meta({ id: 'ChildGivenBack', description: 'A worker leaves a child to another one.' }),
] as const;

/** Verbs that run sessions, or act on runs. */
export const runVerbs: Contracts = {
  run: {
    json: [
      document(Run),
      ...printed(
        {
          session,
          text: text('text of the last answer, possibly incomplete'),
          finish: z
            .enum(['stop', 'length', 'halted', 'waiting', 'aborted', 'filtered', 'error', 'interrupted'])
            .describe('`interrupted`: its process died'),
          error: object('why the run failed or stopped', { message: z.string() }).optional(),
        },
        'with `--attach`',
      ),
      lines(
        z.looseObject({
          type: text('type of the event; its fields are those of `SessionEvent` in the library'),
        }),
        'with `--attach` and `--jsonl`',
      ),
      lines(
        z.union([...childLines, Run]),
        'with `--jsonl`: lines about children and calls that wait, and at the end the run',
      ),
    ],
    quiet: 'the answer, without status on stderr',
    exits: {
      1: 'the model failed, a content filter cut off its answer, or the run stopped at `--max-steps`',
      2: 'no model, no key for it, or a script or configuration that cannot be used or is not trusted',
      4: `${busy[4]}, or it is archived`,
      6: 'a call waits for an answer',
      130: 'interrupted, or aborted by another process; the answer so far is on the tape',
    },
  },
  chat: {
    json: listed(Run),
    quiet: 'the answers, without status on stderr',
    exits: {
      1: 'a run of a line of stdin failed or stopped early; the lines after it were not sent',
      2: 'no model, no key for it, a script or configuration that cannot be used or is not trusted, or no such command in a line',
      4: `${busy[4]}, or it is archived`,
      6: 'a call waits for an answer; the lines of stdin after it were not sent',
      130: 'interrupted, or aborted by another process; the answer so far is on the tape',
    },
  },
  send: {
    json: sent,
    quiet: 'the answer, or the id of the message, without status on stderr',
    exits: {
      1: 'the run that it started failed, or stopped early',
      2: 'the text is empty, or the model cannot be used',
      4: 'the key was used before, for another message, or the session is archived',
      6: 'another process runs the session, or there is no model: the message is in the inbox; or the run waits for an answer',
      130: 'interrupted; the message is on the tape or in the inbox',
    },
  },
  approve: {
    json: sent,
    quiet: 'the answer, or the id of the inbox item, without status on stderr',
    exits: {
      1: 'the run that continued failed or stopped early',
      2: 'several calls are pending and CALL is missing, the answer has the wrong type, or the model cannot be used',
      3: 'no such session, or no such pending call',
      4: 'the session is archived',
      6: 'another process runs the session, or there is no model: the answer is in the inbox; or another call waits',
      130: 'interrupted; the answer so far is on the tape',
    },
  },
  delegate: {
    json: [
      ...printed(delegated),
      ...printed(
        {
          parent,
          children: z.array(ForkPreview).describe('one for each task'),
          dry_run: dryRun,
        },
        'with `--dry-run`',
      ),
      lines(
        z.union([...childLines, Delegated]),
        'with `--jsonl`: lines about the children, and at the end the same object',
      ),
      ...printed(
        {
          parent,
          children: listOf('one for each task, in the order of the tasks', {
            session: z.string(),
            status: task,
            merged: flag('true for a child that had ended before'),
          }),
        },
        'with `--background`',
      ),
    ],
    quiet: 'the names of the children, one a line',
    exits: {
      1: 'a child did not complete, or could not be merged; with `--engine pg-boss`, the queue cannot be used',
      6: 'all children have completed, or wait for an answer',
      2: 'no model, no key for it, or a script or configuration that cannot be used or is not trusted; nothing was forked',
      3: 'no such session or anchor',
      4: 'a child would exceed the limits of the deck or of a budget, and none was forked; or `--resume` names a child that was discarded; or the session, or that child, is archived',
      130: 'interrupted; the work of the children is merged as aborted',
    },
  },
  worker: {
    json: [
      document(Worked),
      lines(
        z.union([...workerLines, Worked]),
        'with `--jsonl`: lines about the children, and at the end the same object',
      ),
      ...printed(
        {
          healthy: flag('a worker of this machine is alive'),
          why: text('why it is not healthy').optional(),
          workers: listOf('the workers that were heard from lately, of all machines', {
            host: text('name of the machine'),
            pid: count('process id'),
            seen_at: text('when it was heard from last, in ISO 8601'),
          }),
          waiting: count('children that wait for a worker'),
          running: count('children that workers run'),
        },
        'with `--health`',
      ),
    ],
    quiet: 'nothing',
    exits: {
      1: 'the server cannot be used; with `--health`: no worker of this machine is alive',
      2: 'the home is in files, or a script or configuration cannot be used or is not trusted',
      3: 'with `--health`: the home has no tapes yet',
    },
  },
  abort: {
    json: printed({
      session,
      aborted: flag('a run was stopped; false when nothing ran, or the run has not ended yet'),
      children: names(
        'children whose runs received the abort, when the session itself did not run',
      ).optional(),
    }),
    quiet: 'the name',
    exits: { ...noSession, 6: 'the run has not ended after `--wait`' },
  },
  recover: {
    json: printed({
      resumed: names('sessions that continued, and ended'),
      aborted: names('sessions that `--abort` ended'),
      merged: names('children that are merged now'),
      waiting: names('sessions that wait for the answer to a call'),
      busy: names('sessions that another process runs, or whose parent it writes'),
      failed: listOf('sessions that could not continue or be merged', {
        session: z.string(),
        message: z.string(),
        code: z
          .string()
          .optional()
          .describe('of a model that cannot be used, or a session that cannot be read'),
      }),
      sessions: z.array(Recovered).describe('what was done with each, children before their parents'),
      dry_run: dryRun.optional(),
    }),
    quiet: 'the names of the merged children, one a line',
    exits: {
      1: 'some failed',
      2: 'a named session has no model that can be used, no model was given for one, or a configuration cannot be used or is not trusted',
      3: 'no such session, or no tape home',
      6: 'some run in other processes, or wait for an answer',
    },
  },
};
