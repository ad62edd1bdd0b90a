import { z } from 'zod';
import {
  type Contracts,
  count,
  document,
  flag,
  listed,
  listOf,
  mark,
  names,
  object,
  printed,
  repeated,
  text,
  whole,
} from './form.ts';

const problem = z.strictObject({
  code: z.string(),
  session: z.string().nullable(),
  seq: whole.nullable(),
  message: z.string(),
});
const importedFiles = z.array(
  z.strictObject({ path: text('real path of the file'), sha256: text('its SHA-256') }),
);
const checked = {
  sessions: count('number of sessions that were checked'),
  entries: count('number of entries that were checked'),
};

const section = z.strictObject({
  ok: flag('there is no finding but notes'),
  findings: z.array(
    problem.extend({
      id: text('names the finding, as `CODE:SESSION@SEQ`'),
      weight: z
        .enum(['damage', 'incomplete', 'note'])
        .describe('`damage`: something recorded was changed or lost; `note`: it harms nothing'),
      next: text('command that continues from there').nullable(),
    }),
  ),
});
const checkFields = {
  ok: flag('nothing is damaged, and nothing is incomplete'),
  ...checked,
  sections: z
    .strictObject({
      home: section,
      integrity: section,
      lineage: section,
      graph_file: section,
      completeness: section,
      attestation: section.optional(),
    })
    .describe('the codes are in [findings.md](findings.md); `attestation` is present with `--against`'),
};
const imports = z
  .strictObject({
    last: text('when the last import was; null before the first one').nullable(),
    transcripts: count('number of transcripts in the directories of the tools that delete theirs'),
    expiring: listOf(
      'those that are about to be deleted, and not on a tape as they are now; the next one first',
      {
        file: text('its path'),
        tool: text('the program that wrote it'),
        bytes: count('its size'),
        deleted_from: text('from when on the program deletes it, when it is started'),
      },
    ),
    retention: listOf('how long each tool keeps its transcripts', {
      tool: text('its name'),
      days: z.number().describe('number of days after the last change'),
      started_in: text(
        'the working directory in which it has to be started for that; elsewhere it keeps them longer',
      ).optional(),
      fault: text('what is wrong with its settings; the number is a guess then').optional(),
    }),
  })
  .describe('without a name, where there was an import or there are transcripts')
  .optional();
const attested = {
  sessions: count('number of sessions in it'),
  graph: count('number of the last line of the lineage'),
  signed: flag('a key was given'),
};

const setting = {
  key: text('key, such as `limits.max_steps`'),
  value: z.unknown().describe('its value; an infinite number is `"Infinity"`'),
  origin: z
    .enum(['environment', 'code', 'file', 'default'])
    .describe('a variable, `tape.config.mts`, `config.yaml`, or the program'),
  from: text('`$TAPE_MODEL`, or the path of the file; null for a default').nullable(),
  called: text('the name that the file has for it, where that is the name of another agent').optional(),
};
const before = z.unknown().describe('value before; null without one');

/** Verbs about a tape home as a whole. */
export const homeVerbs: Contracts = {
  init: {
    json: printed({
      home: text('directory of the tape home, or its address on a server'),
      created: flag('false when it was a tape home before'),
    }),
    quiet: 'the directory, or the address',
    exits: { 1: 'the file cannot be made or opened', 5: 'another kind of file is in its place' },
  },
  export: {
    json: [
      ...printed(
        {
          file: text('absolute path of the new file'),
          session: text('name of the session'),
          sessions: count('number of sessions in it'),
          entries: count('number of entries in it'),
          withheld: count('entries of which it has the hashes alone, because a secret was found in them'),
          hashed: count('other entries of which it has the hashes alone'),
        },
        'for a bundle',
      ),
      ...printed(
        {
          file: text('absolute path of the new file, or of the directory of the session'),
          session: text('name of the session'),
          format: text('form of the file'),
          items: count('messages in it; for `openai-chat` lines, for `markdown` sections, for `html` rows'),
          sessions: count('for `html`: number of sessions in it').optional(),
          withheld: count('entries and files in which a secret was replaced'),
          transcript: object('for `claude-code` and `pi`: the session there', {
            id: text('its id'),
            project: text('the directory in which it continues'),
            resume: names('the command that continues it, for a file that the program finds').optional(),
          }).optional(),
        },
        'for another form',
      ),
    ],
    quiet: 'the file',
    exits: {
      1: 'the file cannot be written',
      2: 'the options contradict each other',
      3: 'no such session, or no tape home',
      4: 'a file of that name exists',
      130: 'Ctrl-C ended `--follow`',
    },
  },
  demo: {
    json: [],
    quiet: 'the same output',
    exits: { 1: 'a step failed', 4: 'the given home has a session `main`' },
  },
  check: {
    json: printed({
      ...checkFields,
      imports,
      fixed: names('repairs made by `--fix`'),
      acknowledged: names('findings given with `--acknowledge`'),
    }),
    quiet: '`ok`, `incomplete` or `damaged`',
    exits: {
      1: 'work is not finished, and nothing is damaged',
      2: 'the finding cannot be acknowledged, or the key or the attestation cannot be used',
      3: 'no such session, finding or file, or no tape home',
      5: 'something recorded was changed or lost',
    },
  },
  attest: {
    json: [
      ...printed({ file: text('absolute path of the new file'), ...attested }, 'with `--output`'),
      ...printed({ ...attested, text: text('the attestation') }, 'without `--output`'),
    ],
    quiet: 'the file, or the attestation',
    exits: {
      1: 'the file cannot be written',
      2: 'the key cannot be used',
      3: 'no such key, or no tape home',
      4: 'a file of that name exists',
    },
  },
  restore: {
    json: printed({ home: text('directory of the new home'), ...checkFields }),
    quiet: 'the directory',
    exits: {
      1: 'work in the backup is not finished; or the file cannot be read, or the directory not written',
      3: 'no such file',
      4: 'the directory has tapes, or is a file',
      5: 'the backup is damaged, or no backup, and nothing was restored; or it was restored, and the check found damage',
    },
  },
  verify: {
    json: printed({
      ok: flag('there are no problems'),
      ...checked,
      problems: z.array(problem).describe('the codes are in [findings.md](findings.md)'),
      not_here: z.array(problem).describe('what bundles did not bring, which is no damage').optional(),
      graph_lagging: mark('the graph file lacks the last lines, or all').optional(),
    }),
    quiet: '`ok` or `damaged`',
    exits: { 3: 'no such session, or no tape home', 5: 'there is damage' },
  },
  audit: {
    json: printed({
      ok: flag('there are no findings'),
      sessions: count('number of sessions that were examined'),
      findings: z
        .array(
          problem.extend({
            seq: count('null when no single position shows it').nullable(),
            next: text('command that continues from there'),
          }),
        )
        .describe('the codes are in [findings.md](findings.md)'),
    }),
    quiet: '`ok` or `incomplete`',
    exits: {
      1: 'something is missing',
      3: 'no such session, or no tape home',
      5: 'the tapes are damaged: see `tape verify`',
    },
  },
  doctor: {
    json: printed({
      ok: flag('no problems are left'),
      ...checked,
      problems: z.array(problem).describe('damage, as of `verify`'),
      findings: listOf('leftovers, and files that other users can access', {
        code: z.string(),
        session: z.string().nullable(),
        message: z.string(),
        fixable: z.boolean(),
      }),
      fixed: names('repairs made by `--fix`'),
    }),
    quiet: '`ok` or `damaged`',
    exits: { 3: 'no tape home', 5: 'damage is left' },
  },
  copy: {
    json: printed({
      home: text('absolute path of the home that was copied to'),
      sessions: count('number of sessions of the first home'),
      changed: count('sessions that were added, or brought up to date'),
      entries: count('number of new entries; 0 when all existed before'),
      refused: z
        .array(z.object({ session: text('root of the family'), code: text('why'), message: text('why') }))
        .describe('families that were left out'),
      behind: names('sessions that are not the same in both homes at the end'),
      still_there: names(
        'what was erased in the first home and is still in the second: ULIDs of purged sessions, and entries that were redacted since the last copy as `SESSION@SEQ`',
      ),
      waiting: z
        .array(z.object({ session: text('its name'), items: count('how many') }))
        .describe('sessions whose inbox has items, which are not copied'),
    }),
    quiet: 'the home that was copied to',
    exits: {
      1: 'sessions went on during the copy, and are not the same in both homes',
      2: '`--home` is given, or both are one home',
      3: 'the first home does not exist',
      4: 'the second home has other sessions in the place of some, which were left out',
      5: 'sessions of the first home are damaged, and were left out',
    },
  },
  backup: {
    json: printed({
      file: text('absolute path of the new file'),
      sessions: count('number of sessions in it'),
      entries: count('number of entries in it'),
    }),
    quiet: 'the file',
    exits: {
      1: 'the file cannot be written',
      2: 'the file is -: a backup cannot go to stdout',
      3: 'no tape home',
      4: 'a file of that name exists',
      5: 'the copy does not verify',
    },
  },
  trust: {
    json: [
      ...printed(
        {
          dir: text('real path of the directory'),
          config: text(
            'name of the configuration file; null for a home, and when there was nothing to revoke',
          ).nullable(),
          sha256: text('SHA-256 of the file; null like `config`').nullable(),
          imports: importedFiles.nullable().describe('local files that it imports; null like `config`'),
          trusted: flag('false after `--revoke`'),
          repeated,
        },
        'with the DIR of a configuration, and with `--revoke`',
      ),
      ...listed(
        z.strictObject({
          dir: text('real path of the directory'),
          config: text('name of the configuration file in it; null for a home').nullable(),
          sha256: text('SHA-256 of the file when it was trusted; null for a home').nullable(),
          imports: importedFiles.describe('local files that it imports, as they were then'),
          state: z
            .enum(['trusted', 'changed', 'gone'])
            .describe('state since then; a home that was moved or replaced is gone'),
        }),
        'without DIR',
      ),
      ...printed(
        {
          home: text('real path of the home'),
          id: text('id of the home'),
          trusted: flag('false after `--dry-run`, unless it was trusted before'),
          repeated,
          sessions: count('number of sessions in it'),
          brings: z
            .strictObject({
              models: z
                .array(
                  z.strictObject({
                    name: text('model that sessions name'),
                    sessions: count('how many sessions name it'),
                  }),
                )
                .describe('models that sessions name'),
              instructions: z
                .array(
                  z.strictObject({ session: text('name of the session'), text: text('its instructions') }),
                )
                .describe('instructions of sessions'),
              calls: z
                .array(
                  z.strictObject({
                    session: text('name of the session'),
                    toolCallId: text('id of a call without a result'),
                    tool: text('its tool'),
                    approved: flag('whether its tape has an approval, which does not count here'),
                  }),
                )
                .describe('calls without a result'),
              inbox: z
                .array(
                  z.strictObject({
                    session: text('name of the session'),
                    items: count('items that wait in its inbox'),
                    approvals: count('how many of them approve a call, which does not count here'),
                  }),
                )
                .describe('inboxes with items'),
              worktrees: z
                .array(
                  z.strictObject({
                    session: text('name of the session'),
                    text: text('repository that it names'),
                  }),
                )
                .describe('repositories of worktrees'),
              config: text('path of the `config.yaml` in it; null without one').nullable(),
            })
            .describe('what its tapes would make a deck do'),
          faults: z.array(z.string()).describe('why others may have put the home there, or can replace it'),
        },
        'with the DIR of a home; each list has at most 20 items',
      ),
    ],
    quiet: 'the directory, or all of them one a line',
    exits: {
      2: 'the configuration is not a regular file, or the record of trust cannot be used',
      3: 'no such directory, or neither tapes nor a configuration in it',
    },
  },
  mcp: {
    json: printed(
      {
        client: text('the program'),
        file: text('its file'),
        state: z
          .enum(['shown', 'installed', 'removed', 'unchanged'])
          .describe('what became of the file; `shown`: it was not written'),
        config: text('a file with the entry alone').nullable(),
      },
      '`--install` or `--uninstall`',
    ),
    quiet: 'the path of the file, with `--install` or `--uninstall`',
    exits: { 2: 'the file cannot be changed without a loss', 130: 'the process was interrupted' },
  },
  ui: {
    json: printed({
      url: text('address of the page, with the secret that lets in one browser'),
      port: count('the port on 127.0.0.1'),
      pid: count('the process that serves it until it is ended'),
    }),
    quiet: 'the address',
    exits: {
      1: 'the port is taken, or this user may not use it',
      3: 'no tape home',
      130: 'the process was interrupted',
    },
  },
  completion: {
    json: [
      ...printed({ shell: text('`bash`, `zsh` or `fish`'), script: text('the script') }),
      ...printed({ shell: text('as above'), file: text('path of the script') }, 'with `--install`'),
    ],
    quiet: 'the script; with `--install` its path',
    exits: { 2: 'no shell is named, or none that has a script' },
  },
  config: {
    json: [
      ...listed(
        z.strictObject({
          ...setting,
          unused: text(
            'with `--show-origin`: why a value under the name of another agent, which is the key then, is not used',
          ).optional(),
        }),
        'with `list`',
      ),
      ...printed(
        {
          ...setting,
          places: z
            .array(z.strictObject({ value: setting.value, origin: setting.origin, from: setting.from }))
            .optional()
            .describe('of `permissions` in several places, whose rules are all in `value`: what each has'),
        },
        'with `get`',
      ),
      ...printed(
        {
          key: setting.key,
          value: z.unknown().describe('its value now'),
          was: before,
          file: text('path of the `config.yaml`'),
          repeated,
        },
        'with `set`',
      ),
      ...printed({ key: setting.key, was: before, file: text('as above') }, 'with `unset`'),
    ],
    quiet: 'the keys, or with `get` the value',
    exits: {
      2: 'no such key; a value that the field cannot have; a configuration that cannot be used; or a home that is not yours',
      3: 'the key is not set',
    },
  },
  schema: {
    json: [
      document(
        z.looseObject({
          $schema: z.literal('https://json-schema.org/draft/2020-12/schema').describe('dialect'),
          title: text('`tape`, or `tape VERB`'),
          $defs: z.record(z.string(), z.unknown()).describe('shared shapes, and `Error`'),
        }),
      ),
    ],
    quiet: 'the same',
    exits: { 3: 'no such verb' },
  },
  raw: {
    json: printed({ checkpoint: flag('the log is empty now') }),
    quiet: '`done` or `busy`',
    exits: { 4: 'another process reads or writes' },
  },
};
