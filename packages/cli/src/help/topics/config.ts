import type { Topic } from '../page.ts';

export const config: Topic = {
  name: 'config',
  summary: 'The files that configure sessions, and their fields',
  page: {
    sections: [
      {
        blocks: [
          'Verbs that use a model, and `view --instructions`, read two files. The first has precedence, for each ' +
            'field and each limit; options and `$TAPE_MODEL` have precedence over both.',
          {
            terms: [
              [
                '`tape.config.mts`',
                'Code: the file of `--config FILE`; else the nearest from the working directory up to `$HOME`; else the ' +
                  'one beside the home. `--no-config` loads none',
              ],
              [
                '`config.yaml`',
                'Data, in the tape home, with names in snake_case; `tape config` reads and changes it',
              ],
            ],
          },
          'The first runs with your permissions: unless `--config` names it, tape does not run it until you trust its ' +
            'directory with `tape trust DIR`, and again after it changes.',
        ],
      },
      {
        title: 'Fields of both',
        blocks: [
          {
            terms: [
              ['`model`', 'Model of sessions without one: see `tape help models`'],
              ['`settings`', 'Temperature, effort and provider options of model calls'],
              ['`summarizer`', 'Model that writes summaries'],
              ['`titles`', 'Model that writes titles of sessions'],
              ['`windows`', 'Context windows in tokens, by model'],
              ['`view`', 'Limit of what a model sees, in messages or tokens'],
              ['`compaction`', 'When and how sessions are summarised'],
              [
                '`redact`',
                'Where the forms of secrets are replaced: results of tools (`true`), `all`, nowhere (`false`)',
              ],
              ['`instructions`', 'Instructions for every model call'],
              ['`prompt.project`', 'Add `AGENTS.md`, `CLAUDE.md` and `CONTEXT.md`'],
              ['`prompt.skills`', 'Add the names of the skills in these folders'],
              ['`prompt.environment`', 'Add platform, directory, git branch, date and model'],
              ['`prompt.tools`', 'Add a description of the tools'],
              [
                '`permissions`',
                'Rules for the calls of tools, one on each line or a list; those of both files count',
              ],
              [
                '`builtin_tools`',
                'Tools for files, search and commands, by name: `builtinTools` in code; rules decide on their calls: see `tape help rules`',
              ],
              [
                '`mcp_servers.NAME`',
                'MCP server whose tools sessions may call: a `command` with `args` and `env`, or a `url` with `headers`; ' +
                  '`mcpServers` in code',
              ],
              [
                '`record`',
                '`raw`: keep requests and responses of model calls in `logs/ULID/raw.jsonl` of the home; `none`: of no session',
              ],
              [
                '`routes`',
                'Which session a delivery is for: a list of `name`, `match` and `session` with a template of its `key` and a `persona`',
              ],
              [
                '`personas.NAME`',
                'Someone who answers: `instructions`, `model`, `settings`, `tools`, `uses` and `permissions` of sessions that deliveries start',
              ],
              ['`limits.NAME`', 'Steps, timeouts, retries, children, concurrency'],
            ],
          },
        ],
      },
      {
        title: 'Fields of config.yaml alone',
        blocks: [
          {
            terms: [
              ['`alias.NAME`', 'Command line that `tape NAME` stands for, such as `log --graph`'],
              ['`import.roots`', 'Directories that `tape import` searches beside those of the tools'],
              [
                '`import.exclude`',
                'What it leaves out: patterns as in `.gitignore`, for files and for working directories of sessions',
              ],
            ],
          },
        ],
      },
      {
        title: 'Fields of tape.config.mts alone',
        blocks: [
          {
            terms: [
              ['`tools`', 'AI SDK tools, by name'],
              ['`budget`', 'Budgets of delegated children: `budget.child` and `budget.tree`'],
              ['`cost`', 'Function that returns the cost of a model call'],
              ['`onApproval`', 'Function that approves or denies a tool call, or leaves it pending'],
              ['`hooks`', 'Functions for messages and rewinds: `onMessage`, `onRewind`'],
              ['`secrets`', 'Texts that are never written or printed, by name'],
            ],
          },
          'Settings of other agents, such as `compaction.keep_recent_tokens` or `max_tool_iterations`, count in config.yaml under ' +
            'their names there: `tape status --settings` shows what they are here.',
          'docs/cli.md lists the values of each field and all limits with their defaults.',
        ],
      },
    ],
  },
};
