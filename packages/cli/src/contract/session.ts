import { z } from 'zod';
import {
  busy,
  type Contracts,
  count,
  document,
  dryRun,
  flag,
  graphDiverged,
  graphStanding,
  listed,
  listOf,
  mark,
  names,
  noSession,
  object,
  parent,
  printed,
  range,
  repeated,
  session,
  shape,
  text,
  whole,
} from './form.ts';

const lifecycle = z.enum(['active', 'archived', 'destroyed', 'purged']);

/** State of a task: the work that a session was forked for. */
export const task: z.ZodType = z.enum([
  'running',
  'completed',
  'halted',
  'failed',
  'aborted',
  'filtered',
  'orphaned',
]);

const standing = {
  lifecycle: lifecycle.describe(
    'lists leave out those that are `archived`, and `destroyed` (deleted) and `purged` ones but with `--deleted`',
  ),
  task: task.optional().describe('state of the work that it was forked for'),
  delivery: z
    .enum(['merged', 'discarded'])
    .optional()
    .describe(
      'whether its result was merged into the parent or discarded; absent after an undo of the merge',
    ),
};

/** What a link has made of the place of a session in the tree. */
const linkFields = () => ({
  parent: z.string().nullable().describe('the parent in the tree from then on; null for a root'),
  type: text('what the edge is: `clear`, `moved` …'),
  derived: flag('whether no record names the edge'),
  evidence: text('what it was concluded from, or why it was made').optional(),
  call: text('id of the call of the parent that started the session').optional(),
  seq: count(
    'the position of the parent before that call: the session is shown as if forked there',
  ).optional(),
});

const origin = () => ({
  parent: parent.optional(),
  from_anchor: text('anchor where the inherited part begins; present with `parent`').nullable().optional(),
  link: z
    .strictObject(linkFields())
    .optional()
    .describe('its place in the tree, where a link has given it another one than the fork'),
});

const sourceGone = text('the file that it was imported from, where an import found that it is gone');

export const Session: z.ZodObject = shape('Session', 'A session in a list.', {
  session,
  id: text('ULID'),
  kind: text(
    '`subagent` for a fork, `summarizer` for the writer of a summary, else `session` or the `--kind` of `new`',
  ),
  ...standing,
  ...origin(),
  merged_at: text('time of the last merge or discard; present with `delivery`').optional(),
  title: text(
    'the title of its last rename, else the one that it was created with, else the one that a model wrote; in lists else the beginning of its first prompt or task',
  ).optional(),
  source_gone: sourceGone.optional(),
  aliases: names('its other names').optional(),
  ephemeral: mark('lists leave the session out').optional(),
  interrupted: mark('its process died during a run, which `tape recover` continues').optional(),
  head: count('last position'),
  updated_at: text('time of the last change'),
  last_message_at: text(
    'latest time of its messages, at the source for an import; absent without one',
  ).optional(),
  message_count: count(
    'number of its own messages: each message of a user, an agent or a merge, and each answer',
  ),
  children: object(
    'number of its children, of those neither merged, discarded nor archived, and of those merged',
    { all: whole, open: whole, merged: whole },
  ).optional(),
  tokens: count('all tokens of its own model calls, as `total` of `usage`').optional(),
});

/**
 * Creates new schemas for each shape: a shape that refers to itself cannot share the schemas of its fields.
 */
const nodeFields = () => ({
  session,
  id: text('ULID'),
  kind: text('as in `Session`'),
  status: text('delivery, else task, else lifecycle'),
  lifecycle: text('as in `Session`'),
  task: text('as in `Session`').optional(),
  delivery: text('as in `Session`').optional(),
  source_gone: text('as in `Session`').optional(),
  ...origin(),
  range: range.nullable().optional().describe('inherited positions, both ends included; null for none'),
  created_at: text('time'),
  merges: listOf('merges and discards of the session, oldest first', {
    type: z.enum(['merge', 'discard']),
    into: z.string().optional(),
    seq: whole.optional(),
    received: count(
      'position of `into` where that had got the result, of a merge that an import found',
    ).optional(),
    range: range.optional(),
    at: z.string(),
    undone: mark('a rewind of `into` hides the merge, as an undo does').optional(),
  }),
  get children(): z.ZodType {
    return z.array(Node).describe('forks, in spawn order');
  },
});

const Node: z.ZodObject = z
  .strictObject(nodeFields())
  .meta({ id: 'Node', description: 'A session in the graph, with its descendants.' });

const Root: z.ZodObject = z
  .strictObject({ ...nodeFields(), ...graphStanding })
  .meta({ id: 'Root', description: 'A root of the graph, with its descendants.' });

const WaitingCall: z.ZodObject = shape('WaitingCall', 'A pending call.', {
  call: text('id of the call'),
  tool: text('name of the tool'),
  input: z.unknown().describe('input of the call'),
  for: z
    .enum(['approval', 'result', 'tool', 'children'])
    .describe(
      'what it waits for; `tool`: it is approved, and waits for a run with its tool; `children`: for the sessions to which it delegates',
    ),
  claims: names('with `approval`: all that the call claims to do').optional(),
  offers: names(
    'with `approval`: what an answer can be given for, for good; `approve --remember` takes its number, from 1',
  ).optional(),
  asked_for: names('senders of messages whose rules ask again, whatever answer counts for good').optional(),
});

const scope = z
  .enum(['manifest', 'project', 'session', 'grant'])
  .describe(
    'where the rule stands: in `tape.config.mts`, in `config.yaml`, in a session; `grant`: an answer that counts for good',
  );

const decider = z
  .enum([...scope.options, 'tool'])
  .describe('where the rule stands, as above; `tool`: no rule, the tool asks by itself');

const waiting = z.array(WaitingCall).describe('pending calls');

const Status: z.ZodObject = shape('Status', 'Current status of a session.', {
  session,
  state: z
    .enum(['idle', 'busy', 'waiting', 'retrying', 'error', 'interrupted'])
    .describe(
      '`waiting` for the answer to a call, `retrying` a model call; `interrupted`: its process died during a run (`tape recover`)',
    ),
  phase: z
    .enum(['processing', 'streaming', 'compacting', 'completing'])
    .optional()
    .describe('present while busy'),
  run: text('ULID of the run').optional(),
  started_at: text('time at which the run began').optional(),
  servers: names('the MCP servers that the run uses').optional(),
  attempt: count('number of the retry, from 1').optional(),
  message: text('reason of the retry').optional(),
  damage: text('what of the session cannot be read; its calls and its inbox are not shown then').optional(),
  ...standing,
  queued: count('messages and answers in the inbox'),
  waiting,
  children: listOf('unfinished sessions below it', { session: z.string(), waiting }).optional(),
  owner: object('process that writes the session', {
    id: z.string(),
    pid: whole.nullable(),
    host: z.string().nullable(),
  }).optional(),
});

/** The outcome of a child, the same wherever a command prints it. */
export const outcomeText: z.ZodString = text(
  'its result, else its last answer and `Halted: …`, `Filtered: …` or `Error: …` if it ended early; `(no result)` for none; a merge brings it unless it has another strategy or `--result`, and cuts it at 16,000 characters',
);

const ChildSession: z.ZodObject = Session.extend({
  text: outcomeText,
  ...graphStanding,
}).meta({ id: 'ChildSession', description: 'A fork in a list.' });

const IdentityRow: z.ZodObject = shape('IdentityRow', 'What a session stands for.', {
  session: text('name of the session that gets the messages'),
  id: text('ULID'),
  tape: text('name of its tape, which begins with its realm'),
  keys: names('the keys that are its aliases'),
  quiet: listOf('the sessions that get nothing more, and are searched with it', {
    session: z.string(),
    id: z.string(),
  }),
});

/** Verbs that list sessions, or change their properties. */
export const sessionVerbs: Contracts = {
  new: {
    json: printed({
      session,
      tape: text('name of its tape'),
      head: count('last position'),
      created: flag('false when the session existed before'),
    }),
    quiet: 'the name',
    exits: {
      2: 'the name is not allowed',
      4: 'the name differs from another only by case or Unicode form, or reads as a point of an existing session',
    },
  },
  overview: {
    json: printed({
      running: z.array(Status).describe('sessions that run'),
      waiting: z.array(Status).describe('sessions with calls that wait for an answer'),
      interrupted: z.array(Status).describe('sessions whose process died during a run'),
      ended: listOf('children that ended since the last overview, the last one first; at most 10', {
        session: z.string(),
        parent: z.string(),
        status: z.string(),
        at: z.string(),
      }),
      ended_more: count('number of the others that ended, among the last 1,000 lines of the lineage'),
      recent: z.array(Session).describe('the 5 sessions with the newest messages'),
    }),
    quiet: 'the names of the sessions that run, wait or were interrupted, one a line',
    exits: {},
  },
  sessions: { json: listed(Session), quiet: 'the names, one a line', exits: {} },
  children: {
    json: listed(ChildSession),
    quiet: 'the names, one a line',
    exits: { ...noSession, ...graphDiverged },
  },
  status: {
    json: [
      ...listed(Status),
      ...listed(
        z.strictObject({
          key: text('key of `config.yaml`, as other agents name it'),
          value: z.unknown().describe('its value'),
          setting: text('the setting that it is here'),
          here: z.unknown().describe('the value of that'),
          implies: z.record(z.string(), z.unknown()).optional().describe('settings that it brings along'),
          used: z.boolean().describe('whether it counts'),
          why: text('why it does not').optional(),
        }),
        'with `--settings`',
      ),
    ],
    quiet: 'the names, one a line',
    exits: {
      3: 'no such session, or no tape home',
      5: 'a session of the list is damaged: see `tape check`',
      130: '`--watch` was interrupted',
    },
  },
  permissions: {
    json: [
      ...printed(
        {
          session,
          lineage: listOf('the rules of each session that counts, the root first', {
            session: z.string(),
            rules: z.array(z.strictObject({ rule: z.string(), scope })),
          }),
          grants: names('answers of persons that count for good'),
          servers: listOf(
            'the MCP servers of the configuration, and whether the session may call a tool of each',
            {
              server: z.string(),
              callable: z.boolean(),
            },
          ).optional(),
        },
        'without `TOOL`',
      ),
      ...printed(
        {
          verdict: z.enum(['deny', 'ask', 'allow']).describe('what rules say of the call'),
          claim: text('what decided it: `write(/etc/hosts)`, or a tool by its name'),
          rule: text('the rule about it').nullable(),
          scope: decider.nullable(),
          session: text('the session whose rules decided').nullable(),
          fault: text('why the claim cannot be decided on, or the tool not be called').optional(),
          claims: names('all that the call claims to do'),
          offers: names('what an answer can be given for, for good'),
        },
        'with `TOOL`',
      ),
    ],
    quiet: 'the rules, one a line; with `TOOL` the verdict',
    exits: {
      2: 'the configuration cannot be used, or `INPUT` is no JSON or does not fit the tool',
      3: 'no such session or tool, or no tape home',
    },
  },
  wait: {
    json: listed(Status),
    quiet: 'the names, one a line',
    exits: {
      3: 'no such session, or no tape home',
      6: 'a session waits for the answer to a call, or still runs after `--timeout`',
    },
  },
  lineage: {
    json: printed({
      ...nodeFields(),
      ancestors: names('ancestors, nearest first'),
      ...graphStanding,
    }),
    quiet: 'the tree, without status on stderr',
    exits: {
      1: 'there is no database, and the graph file cannot be read',
      3: 'the graph has no such session',
      ...graphDiverged,
    },
  },
  graph: {
    json: listed(Root),
    quiet: 'the drawing, without status on stderr',
    exits: {
      1: 'there is no database, and the graph file cannot be read',
      3: 'the graph has no such session',
      ...graphDiverged,
    },
  },
  alias: {
    json: printed({ session, aliases: names('its other names now'), repeated }),
    quiet: 'the name of the session',
    exits: {
      ...noSession,
      2: 'the alias is not allowed as a name',
      4: 'the alias names another session, is the name or id of this one, was given with another reason, or differs from a name in use only by case or Unicode form',
    },
  },
  unalias: {
    json: printed({ session, aliases: names('its other names now') }),
    quiet: 'the name of the session',
    exits: {
      3: 'no session has the alias, or no tape home',
      4: 'it is the name or id of the session, and no alias',
    },
  },
  link: {
    json: printed({ session, id: text('ULID'), ...linkFields(), repeated }),
    quiet: 'the name of the session',
    exits: {
      ...noSession,
      4: 'the parent is the session or below it; with `--undo`, no link was made of the session; one of them is deleted',
    },
  },
  rename: {
    json: printed({
      session,
      id: text('ULID'),
      aliases: names('its other names now'),
      title: text('its title now').optional(),
      repeated,
    }),
    quiet: 'the name of the session',
    exits: {
      ...noSession,
      2: 'the new name is not allowed',
      4: 'the new name names another session, or differs from a name in use only by case or Unicode form; the session runs, or is deleted',
    },
  },
  resolve: {
    json: printed({
      session: session.nullable().describe('name of the session; null where one would be created'),
      id: text('ULID').nullable(),
      tape: text('name of its tape, which begins with its realm').nullable(),
      key: text('the key, also that of a delivery'),
      persona: text('whose session it is').nullable(),
      route: text('name of the route of a delivery').nullable(),
      how: z
        .enum(['direct', 'alias', 'promoted', 'created'])
        .describe(
          '`direct`: its name is the key; `alias`: it stands for the key; `promoted`: it was that of the address; `created`: it is new',
        ),
      created: flag('whether this command made it'),
      lifecycle: lifecycle.nullable().describe('its state'),
      head: count('last position').nullable(),
      message_count: count('number of its own messages').nullable(),
      dry_run: dryRun.optional(),
    }),
    quiet:
      'the name of the session, or its ULID where it is of another realm; nothing where one would be created',
    exits: {
      2: 'no key, no delivery, a field that a template needs is missing, or no such persona',
      3: 'no route matches the delivery, or no session has the ULID of a worker',
      4: 'the session is archived',
    },
  },
  identity: {
    json: [
      ...listed(IdentityRow, 'with `list`'),
      document(
        IdentityRow.extend({
          key: text('the key of the entity'),
          created: flag('whether no address had a session, so that one was made'),
          repeated,
        }),
        'with `link` and `unlink`',
      ),
    ],
    quiet: 'the sessions, by name or by ULID where they are of another realm, one a line',
    exits: {
      2: 'no key of a person, no address, the key itself as an address, or no such persona',
      3: 'unlink: no session stands for the key',
      4: 'an address is linked with another key, or not with this one; no session of them is active',
    },
  },
  archive: {
    json: printed({ session, lifecycle: lifecycle.describe('state now'), repeated }),
    quiet: 'the name',
    exits: { ...noSession, 4: 'another process is writing the session, or it is deleted' },
  },
  delete: {
    json: printed({
      session: text('the name that it had'),
      id: text('its ULID, which finds it from now on'),
      lifecycle: lifecycle.describe('state now'),
      names: names('its names, which are free now'),
      repeated,
      open_children: names('its children that are neither merged, discarded nor archived: they stay'),
    }),
    quiet: 'the ULID of the session',
    exits: { ...noSession, ...busy },
  },
};
