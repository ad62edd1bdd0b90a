import type { Topic } from '../page.ts';

export const environment: Topic = {
  name: 'environment',
  summary: 'The variables that the command reads',
  page: {
    sections: [
      {
        blocks: [
          {
            terms: [
              [
                '`TAPE_HOME`',
                'Tape home, a directory or `postgres://HOST/DATABASE`, unless `--home` names one; else the nearest `.tape` upward, else `~/.tape`. Verbs that read refuse a directory that does not exist',
              ],
              [
                '`PGUSER`, `PGPASSWORD`',
                'User and password of a home on a server, unless its address has them; else a line of `~/.pgpass`, or of the file that `PGPASSFILE` names',
              ],
              ['`TAPE_MODEL`', 'Model of sessions that have none: see `tape help models`'],
              ['`OPENAI_BASE_URL`', 'Address of the server of `openai-compatible/NAME`'],
              ['`OPENAI_API_KEY`', 'Key of that server, and of `openai/NAME`'],
              ['`ANTHROPIC_API_KEY`', 'Key of `anthropic/NAME`'],
              ['`GOOGLE_GENERATIVE_AI_API_KEY`', 'Key of `google/NAME`'],
              ['`AI_GATEWAY_API_KEY`', 'Key of the AI Gateway, for all other models'],
              [
                '`TAPE_SSH_COMMAND`',
                'Command in the place of `ssh` for remotes `ssh://HOST/HOME`, with its options; git has a variable of its own',
              ],
              [
                '`TAPE_REMOTE_TAPE`',
                'Command in the place of `tape` on that host, such as a path; default: `tape`',
              ],
              ['`NO_COLOR`', 'Set to anything: no colours'],
              ['`TAPE_TRUST_HOME`', '`1`: trust every home whole, in containers that keep no record of it'],
              [
                '`TAPE_ALLOW_UNSAFE_FS`',
                '`1`: use a home on a file system without reliable locks, at your risk',
              ],
              [
                '`FORCE_HYPERLINK`',
                '`1`: names of sessions with a worktree or raw traffic are links to it on any terminal with colours; `0`: on none. Default: where links are known to work',
              ],
              ['`TAPE_PAGER`', 'Pager for long output on a terminal; else `PAGER`, else `less -FRX`'],
              ['`XDG_CONFIG_HOME`', 'Where `tape` keeps what you trust, in `tape/`; default: `~/.config`'],
              [
                '`XDG_STATE_HOME`',
                'Where it keeps which sessions you named, and your prompts; default: `~/.local/state`',
              ],
              [
                '`XDG_DATA_HOME`',
                'Where `tape completion --install` puts scripts; default: `~/.local/share`',
              ],
              [
                '`CLAUDE_CONFIG_DIR`',
                'Where `tape import` finds the transcripts of Claude Code, and `tape export` writes them; default: `~/.claude`',
              ],
              [
                '`CODEX_HOME`, `PI_CODING_AGENT_SESSION_DIR`, `PI_CODING_AGENT_DIR`, `GEMINI_CLI_HOME`',
                'Where it finds those of other tools, and writes those of pi, as these tools do',
              ],
              ['`SHELL`', 'The shell whose script `tape completion` prints'],
            ],
          },
          'Values of variables that hold a key, a token or a password are replaced by their names in all that is ' +
            'written and printed.',
        ],
      },
    ],
  },
};
