import { z } from 'zod';
import {
  busy,
  type Contracts,
  count,
  document,
  dryRun,
  entryName,
  flag,
  graphDiverged,
  graphStanding,
  kind,
  lines,
  listed,
  listOf,
  logEmptied,
  mark,
  names,
  noPoint,
  noSession,
  object,
  printed,
  range,
  repeated,
  session,
  shape,
  text,
  whole,
} from './form.ts';
import { Session } from './session.ts';

const seq = count('position');
const at = text('time, ISO 8601 in UTC');

const Entry: z.ZodObject = shape('Entry', 'An entry of a tape.', {
  session: text('session that was read'),
  tape: text('tape that owns the entry: for an inherited entry the tape of an ancestor'),
  seq,
  kind,
  mark: z
    .enum(['anchor', 'boundary', 'rewind', 'redaction'])
    .optional()
    .describe('effect of the entry on the view of its tape'),
  name: entryName,
  ref: count('position that a rewind returns to, or at which a kept tail begins').optional(),
  payload: z.unknown().describe('content; null once redacted, and where it is not here'),
  meta: z.record(z.string(), z.unknown()).describe('facts about the entry: run, step, model, source'),
  at: text('time of recording, ISO 8601 in UTC'),
  source_at: text('time at the source, for an imported entry').optional(),
  key: text('idempotency key; the keys of callers begin with `u:`').optional(),
  hash: text('64 hex digits'),
  adopted: mark('a bundle brought it').optional(),
  absent: mark('its content is not here: the bundle did not bring it').optional(),
});

const Hit: z.ZodObject = shape('Hit', 'An entry that a search found.', {
  session: text('session that wrote the entry'),
  tape: text('name of its tape'),
  seq,
  kind,
  name: entryName,
  snippet: text('text around the first match, on one line'),
  sessions: names('sessions that have the entry, at most a hundred'),
  at,
});

const digest = text('SHA-256');
const manifest = {
  policy: z.string(),
  version: whole,
  target: z.string().optional(),
  head: whole,
  in: z.array(range),
  out: z.array(z.tuple([whole, whole, z.string()])),
  pruned: whole.optional(),
  tokens: z.number(),
  digest,
};

const message = z.strictObject({
  role: z.enum(['user', 'assistant', 'tool']).describe('author of the message'),
  content: z.array(z.looseObject({ type: z.string() })).describe('parts'),
  providerOptions: z.record(z.string(), z.unknown()).optional().describe('options for the provider'),
});

const anchored: Contracts[string] = {
  json: printed({
    session,
    seq: count('position of the anchor'),
    name: text('name of the anchor'),
  }),
  quiet: '`SESSION@SEQ`',
  exits: { 2: 'the name or the state is not valid', ...noSession, ...busy },
};

const Source: z.ZodObject = shape('Source', 'A source of an entry.', {
  session: text('child whose work it is'),
  state: z.enum(['merged', 'discarded', 'unmerged']).describe('state of its result in the parent'),
  mark: object('mark of the merge, and the rewind that hides it', {
    session: z.string(),
    seq: whole,
    received: count('where that had got the result, of a merge that an import found').optional(),
    hidden_by: whole.optional(),
  }).nullable(),
  range: range.nullable().describe('positions that the merge covers'),
  status: text('state of the task, as the merge recorded it').optional(),
  text: object('entry whose text was merged; null when the merge supplied the text, or it was erased', {
    seq: whole,
    kind: z.string(),
  }).nullable(),
  quoted: mark('the merge lies outside the range above, and its message is quoted there').optional(),
  missing: mark('there is no such session').optional(),
  again: mark('listed above, with what is below it').optional(),
  get from(): z.ZodType {
    return z.array(Source).describe('work of other children in that range');
  },
});

const LogPiece: z.ZodObject = shape('LogPiece', 'A part of the logs of a session.', {
  session,
  id: text('ULID of the session'),
  file: text('the file, below the directory of the logs'),
  seq: count(
    'position of the entry that it renders, or of the last that it leaves out; null: the heading',
  ).nullable(),
  text: text('Markdown'),
});

const LogFile: z.ZodObject = shape('LogFile', 'A file of the logs of a session.', {
  session,
  id: text('ULID of the session'),
  file: text('the file, below the directory'),
  head: count('the last position that it renders'),
  bytes: count('its size'),
});

const BlamedPart: z.ZodObject = shape('BlamedPart', 'A part of a view, and what is recorded of its making.', {
  seq,
  what: z
    .enum(['message', 'result', 'task', 'summary'])
    .describe('`result` of a tool; `task` of a fork; `summary`: the state that begins the view'),
  role: z.enum(['user', 'assistant', 'tool']).describe('role of its message in the view'),
  session: text('session on whose own tape it is'),
  inherited: flag('whether that is an ancestor'),
  turn: count('position of the message or the task that began the turn').optional(),
  run: text('ULID of the run that wrote it').optional(),
  model: text('model of an answer or a summary').optional(),
  author: text('author that a message names').optional(),
  source: text('where a message came from: `cli`, `merge`, …').optional(),
  tool: text('tool of a result').optional(),
  summarizer: text('session that wrote the summary').optional(),
  from: z.array(Source).describe('children whose work it brings'),
});

const Destination: z.ZodObject = shape('Destination', 'Where an entry was merged.', {
  session: text('target session'),
  seq: count('position of the mark'),
  state: z.enum(['merged', 'discarded']).describe('kind of the mark'),
  range: range.describe('positions that the merge covers'),
  hidden_by: count('rewind that hides the merge').optional(),
  again: mark('listed above, with what is below it').optional(),
  get into(): z.ZodType {
    return z.array(Destination).describe('further merges of this one');
  },
});

const purged = {
  session: text('the name that it had'),
  id: text('its ULID'),
  erased: count(
    'number of entries that lose their content, with those of the sessions that wrote its summaries and its title',
  ),
  repeated,
  quoted_by: names(
    'places that may still contain the text: merges and forks as `SESSION@SEQ`, lines of the graph file as `session_graph.jsonl:LINE`, files of raw traffic',
  ),
};

const redactable = {
  session: text('session that owns the entry'),
  seq: count('position of the entry'),
  kind,
  repeated,
  quoted_by: names(
    'places that may still contain the text then, of the first 100 entries: as `tape redact` names them',
  ),
};

const redacted = {
  session: text('session that owned the entry'),
  seq: count('position of the erased entry'),
  by: count('position of the redaction entry'),
  repeated,
  quoted_by: names(
    'places that may still contain the text: merges, forks and, for the first 100 entries, others that say the same as `SESSION@SEQ`, of a title the first entry of its session, lines of the graph file as `session_graph.jsonl:LINE`, files',
  ),
};

const DerivedEdge: z.ZodObject = shape('DerivedEdge', 'What an import concluded, since no record names it.', {
  session,
  seq: count('position of what follows; null for an edge between two sessions').nullable(),
  parent: text('the session before it: the same one, or its parent in the tree').nullable(),
  parent_seq: count('position of what precedes; null as `seq` is').nullable(),
  type: text(
    '`clear`, `copy`, `workflow`, `subagent`; inside of a session `parent-missing`, `circle`, `compaction`',
  ),
  evidence: text('what says so').optional(),
});

/** Verbs that write, read and follow entries. */
export const entryVerbs: Contracts = {
  append: {
    json: [
      ...printed({
        session,
        from: count('first position of the batch, repeated entries included'),
        to: count('last position of the batch'),
        added: count('number of new entries'),
        repeated: count('number of entries that existed before'),
      }),
      lines(
        z.strictObject({
          seq: count('position of the entry'),
          hash: text('hash of the entry'),
        }),
        'with `--each`',
      ),
      ...printed({ session, queued: text('id of the inbox item') }, 'exit 6'),
    ],
    quiet: 'the last position, or the id of the inbox item',
    exits: {
      2: 'a line is not valid; nothing was appended (with `--each`: the lines before it were)',
      4: 'a key was used before with other content; with `--each` also when another process writes',
      6: 'another process still writes the session after `--wait`: the lines are in its inbox',
    },
  },
  anchor: anchored,
  handoff: anchored,
  logs: {
    json: [
      ...listed(LogPiece),
      ...printed(
        {
          session,
          id: text('ULID of the session'),
          dir: text('the directory'),
          files: z.array(LogFile).describe('each file'),
        },
        '`--output`',
      ),
      lines(LogFile, '`--output`, with `--jsonl`'),
    ],
    quiet: 'the texts; with `--output` the paths of the files, one a line',
    exits: {
      1: 'a file could not be written',
      2: 'the directory is a link, or has another file of one of the names',
      ...noSession,
      130: 'Ctrl-C ended `--follow`',
    },
  },
  log: {
    json: [
      ...listed(Entry),
      ...printed(
        {
          session,
          entries: count('number of entries'),
          messages: object('number of messages', {
            user: whole,
            assistant: whole,
            merge: count('merged results'),
          }),
          tools: listOf('calls by tool, in the order of first use', {
            tool: text('name of the tool'),
            calls: whole,
          }),
          tokens: z
            .number()
            .describe(
              'all tokens that the entries record, inherited ones included without `--own`; of own entries the `total` of `usage`',
            ),
          children: z.record(z.string(), whole).describe('number of children by their state'),
          files: listOf('files that calls declared', {
            path: text('path of the file'),
            wrote: flag('true: a call wrote it'),
          }),
          first: text('time of the first message, ISO 8601 in UTC').nullable(),
          last: text('time of the last message').nullable(),
          complete: flag('false: names of tools or files are left out'),
        },
        '`--stat`',
      ),
      ...listed(DerivedEdge, 'with `--derived`'),
    ],
    quiet: 'the positions, one a line; with `--stat` the number of entries, with `--derived` the sessions',
    exits: { ...noPoint },
  },
  show: {
    json: [
      document(Entry, 'SESSION@POINT'),
      ...printed(
        {
          session: text('session that was read'),
          seq: count('position of the entry'),
          size: count('bytes of the whole output'),
          from: count('first byte of `text`'),
          to: count('byte after the last of `text`'),
          text: text('the output, or those bytes of it'),
        },
        '`--output`',
      ),
      document(
        Session.extend({
          tape: text('name of the tape'),
          base: count('last inherited position; 0 for a root'),
          floor: count('inherited positions are those after it'),
          settled: count('greatest position at which no tool call is open'),
          hash: text('hash of the head'),
          mcp: z
            .record(z.string(), z.array(z.string()))
            .describe('the tools of each MCP server that it was last offered, as the server names them')
            .optional(),
          tools: z
            .array(z.string())
            .describe(
              'the tools that it and the sessions below it may call; absent: all that the configuration has',
            )
            .optional(),
          uses: z
            .array(z.string())
            .describe('those that its own model may call, where these are others')
            .optional(),
          settings: object('what it was created with; others are those of the deck', {
            instructions: z.string().optional(),
            model: z.string().optional(),
            call: z
              .strictObject({
                temperature: z.number().optional(),
                effort: z.string().optional(),
                providerOptions: z.record(z.string(), z.unknown()).optional(),
              })
              .optional(),
            tools: z.array(z.string()).optional(),
            uses: z.array(z.string()).optional(),
            rules: z.array(z.string()).optional(),
            record: z.enum(['raw']).optional(),
          }).optional(),
          metadata: z
            .record(z.string(), z.unknown())
            .optional()
            .describe('metadata of a branch, added to that of its ancestors'),
          imported: object('where it was imported from, and where it worked last', {
            tool: text('the program that wrote it'),
            session: text("the program's own id of it"),
            dir: text('working directory').optional(),
            branch: text('branch of Git there').optional(),
            version: text('version of the program').optional(),
          }).optional(),
        }),
        'SESSION',
      ),
    ],
    quiet: 'the hash of the entry, or the ULID of the session',
    exits: { ...noPoint },
  },
  view: {
    json: [
      ...printed({
        messages: z
          .array(message)
          .describe('messages of the AI SDK; bytes are `{type: "blob", hash, size, as}`'),
        digest: digest.describe('SHA-256 of the compact JSON of the messages'),
        tokens: z
          .number()
          .describe(
            'tokens up to the last answer as counted by its provider, plus an estimate of the rest; else an estimate of all: characters divided by four',
          ),
        from: count('first position that it covers'),
        to: count('last position that it covers'),
        explain: listOf('each entry, with `--explain`', {
          seq: whole,
          in: z.boolean(),
          why: z.string(),
        }).optional(),
        manifest: z
          .strictObject(manifest)
          .optional()
          .describe('[manifest](format.md#manifests) of the view, with `--explain`'),
        asked: object(
          'manifest of the view that the model of an answer received, with `--explain` of that answer',
          {
            ...manifest,
            instructions_digest: digest.optional(),
            tools_digest: digest.optional(),
            same: flag('the tape still yields the same view'),
            fault: object('reason why the view cannot be reproduced', {
              code: z.string(),
              message: z.string(),
            }).optional(),
          },
        ).optional(),
      }),
      ...printed(
        {
          session,
          instructions: text('system prompt of the model').nullable(),
          digest: digest
            .nullable()
            .describe('SHA-256 of the instructions, as `meta.instructions_digest` of an answer has it'),
          sources: listOf('parts of the instructions, in order', {
            section: z.enum(['manifest', 'project', 'skills', 'environment', 'tools']),
            path: z.string().optional(),
            chars: whole,
          }),
          omitted: listOf('omitted files and folders', { path: z.string(), why: z.string() }),
        },
        'with `--instructions`',
      ),
      lines(message),
    ],
    quiet: 'the digest',
    exits: { 2: 'no such policy, or `--instructions` of a point', ...noPoint },
  },
  search: {
    json: [
      ...printed({
        hits: z.array(Hit).describe('entries with the text, newest first'),
        unsearched: count('entries, at most, that were left out and may contain newer hits, or more of them'),
        unindexed: count('entries, at most, that are not indexed yet'),
      }),
      lines(Hit),
    ],
    quiet: '`SESSION@SEQ`, one a line',
    exits: { 3: 'no such session, or no tape home' },
  },
  trace: {
    json: printed({
      session: text('session that was read'),
      owner: text('session whose own tape has the entry'),
      seq,
      kind,
      name: entryName,
      from: z.array(Source).describe('work of children that the entry contains'),
      into: z.array(Destination).describe('merges of the entry into other sessions'),
      inherited_by: names('forks that have the entry without a copy, at most a hundred'),
      inherited_count: count('number of these forks'),
      ...graphStanding,
    }),
    quiet: 'the source entries, then the merges, as `SESSION@SEQ`, one a line',
    exits: { 2: 'no point was named', ...noPoint, ...graphDiverged },
  },
  blame: {
    json: listed(BlamedPart),
    quiet: '`SESSION@SEQ` of each part, one a line',
    exits: { 2: 'no such policy', 3: 'no such session, or no tape home' },
  },
  redact: {
    json: [
      ...printed({ ...redacted, log_emptied: logEmptied }),
      ...printed({ ...redactable, dry_run: dryRun }, 'with `--dry-run`'),
      ...printed(
        { entries: listOf('each entry, in the order of the arguments', redacted), log_emptied: logEmptied },
        'for several entries',
      ),
      ...printed(
        { entries: listOf('each entry, in the order of the arguments', redactable), dry_run: dryRun },
        'for several entries, with `--dry-run`',
      ),
    ],
    quiet: '`SESSION@SEQ` of each redaction entry, one a line; with `--dry-run` of each entry',
    exits: {
      2: 'no entry was named, or an entry cannot be redacted',
      3: 'no such session, anchor or position',
      4: 'another process writes the owner, or tool calls are open there',
    },
  },
  purge: {
    json: [
      ...printed({
        ...purged,
        wiped: flag(
          'false: others used the file, or the disk is full, and it still has the content; or the home is on a server, which keeps its own files',
        ),
      }),
      ...printed({ ...purged, dry_run: dryRun }, 'with `--dry-run`'),
    ],
    quiet: 'the ULID of the session',
    exits: {
      2: 'the reason is empty',
      ...noSession,
      4: 'forks inherit its entries (`data.forks`), tool calls are open, or another process is writing it',
    },
  },
};
