/** One field of what a verb prints with `--json`. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly what: string;
  /** Left out where it has no meaning. */
  readonly optional?: true;
}

/** What a verb prints with `--json`, in one of its forms. */
export interface JsonForm {
  /** When it is printed; the first form of a verb is its usual one. */
  readonly when?: string;
  readonly form: 'one object' | 'one array of objects' | 'one object a line';
  readonly fields: readonly Field[];
}

/** What programs may rely on, beside a verb's options. */
export interface VerbContract {
  readonly json: readonly JsonForm[];
  /** What `--quiet` prints. */
  readonly quiet: string;
  /** The exit codes beyond 0, with what each means here. */
  readonly exits: readonly (readonly [code: number, why: string])[];
}

const field = (name: string, type: string, what: string): Field => ({ name, type, what });
const maybe = (name: string, type: string, what: string): Field => ({ name, type, what, optional: true });

const entry: readonly Field[] = [
  field('session', 'string', 'the session that was asked'),
  field('tape', 'string', "the tape that owns the entry: an ancestor's for an inherited one"),
  field('seq', 'number', 'position'),
  field('kind', 'string', 'see [format.md](format.md#entry-kinds)'),
  maybe('mark', 'string', '`anchor`, `boundary`, `rewind` or `redaction`'),
  maybe('name', 'string', 'name of an anchor or event'),
  maybe('ref', 'number', 'what a rewind goes back to, or where a kept tail begins'),
  field('payload', 'any', 'the content; null once redacted'),
  field('meta', 'object', 'facts about the entry: run, step, model, source'),
  field('at', 'string', 'time, ISO 8601 in UTC'),
  maybe('key', 'string', "idempotency key; a caller's own begin with `u:`"),
  field('hash', 'string', '64 hex digits'),
];

const session: readonly Field[] = [
  field('session', 'string', 'name'),
  field('id', 'string', 'ULID'),
  field(
    'kind',
    'string',
    '`session` for a root or a branch, `subagent` for a fork, `summarizer` for where a summary was written',
  ),
  field('lifecycle', 'string', '`active`, `archived`, `destroyed` or `purged`'),
  maybe('task', 'string', '`running`, `completed`, `halted`, `failed`, `aborted` or `orphaned`'),
  maybe('delivery', 'string', '`merged` or `discarded`'),
  maybe('parent', 'string', "the parent's name"),
  maybe('from_anchor', 'string or null', 'where the inherited part begins; there with `parent`'),
  maybe('merged_at', 'string', 'time of the last merge or discard'),
  maybe('title', 'string', 'a title for people'),
  maybe('ephemeral', 'true', 'lists leave it out'),
  field('head', 'number', 'last position'),
  field('updated_at', 'string', 'time of the last change'),
];

const hit: readonly Field[] = [
  field('session', 'string', 'the session that wrote the entry'),
  field('tape', 'string', "its tape's name"),
  field('seq', 'number', 'position'),
  field('kind', 'string', 'see [format.md](format.md#entry-kinds)'),
  maybe('name', 'string', 'name of an anchor or event'),
  field('snippet', 'string', 'the text around the first place where it was found, on one line'),
  field('sessions', 'array', 'names of the sessions that have the entry, at most a hundred'),
  field('at', 'string', 'time, ISO 8601 in UTC'),
];

const node: readonly Field[] = [
  field('session', 'string', 'name'),
  field('id', 'string', 'ULID'),
  field('kind', 'string', 'as in `sessions`'),
  field('status', 'string', 'delivery, else task, else lifecycle'),
  field('lifecycle', 'string', 'as in `sessions`'),
  maybe('task', 'string', 'as in `sessions`'),
  maybe('delivery', 'string', 'as in `sessions`'),
  maybe('parent', 'string', "the parent's name"),
  maybe('from_anchor', 'string or null', 'where the inherited part begins; there with `parent`'),
  maybe('range', '[number, number] or null', 'inherited positions, both ends included; null for none'),
  field('created_at', 'string', 'time'),
  field('merges', 'array', '`{type, into, seq, range, at}` of each merge or discard, oldest first'),
  field('children', 'array', 'the same of each child, in spawn order'),
];

const status: readonly Field[] = [
  field('session', 'string', 'name'),
  field('state', 'string', '`idle`, `busy`, `waiting` for an answer to a call, or `retrying` a model call'),
  maybe('phase', 'string', '`processing`, `streaming`, `compacting` or `completing`; while busy'),
  maybe('run', 'string', 'ULID of the run'),
  maybe('started_at', 'string', 'when the run began'),
  maybe('attempt', 'number', 'which retry it is, from 1'),
  maybe('message', 'string', 'why the model call is made again'),
  field('lifecycle', 'string', 'as in `sessions`'),
  maybe('task', 'string', 'as in `sessions`'),
  maybe('delivery', 'string', 'as in `sessions`'),
  field('queued', 'number', 'messages and answers that wait in the inbox'),
  field(
    'waiting',
    'array',
    '`{call, tool, input, for}` of each call that waits; `for` is `approval`, `result`, or `tool`: approved, and to be run where its tool is offered',
  ),
  maybe('children', 'array', '`{session, waiting}` of each child whose task has not ended'),
  maybe('owner', 'object', '`{id, pid, host}` of who is writing the session'),
];

const statuses: readonly JsonForm[] = [
  { form: 'one array of objects', fields: status },
  { when: 'with `--jsonl`', form: 'one object a line', fields: status },
];

const anchored: readonly JsonForm[] = [
  {
    form: 'one object',
    fields: [
      field('session', 'string', 'name'),
      field('seq', 'number', 'position of the anchor'),
      field('name', 'string', "the anchor's name"),
    ],
  },
];

const granted: readonly Field[] = [
  field('dir', 'string', 'real path of the directory'),
  field('config', 'string', 'name of the configuration file in it'),
  field('sha256', 'string', 'SHA-256 of the file when it was trusted'),
  field('state', 'string', '`trusted`, or `changed` or `gone` since then'),
];

const sum: readonly Field[] = [
  field('steps', 'number', 'model calls whose usage is recorded'),
  field('input', 'number', 'tokens that were given, without those of a cache'),
  field('output', 'number', 'tokens of the answers, without reasoning'),
  field('reasoning', 'number', 'tokens of reasoning'),
  field('cache_read', 'number', 'tokens read from a cache'),
  field('cache_write', 'number', 'tokens written to a cache'),
  field('total', 'number', 'all of these tokens'),
  maybe('cost', 'number', 'the sum of what the writers of the calls recorded, in their unit'),
];

const sessionUsage: readonly Field[] = [
  field('session', 'string', 'name'),
  ...sum,
  maybe('window', 'number', 'tokens of the last call: what it was given and what it said'),
  field(
    'models',
    'array',
    'steps, tokens and cost of each `model` (null: not recorded), the first asked first',
  ),
  maybe(
    'inherited',
    'object',
    'steps, tokens and cost of the calls whose answers it inherited, in no sum here; of a session that was named',
  ),
  maybe(
    'summaries',
    'object',
    'steps, tokens and cost of its summaries, which are counted in the sessions in which they were written; of a session that was named',
  ),
  maybe('children', 'array', 'the same of each fork, in spawn order; with `--tree`'),
  maybe('tree', 'object', 'steps, tokens and cost of the session and all that came from it; with `--tree`'),
];

const usage = 'tokens: `{input, output, reasoning, cache_read, cache_write}`, which do not overlap';

const runFields: readonly Field[] = [
  field('session', 'string', 'name'),
  field('run', 'string', 'ULID of the run, in the meta of its entries'),
  field('text', 'string', 'text of the last answer'),
  field('finish', 'string', '`stop`, `length`, `halted`, `waiting`, `aborted` or `error`'),
  field('steps', 'number', 'model calls'),
  field('usage', 'object', usage),
  field('from', 'number', 'first position of the run'),
  field('to', 'number', 'last position of the run'),
  maybe('error', 'object', '`{code, message}` when the model failed'),
  maybe('other_runs', 'array', 'the same of each other run that it did, of messages that waited'),
];

const sent: readonly JsonForm[] = [
  {
    when: 'when it is run here',
    form: 'one object',
    fields: [
      field('id', 'string', 'id of what was left in the inbox'),
      field('state', 'string', '`started`'),
      ...runFields,
    ],
  },
  {
    when: 'when it is left to others, or was there already',
    form: 'one object',
    fields: [
      field('session', 'string', 'name'),
      field('id', 'string', 'id of what was left in the inbox'),
      field(
        'state',
        'string',
        '`queued`; `started` once it is taken up, or is on the tape already; of `send`, by `--mode` also `steered` or `interrupted`',
      ),
    ],
  },
];

const snappedFrom = maybe(
  'snapped_from',
  'number',
  'the cut that was asked, when it lay inside a batch of tool calls',
);
/** What a fork and a branch print. */
const forked: readonly Field[] = [
  field('session', 'string', "the child's name"),
  field('tape', 'string', "the child's tape"),
  field('parent', 'string', "the parent's name"),
  field('from_anchor', 'string or null', 'where the inherited part begins; null without `--since`'),
  field('base', 'number', "last inherited position; the child's own follow it"),
  field('range', '[number, number] or null', 'inherited positions, both ends included'),
  snappedFrom,
  field('repeated', 'boolean', 'true when the key had made this child before'),
];
/** What a rewind prints, and one that is taken back. */
const rewound: readonly Field[] = [
  field('session', 'string', 'name'),
  field('seq', 'number', 'position of the rewind'),
  field('to', 'number', 'it reads as if it ended here'),
  field('hidden', 'number', 'entries that are not visible any more'),
  field('shown', 'number', 'entries that are visible again'),
  maybe('snapped_from', 'number', 'the end that was asked, when it lay inside a batch of tool calls'),
  field('forks', 'array', 'names of live children that were forked where it is hidden now'),
];
const rewoundMessage: readonly Field[] = [
  ...rewound,
  field('message', 'number', 'position of the message that it went back to'),
  field('text', 'string', 'the text of that message'),
  maybe('snapshot_id', 'string', 'what the hook `onMessage` named for it'),
  maybe('resent', 'number', 'position at which it was appended again; with `--mode resend`'),
  maybe('warnings', 'array', 'what hooks failed of; the rewind is done'),
];
const diffed: readonly Field[] = [
  field(
    'base',
    'object or null',
    '`{session, seq, shared}`: up to where both show the same, on the tape of which session, and the positions that both have, or null; null when they have no tape in common',
  ),
  field(
    'a',
    'object',
    'what the first has since: `{session, at, ranges, entries, messages, recent?, tools, files, state, answer, complete}`. `ranges` are positions; `messages` `{user, assistant, merge}`; `recent` `{seq, from, text}` of the last twenty messages, cut; `tools` `{tool, calls}`; `files` `{path, wrote, seq}`; `state` `{key, seq}`; `answer` the position of its last answer, or null; `complete`: false when there are more tools, files or keys',
  ),
  field('b', 'object', 'the same of the second'),
  field('both', 'array', '`state:KEY` or `file:PATH` of each that both wrote since'),
];
const dryRun = field('dry_run', 'true', 'nothing was written');
const entries = field('entries', 'array', '`{seq, kind, name?}` of each entry that would be written');
const conflict =
  '`{what, child, parent, via?}` of each: `state:KEY` or `file:PATH`, with the position of either side';
const complete = 'false when a tool ran that does not declare its files, so conflicts cannot be ruled out';
/** What a merge or a discard prints, and what its `--dry-run` does. */
const merged: readonly Field[] = [
  field('parent', 'string', "the parent's name"),
  field('child', 'string', "the child's name"),
  field('state', 'string', '`merged`, `discarded` or `queued`'),
  field('seq', 'number or null', "position of the merge on the parent's tape; null while queued"),
  field('range', '[number, number] or null', "the child's positions that it covers; null while queued"),
  field('repeated', 'boolean', 'true when the merge was there already'),
  field('complete', 'boolean or null', complete),
  field('conflicts', 'array', conflict),
];
const lagging = maybe('graph_lagging', 'true', 'the graph file could not be written yet');
const mergePreview: JsonForm = {
  when: 'with `--dry-run`',
  form: 'one object',
  fields: [...merged, entries, field('text', 'string or null', 'the message; null for none'), dryRun],
};
const noSession = [3, 'no such session'] as const;
const busy = [4, 'another process is writing the session'] as const;

/** The contract of each verb, by its name. `cli.test.ts` runs every verb against it. */
export const contract: Readonly<Record<string, VerbContract>> = {
  init: {
    json: [
      {
        form: 'one object',
        fields: [
          field('home', 'string', 'the directory of the tape home'),
          field('created', 'boolean', 'false when it was a tape home already'),
        ],
      },
    ],
    quiet: 'the directory',
    exits: [
      [1, 'the file cannot be made or opened'],
      [5, 'there is another kind of file in its place'],
    ],
  },
  new: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field('tape', 'string', "its tape's name"),
          field('head', 'number', 'last position'),
          field('created', 'boolean', 'false when the session was there already'),
        ],
      },
    ],
    quiet: 'the name',
    exits: [
      [2, 'the name is not allowed'],
      [4, 'the name is an alias, or reads as a point of an existing session'],
    ],
  },
  import: {
    json: [
      {
        form: 'one object',
        fields: [
          field('sessions', 'number', 'how many sessions were imported: 1'),
          field('entries', 'number', 'entries that were added; 0 when all were there already'),
          field('repaired', 'number', 'tool calls without a result, answered as interrupted'),
          field('derived', 'number', 'edges that were derived: 0'),
          field('names', 'array', 'names of the sessions'),
          field(
            'counts',
            'object',
            '`{records, messages, off_path, repaired, compactions, merged, reordered, dangling, skipped, glued, truncated}`',
          ),
        ],
      },
    ],
    quiet: 'the name of the session',
    exits: [
      [1, 'the file cannot be read, is empty, or is no transcript of a known format'],
      [2, 'the name is not allowed'],
      [3, 'there is no such file'],
      [4, 'the name is taken by another session, or the file says something else than before'],
    ],
  },
  run: {
    json: [
      { form: 'one object', fields: runFields },
      {
        when: 'with `--attach`',
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field('text', 'string', 'text of the last answer, as far as it came'),
          field('finish', 'string', 'as above, or `interrupted`: its process died'),
          maybe('error', 'object', '`{message}`: what it failed or was stopped for'),
        ],
      },
      {
        when: 'with `--attach` and `--jsonl`',
        form: 'one object a line',
        fields: [
          field('type', 'string', 'which event; its fields are those of `SessionEvent` in the library'),
        ],
      },
    ],
    quiet: 'the answer, without status on stderr',
    exits: [
      [1, 'the model failed, the run was halted at `--max-steps`, or a call waits for an answer'],
      [2, 'no model, no key for it, a script or a configuration that cannot be used or is not trusted'],
      [4, `${busy[1]}, or it is archived`],
      [130, 'interrupted, or aborted by another process; what was said so far is on the tape'],
    ],
  },
  send: {
    json: sent,
    quiet: 'the answer, or the id of the message, without status on stderr',
    exits: [
      [1, 'the run that it started did not come to its end'],
      [2, 'the text is empty, or the model cannot be used'],
      [4, 'the key was used before, for another message, or the session is archived'],
      [6, 'another process is running the session, or there is no model: left in its inbox'],
      [130, 'interrupted; the message is on the tape, or in the inbox'],
    ],
  },
  delegate: {
    json: [
      {
        form: 'one object',
        fields: [
          field('parent', 'string', 'name'),
          field(
            'children',
            'array',
            '`{session, status, merged, seq, conflicts, text, usage, output?, error?}` of each, in the order of the tasks; `seq` and `usage` are null where there is none; `text` is its last answer, or its result; `output` is a result in the form of `--schema`',
          ),
        ],
      },
      {
        when: 'with `--dry-run`',
        form: 'one object',
        fields: [
          field('parent', 'string', 'name'),
          field('children', 'array', 'what `fork --dry-run` prints, of each task'),
          dryRun,
        ],
      },
    ],
    quiet: "the children's names, one a line",
    exits: [
      [1, 'a child did not complete, or could not be merged'],
      [
        2,
        'no model, no key for it, a script or a configuration that cannot be used or is not trusted; nothing was forked',
      ],
      [3, 'no such session or anchor'],
      [
        4,
        'a child would go beyond the limits of the deck or of a budget, in which case none is forked; or `--resume` names one that was discarded; or the session, or the child that `--resume` names, is archived',
      ],
      [130, 'interrupted; what the children did is merged as aborted'],
    ],
  },
  demo: {
    json: [],
    quiet: 'what it prints otherwise',
    exits: [
      [1, 'a step failed'],
      [4, 'the home that was given has a session `main`'],
    ],
  },
  sessions: {
    json: [
      { form: 'one array of objects', fields: session },
      { when: 'with `--jsonl`', form: 'one object a line', fields: session },
    ],
    quiet: 'the names, one a line',
    exits: [],
  },
  status: {
    json: statuses,
    quiet: 'the names, one a line',
    exits: [
      [3, 'no such session, or no tape home'],
      [130, '`--watch` was interrupted'],
    ],
  },
  log: {
    json: [
      { form: 'one array of objects', fields: entry },
      { when: 'with `--jsonl`', form: 'one object a line', fields: entry },
    ],
    quiet: 'the positions, one a line',
    exits: [[3, 'no such session, anchor or position, or no tape home']],
  },
  show: {
    json: [
      { when: 'SESSION@POINT', form: 'one object', fields: entry },
      {
        when: '--output',
        form: 'one object',
        fields: [
          field('session', 'string', 'the session asked'),
          field('seq', 'number', 'position of the entry'),
          field('size', 'number', 'bytes of the whole output'),
          field('from', 'number', 'first byte of `text`'),
          field('to', 'number', 'the byte after its last'),
          field('text', 'string', 'the output, or those bytes of it'),
        ],
      },
      {
        when: 'SESSION',
        form: 'one object',
        fields: [
          ...session,
          field('tape', 'string', "the tape's name"),
          field('base', 'number', 'last inherited position; 0 for a root'),
          field('floor', 'number', 'inherited positions are those after it'),
          field('settled', 'number', 'greatest position at which no tool call is open'),
          field('hash', 'string', 'hash of the head'),
          maybe('metadata', 'object', 'the facts that a branch was given, with those of its parents'),
        ],
      },
    ],
    quiet: "the entry's hash, or the session's ULID",
    exits: [[3, 'no such session, anchor or position, or no tape home']],
  },
  view: {
    json: [
      {
        form: 'one object',
        fields: [
          field('messages', 'array', 'AI SDK messages; bytes are `{type: "blob", hash, size, as}`'),
          field('digest', 'string', "SHA-256 of the messages' compact JSON"),
          field(
            'tokens',
            'number',
            'what its last answer took and an estimate of what came after; else an estimate of the messages: characters divided by four',
          ),
          field('from', 'number', 'first position that it covers'),
          field('to', 'number', 'last position that it covers'),
          maybe('explain', 'array', '`{seq, in, why}` of each entry, with `--explain`'),
          maybe('manifest', 'object', '[what the view was made of](format.md#manifests), with `--explain`'),
          maybe(
            'asked',
            'object',
            'with `--explain` of an answer: the manifest of what its model was shown, `instructions_digest` and `tools_digest` where it was told or offered anything, and `same`: whether the tape gives the same now; `fault` `{code, message}` says why it cannot be made again',
          ),
        ],
      },
      {
        when: 'with `--instructions`',
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field('instructions', 'string or null', 'what its model is told before the messages'),
          field('digest', 'string or null', 'its SHA-256, as `meta.instructions_digest` of an answer has it'),
          field(
            'sources',
            'array',
            '`{section, path?, chars}` of each part, in order; `section` is `manifest`, `project`, `skills`, `environment` or `tools`',
          ),
          field('omitted', 'array', '`{path, why}` of each file or folder that is left out'),
        ],
      },
      {
        when: 'with `--jsonl`',
        form: 'one object a line',
        fields: [
          field('role', 'string', '`user`, `assistant` or `tool`'),
          field('content', 'array', 'parts'),
          maybe('providerOptions', 'object', 'what its provider is told with it'),
        ],
      },
    ],
    quiet: 'the digest',
    exits: [
      [2, 'no such policy, or --instructions of a point'],
      [3, 'no such session, anchor or position, or no tape home'],
    ],
  },
  search: {
    json: [
      { form: 'one array of objects', fields: hit },
      { when: 'with `--jsonl`', form: 'one object a line', fields: hit },
    ],
    quiet: '`SESSION@SEQ`, one a line',
    exits: [[3, 'no such session, or no tape home']],
  },
  children: {
    json: [
      { form: 'one array of objects', fields: session },
      { when: 'with `--jsonl`', form: 'one object a line', fields: session },
    ],
    quiet: 'the names, one a line',
    exits: [noSession],
  },
  lineage: {
    json: [
      {
        form: 'one object',
        fields: [...node, field('ancestors', 'array', 'names of the sessions it came from, nearest first')],
      },
    ],
    quiet: 'the tree, without status on stderr',
    exits: [
      [1, 'the graph file cannot be read'],
      [3, 'the graph has no such session'],
    ],
  },
  graph: {
    json: [
      { when: 'with `--json` or `--format json`', form: 'one array of objects', fields: node },
      { when: 'with `--jsonl`', form: 'one object a line', fields: node },
    ],
    quiet: 'the picture, without status on stderr',
    exits: [[1, 'the graph file cannot be read']],
  },
  diff: {
    json: [
      {
        form: 'one object',
        fields: [
          ...diffed,
          field(
            'answers',
            'string or null',
            'the last answers as a unified diff, empty when they are the same; null where there are no two, or they have too little in common',
          ),
        ],
      },
      { when: 'with `--stat`', form: 'one object', fields: diffed },
    ],
    quiet: 'the common base as `SESSION@SEQ`, or nothing',
    exits: [[3, 'no such session, anchor or position, or no tape home']],
  },
  trace: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'the session that was asked'),
          field('owner', 'string', 'the session on whose own tape the entry is'),
          field('seq', 'number', 'position'),
          field('kind', 'string', 'see [format.md](format.md#entry-kinds)'),
          maybe('name', 'string', 'name of an anchor or event'),
          field(
            'from',
            'array',
            'what it was made of: `{session, state, mark, range, status?, text, quoted?, missing?, again?, from}` of each child. `mark` is `{session, seq, hidden_by?}` of the merge, or null; `range` the positions that it covers, or null; `text` `{seq, kind}` of the entry whose text was brought, or null when it was given with the merge or erased; `quoted`: it lies outside the range above, and its message is quoted there; `missing`: there is no such session; `again`: it stands above with what is below it; `from`: the same of what other children brought there',
          ),
          field(
            'into',
            'array',
            'where it was brought: `{session, seq, state, range, hidden_by?, again?, into}` of each merge or discard, `into` being the same of where that was brought',
          ),
          field('inherited_by', 'array', 'names of the forks that have it without a copy, at most a hundred'),
          field('inherited_count', 'number', 'how many they are'),
        ],
      },
    ],
    quiet: 'the entries that it leads to, and then the merges, as `SESSION@SEQ`, one a line',
    exits: [
      [2, 'no point was named'],
      [3, 'no such session, anchor or position, or no tape home'],
    ],
  },
  usage: {
    json: [
      { when: 'NAME', form: 'one object', fields: sessionUsage },
      {
        when: 'without NAME',
        form: 'one object',
        fields: [
          field('sessions', 'array', 'the same of each; with `--tree` of each root, its forks below it'),
          field('total', 'object', 'steps, tokens and cost of all of them'),
        ],
      },
      { when: 'without NAME, with `--jsonl`', form: 'one object a line', fields: sessionUsage },
    ],
    quiet: 'the sum of all tokens',
    exits: [[3, 'no such session, or no tape home']],
  },
  append: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field('from', 'number', 'first position of the batch, repeated entries included'),
          field('to', 'number', 'last position of the batch'),
          field('added', 'number', 'entries that were added'),
          field('repeated', 'number', 'entries that were there already'),
        ],
      },
      {
        when: 'with `--each`',
        form: 'one object a line',
        fields: [field('seq', 'number', 'position of the line'), field('hash', 'string', "the entry's hash")],
      },
      {
        when: 'exit 6',
        form: 'one object',
        fields: [field('session', 'string', 'name'), field('queued', 'string', 'id of the inbox item')],
      },
    ],
    quiet: 'the last position, or the id of the inbox item',
    exits: [
      [2, 'a line is not right; nothing was appended (with `--each`: the lines before it were)'],
      [4, 'a key was used before with other content; with `--each` also when another process writes'],
      [6, 'still being written by another process after `--wait`: left in its inbox'],
    ],
  },
  anchor: {
    json: anchored,
    quiet: '`SESSION@SEQ`',
    exits: [[2, 'the name or the state is not right'], noSession, busy],
  },
  handoff: {
    json: anchored,
    quiet: '`SESSION@SEQ`',
    exits: [[2, 'the name or the state is not right'], noSession, busy],
  },
  compact: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field(
            'seq',
            'number or null',
            'position of the summary, or with `--prune` of the event; null where there was nothing to do',
          ),
          field(
            'range',
            '[number, number] or null',
            'positions that it stands for, or of the first and last output that are left out; both ends included',
          ),
          field('tokens_before', 'number or null', 'what the view took before, as an estimate'),
          field('tokens_after', 'number or null', 'what it takes now'),
          maybe('summarizer', 'string', 'name of the session in which the summary was written'),
          maybe('missing_sections', 'array', 'sections that a summary should have, and this one lacks'),
        ],
      },
      {
        when: 'with `--undo`',
        form: 'one object',
        fields: [
          ...rewound,
          field('undone', 'number', 'position of the summary or pruning that was taken back'),
        ],
      },
    ],
    quiet: '`SESSION@SEQ`, or nothing',
    exits: [
      [1, 'no summary could be had, or none that is smaller'],
      [2, 'no model was given'],
      noSession,
      [
        4,
        `${busy[1]}, or it is archived; or with \`--undo\`: there is none to take back, or something was said after it`,
      ],
      [130, 'interrupted; no summary was taken'],
    ],
  },
  fork: {
    json: [
      {
        form: 'one object',
        fields: [
          ...forked,
          maybe('workspace', 'string', 'the directory of its worktree, with `--workspace worktree`'),
          lagging,
        ],
      },
      {
        when: 'with `--dry-run`',
        form: 'one object',
        fields: [
          field(
            'session',
            'string or null',
            "the child's name; null for one that is derived anew each time, without `--as` and `--key`",
          ),
          field('parent', 'string', "the parent's name"),
          field('from_anchor', 'string or null', 'where the inherited part begins; null without `--since`'),
          field('base', 'number', "last inherited position; the child's own follow it"),
          field('range', '[number, number] or null', 'inherited positions, both ends included'),
          snappedFrom,
          field('repeated', 'boolean', 'true when the key has made this child: nothing would be written'),
          entries,
          dryRun,
        ],
      },
    ],
    quiet: "the child's name",
    exits: [
      [1, 'the worktree cannot be made; the child is there, and gets it when it is run'],
      [
        2,
        'the options contradict each other, the name is not allowed, or there is no repository for a worktree',
      ],
      [3, 'no such session, anchor or position'],
      [4, 'the name is taken, or the key made another child'],
    ],
  },
  branch: {
    json: [{ form: 'one object', fields: [...forked, lagging] }],
    quiet: 'its name',
    exits: [
      [2, 'the name is not allowed, or a rewind hides the point'],
      [3, 'no such session, anchor or position'],
      [4, 'the session is being run, the name is taken, or the key made another child'],
    ],
  },
  merge: {
    json: [
      {
        form: 'one object',
        fields: [
          ...merged,
          maybe(
            'artifact',
            'object',
            '`{type, blob, bytes, files, base, tree}`: the patch of its worktree; see [format.md](format.md#worktrees)',
          ),
          maybe(
            'applied',
            'object',
            '`{state, dir, files}` with `--apply`: the files of `dir` that were changed; `state` is `applied`, `already` (they were so before) or `empty` (the child changed none)',
          ),
          maybe('kept', 'object', '`{path, why}` of its worktree, where that cannot be removed yet'),
          lagging,
        ],
      },
      {
        when: 'with `--check`',
        form: 'one object',
        fields: [
          field('child', 'string', "the child's name"),
          field('complete', 'boolean', complete),
          field('conflicts', 'array', conflict),
        ],
      },
      mergePreview,
    ],
    quiet: '`PARENT@SEQ`, or the id of the inbox item',
    exits: [
      [
        1,
        'the text cannot be written: no summary could be had, or there is no result in a form; or what was done in its worktree cannot be recorded, or not be written to the files, which are as before',
      ],
      [2, 'the options contradict each other, or `--into-dir` is in no git repository'],
      [3, 'no such session, or, with `--apply`, it was given no worktree'],
      [
        4,
        'the child is running or has open calls, was merged otherwise, was not forked from there, conflicts with `--on-conflict refuse`, or does not fit the files with `--apply`: nothing was merged then; or the parent is archived',
      ],
      [6, 'the parent is still being written after `--wait`: left in its inbox'],
    ],
  },
  discard: {
    json: [{ form: 'one object', fields: [...merged, lagging] }, mergePreview],
    quiet: '`PARENT@SEQ`, or the id of the inbox item',
    exits: [
      noSession,
      [4, 'the child is running or has open calls, or was merged; the parent is archived'],
      [6, 'the parent is still being written after `--wait`: left in its inbox'],
    ],
  },
  rewind: {
    json: [
      { form: 'one object', fields: rewoundMessage },
      {
        when: 'with `--mode resend --model`',
        form: 'one object',
        fields: [...rewoundMessage, field('run', 'object', 'what `run` prints, of the run that answers it')],
      },
    ],
    quiet: '`SESSION@SEQ` of the rewind, or the answer',
    exits: [
      [1, 'the run that it started did not come to its end'],
      [
        2,
        'no point was named, or no message of a user that is visible; the model or a configuration cannot be used, or is not trusted',
      ],
      [3, 'no such session, anchor or position'],
      [4, 'the session is being run, or is archived'],
      [130, 'interrupted; what was said so far is on the tape'],
    ],
  },
  unrewind: {
    json: [{ form: 'one object', fields: rewound }],
    quiet: '`SESSION@SEQ` of the entry that takes it back',
    exits: [[2, 'nothing was rewound'], noSession, [4, 'the session is being run, or is archived']],
  },
  abort: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field(
            'aborted',
            'boolean',
            'a run was stopped; false: none was under way, or it has not ended yet',
          ),
          maybe(
            'children',
            'array',
            'names of the children whose runs were asked to stop, when the session itself was not run',
          ),
        ],
      },
    ],
    quiet: 'the name',
    exits: [noSession, [6, 'the run has not ended after `--wait`']],
  },
  wait: {
    json: statuses,
    quiet: 'the names, one a line',
    exits: [
      [3, 'no such session, or no tape home'],
      [6, 'still being run after `--timeout`'],
    ],
  },
  approve: {
    json: sent,
    quiet: 'the answer, or the id of what was left in the inbox, without status on stderr',
    exits: [
      [1, 'the run that went on did not come to its end, or another call waits'],
      [
        2,
        'several calls wait and none was named, the answer is of the wrong kind, or the model cannot be used',
      ],
      [3, 'no such session, or no such call that waits'],
      [4, 'the session is archived'],
      [6, 'another process is running the session, or there is no model: left in its inbox'],
      [130, 'interrupted; what was said so far is on the tape'],
    ],
  },
  verify: {
    json: [
      {
        form: 'one object',
        fields: [
          field('ok', 'boolean', 'no problems'),
          field('sessions', 'number', 'how many were checked'),
          field('entries', 'number', 'how many were checked'),
          field(
            'problems',
            'array',
            '`{code, session, seq, message}` of each; the codes are in [format.md](format.md#verification)',
          ),
        ],
      },
    ],
    quiet: '`ok` or `damaged`',
    exits: [
      [3, 'no such session, or no tape home'],
      [5, 'something is wrong'],
    ],
  },
  audit: {
    json: [
      {
        form: 'one object',
        fields: [
          field('ok', 'boolean', 'no findings'),
          field('sessions', 'number', 'how many were looked at'),
          field(
            'findings',
            'array',
            '`{code, session, seq, message, next}` of each; the codes are in [format.md](format.md#audit), `seq` is null where no one position shows it, and `next` is the command that goes on from there',
          ),
        ],
      },
    ],
    quiet: '`ok` or `incomplete`',
    exits: [
      [1, 'something is missing'],
      [3, 'no such session, or no tape home'],
      [5, 'what was to be read is damaged: see `tape verify`'],
    ],
  },
  recover: {
    json: [
      {
        form: 'one object',
        fields: [
          field('resumed', 'array', 'names of the children that went on, to an end'),
          field('aborted', 'array', 'names of the children that `--abort` ended'),
          field('merged', 'array', 'names of the children that are merged now'),
          field('waiting', 'array', 'names of those that wait for an answer to a call'),
          field(
            'busy',
            'array',
            'names of those that another process is running, or whose parent is being written',
          ),
          field('failed', 'array', '`{session, message}` of those that could not be gone on with or merged'),
        ],
      },
    ],
    quiet: 'the names of the merged children, one per line',
    exits: [
      [1, 'some failed'],
      [2, 'a child has to go on, and no model was given; a configuration cannot be used or is not trusted'],
      [6, 'some were left to others, or wait for an answer'],
    ],
  },
  doctor: {
    json: [
      {
        form: 'one object',
        fields: [
          field('ok', 'boolean', 'no problems are left'),
          field('sessions', 'number', 'how many were checked'),
          field('entries', 'number', 'how many were checked'),
          field('problems', 'array', '`{code, session, seq, message}` of each damage, as of `verify`'),
          field(
            'findings',
            'array',
            '`{code, session, message, fixable}` of what is left over or open to others',
          ),
          field('fixed', 'array', 'what `--fix` mended, as texts'),
        ],
      },
    ],
    quiet: '`ok` or `damaged`',
    exits: [
      [3, 'no tape home'],
      [5, 'damage is left'],
    ],
  },
  archive: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'name'),
          field('lifecycle', 'string', '`archived` or `active`'),
          field('repeated', 'boolean', 'it was so already, and nothing was written'),
        ],
      },
    ],
    quiet: 'the name',
    exits: [[3, 'no such session'], busy],
  },
  backup: {
    json: [
      {
        form: 'one object',
        fields: [
          field('file', 'string', 'the new file, as an absolute path'),
          field('sessions', 'number', 'how many are in it'),
          field('entries', 'number', 'how many are in it'),
        ],
      },
    ],
    quiet: 'the file',
    exits: [
      [1, 'the file cannot be written'],
      [3, 'no tape home'],
      [4, 'there is a file of that name'],
      [5, 'the copy does not verify'],
    ],
  },
  redact: {
    json: [
      {
        form: 'one object',
        fields: [
          field('session', 'string', 'the session that owned the entry'),
          field('seq', 'number', 'position of what was erased'),
          field('by', 'number', 'position of the redaction entry'),
          field('repeated', 'boolean', 'it was redacted before, and nothing was written'),
          field(
            'quoted_by',
            'array',
            'what may hold it still: merges and forks as `SESSION@SEQ`, a line of the graph file as `session_graph.jsonl:LINE`',
          ),
          field('log_emptied', 'boolean', 'false: somebody was reading, and the content is still in the log'),
        ],
      },
    ],
    quiet: '`SESSION@SEQ` of the redaction entry',
    exits: [
      [2, 'no entry was named, or one that cannot be redacted'],
      [3, 'no such session, anchor or position'],
      [4, 'the owner is being written, or tool calls are open there'],
    ],
  },
  trust: {
    json: [
      {
        when: 'with DIR',
        form: 'one object',
        fields: [
          field('dir', 'string', 'real path of the directory'),
          field(
            'config',
            'string or null',
            'name of the configuration file; null when there was nothing to revoke',
          ),
          field('sha256', 'string or null', 'SHA-256 of the file; null like `config`'),
          field('trusted', 'boolean', 'false after `--revoke`'),
          field('repeated', 'boolean', 'it was so already, and nothing was written'),
        ],
      },
      { when: 'without DIR', form: 'one array of objects', fields: granted },
      { when: 'without DIR, with `--jsonl`', form: 'one object a line', fields: granted },
    ],
    quiet: 'the directory, or all of them one a line',
    exits: [
      [2, 'what is there is no file of its own, or the record of trust cannot be used'],
      [3, 'no such directory, or no configuration in it'],
    ],
  },
  raw: {
    json: [{ form: 'one object', fields: [field('checkpoint', 'boolean', 'the log is empty now')] }],
    quiet: '`done` or `busy`',
    exits: [[4, 'somebody is reading or writing']],
  },
};

/** What each error code means. `cli.test.ts` compares the list with the code. */
export const errorCodes: Readonly<Record<string, string>> = {
  CLI_USAGE: 'the command line is not right',
  CLI_INTERRUPTED: 'it was stopped before it was done; what is on the tape stays',
  CLI_NOT_FOUND: 'a file or a tape home is not there',
  CLI_BAD_CONFIG:
    'a configuration, or the record of what is trusted, cannot be used; `data.config` names the file',
  CLI_UNTRUSTED:
    'a configuration that was found is code that nobody has trusted, or has changed since; `data.dir` names the directory',
  CLI_FAILED: 'anything else: an error without a code of its own',
  TAPE_NO_SESSION: 'no session of that name, alias or id; `data.near` has the nearest names',
  TAPE_NO_ANCHOR: 'no such anchor; `data.near` has the nearest names, `data.hidden` the rewind that hides it',
  TAPE_NO_SEQ: 'the session has no such position',
  TAPE_NO_BLOB: 'the bytes of that hash are not there',
  TAPE_BAD_NAME: 'not allowed as a name',
  TAPE_BAD_ENTRY: 'cannot be appended: no such kind, not JSON, too large, nested too deep',
  TAPE_BAD_POINT:
    'a point that makes no sense here; of a rewind `data.message` is the message of that turn, `data.hidden` the rewind that hides the point',
  TAPE_BAD_POLICY: 'a policy of a view contradicts itself, or has a rule that means nothing',
  TAPE_BAD_STATUS:
    'there is no such lifecycle or task (`data.value`; `data.allowed` has those that there are)',
  TAPE_EXISTS: 'the name is taken',
  TAPE_KEY_CONFLICT: 'the key was used before, with other content',
  TAPE_CONFLICT: 'the merge contradicts what is recorded, or both sides wrote the same',
  TAPE_ARCHIVED:
    'the parent of a merge (`data.parent`), or a session that is to be run, sent to, compacted, rewound or delegated from, is archived: nothing is written',
  TAPE_STALE_HEAD: 'the session has moved on since it was read',
  TAPE_BUSY: 'another owner is writing the session; `data.owner` names it',
  TAPE_FENCED: 'another owner has taken the session over',
  TAPE_UNSETTLED: 'tool calls have no result yet',
  TAPE_LOCKED: "another process held the database's write lock for 15 seconds; `data.holders` has the leases",
  TAPE_CLOSED: 'the store is closed',
  TAPE_CANNOT_OPEN: 'the file cannot be opened or made',
  TAPE_UNSAFE_PLACE: 'the home is where locks do not hold, belongs to another user, or is open to others',
  TAPE_SCHEMA_NEWER: 'the file was written by a newer version',
  TAPE_SCHEMA_OLDER: 'the file was written by an older version, and was to be read only',
  TAPE_NOT_A_TAPE: "the file is another program's database, or holds no tapes",
  TAPE_CORRUPT: 'SQLite or a stored text is damaged',
  TAPE_IO: 'the disk is full, failing or read-only',
  GRAPH_DIVERGED: 'the graph file holds a line that the database did not write',
  GRAPH_UNREADABLE: 'the graph file cannot be read',
  GRAPH_IO: 'the graph file cannot be written',
  GRAPH_NO_SESSION: 'the graph has no such session',
  SESSION_BUSY: 'the session is being run',
  SESSION_NO_MODEL: 'no model was given, or none of that name',
  SESSION_NO_KEY: 'the variable with the key or address is not set; `data.variable` names it',
  SESSION_NO_FILE: 'the script cannot be read',
  SESSION_BAD_SCRIPT: 'the script is not right',
  SESSION_BAD_CONFIG: 'a configuration is not right; `data.field` names the field',
  SESSION_SCRIPT_ENDED: 'the script has no answer left for the call',
  SESSION_MODEL_FAILED: 'the model failed',
  SESSION_COMPACTION_FAILED:
    'a session cannot be summarised: no summary could be had, none that is smaller, or it is too large for that, too',
  SESSION_MODEL_TOO_SMALL:
    'a session does not fit the model that it is to go on with, summarised either; it stays with the one that it had',
  SESSION_CANNOT_UNDO:
    'there is no summary or pruning to take back, or something was said after it; `data.after` is the first of that',
  SESSION_BAD_INPUT: 'a message is empty, or is to be sent in a mode that there is not',
  SESSION_NO_CALL: 'no call of that id waits for an answer',
  SESSION_LIMIT: 'a child would be too deep, too many, or more than a budget above it leaves',
  SESSION_BAD_RESULT: 'a result does not have the form that was asked for, or there is none',
  SESSION_ENDED: 'the task of the session has come to its end before',
  SESSION_CLOSED: 'the session is gone, or the deck that it is run by was closed',
  SESSION_MERGE_WAITING: 'the merge is in the inbox of its parent, and not done yet',
  SESSION_NO_GIT: 'there is no git on this machine, which worktrees need',
  SESSION_NO_REPOSITORY: 'the directory is in no git repository that has a working tree and a commit',
  SESSION_NO_WORKSPACE: 'the child was given no worktree, or its worktree was removed with what was in it',
  SESSION_WORKSPACE_FAILED: 'git or the disk failed at a worktree; the message has what git said',
  SESSION_PATCH_TOO_LARGE: 'what was done in a worktree is over `data.bytesMax` bytes; nothing was recorded',
  SESSION_CANNOT_APPLY:
    'what was done in a worktree does not fit `data.files` of `data.dir`; no file was changed',
  IMPORT_CANNOT_READ: 'the transcript cannot be read',
  IMPORT_EMPTY: 'the transcript has no records',
  IMPORT_BAD_JSON: 'a line is not JSON; `data.line` and `data.offset` say where',
  IMPORT_UNKNOWN_FORMAT: 'no record is one of a known format',
};
