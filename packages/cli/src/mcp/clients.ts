import { join } from 'node:path';

/** How a program writes down a server, and where. */
export interface Client {
  readonly title: string;
  /** The file that it reads, for a project in `cwd` or for all projects of a user. */
  file(place: { readonly cwd: string; readonly user: string }): string;
  readonly format: 'json' | 'toml';
  /** The field that has the servers, by name. */
  readonly field: string;
  /** Whether an entry says that the server is a program. */
  readonly typed?: true;
}

const json = { format: 'json', field: 'mcpServers' } as const;

/** The programs that `tape mcp --install` knows, by name. */
export const clients: Readonly<Record<string, Client>> = {
  'claude-code': {
    title: 'Claude Code, in this project',
    file: ({ cwd }) => join(cwd, '.mcp.json'),
    ...json,
  },
  codex: {
    title: 'Codex',
    file: ({ user }) => join(user, '.codex', 'config.toml'),
    format: 'toml',
    field: 'mcp_servers',
  },
  cursor: { title: 'Cursor, in this project', file: ({ cwd }) => join(cwd, '.cursor', 'mcp.json'), ...json },
  vscode: {
    title: 'VS Code, in this project',
    file: ({ cwd }) => join(cwd, '.vscode', 'mcp.json'),
    format: 'json',
    field: 'servers',
    typed: true,
  },
  gemini: {
    title: 'Gemini CLI, in this project',
    file: ({ cwd }) => join(cwd, '.gemini', 'settings.json'),
    ...json,
  },
  windsurf: {
    title: 'Windsurf',
    file: ({ user }) => join(user, '.codeium', 'windsurf', 'mcp_config.json'),
    ...json,
  },
};

/** The name of the entry of `tape`. */
export const entryName = 'tape';

/** A server as programs write one down. */
export interface Entry {
  readonly type?: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
}
