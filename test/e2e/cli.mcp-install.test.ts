import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { json, jsonError, tapeHere, tapeProcess } from '../support/cli.ts';
import { sized } from '../support/size.ts';
import { tempDir } from '../support/temp-dir.ts';

/** A user in a project, and the file of a program, in which the command stands as it was started: in full, as built. */
function desk(file: string, before?: string) {
  const dir = tempDir();
  const path = dir.file(file);
  mkdirSync(dirname(path), { recursive: true });
  if (before !== undefined) writeFileSync(path, before);
  const run = async (...args: string[]) =>
    await sized(
      tapeHere,
      tapeProcess,
      tapeProcess,
    )(['mcp', ...args], { cwd: dir.path, env: { HOME: dir.path } });
  return {
    cwd: dir.path,
    path,
    run,
    text: () => readFileSync(path, 'utf8'),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

test('without a question or --yes it shows the entry, and writes nothing', async () => {
  using at = desk('.mcp.json');
  const { code, stdout } = await at.run('--install', 'claude-code');
  expect([code, existsSync(at.path)]).toEqual([0, false]);
  expect(stdout).toContain('"mcpServers"');
  expect(stdout).toContain(`Not written. Write ${at.path} with: tape mcp --install claude-code --yes`);
});

test.each([
  ['y\n', 'installed'],
  ['n\n', 'shown'],
  ['', 'shown'],
])('on a terminal it asks, and writes after yes alone: %j', async (stdin, state) => {
  using at = desk('.mcp.json');
  const terminal = { stdinIsTerminal: true, isTerminal: true };
  const { stdout, stderr } = await tapeHere(['mcp', '--install', 'claude-code'], {
    cwd: at.cwd,
    env: { HOME: at.cwd },
    stdin,
    ...terminal,
  });
  expect(stderr).toContain(`Claude Code, in this project:\n{`);
  expect(stderr).toContain(`Write this to ${at.path}? [y/N] `);
  expect(stdout).toContain(state === 'installed' ? `Installed in ${at.path}` : 'Not written.');
  expect(existsSync(at.path)).toBe(state === 'installed');
});

const commented = `// Servers of the team
{
    "inputs": [], // none yet
    "servers": {
        /* the notes */
        "notes": { "command": "notes", "args": ["--all"] /* keep */ },
    }, // the team's
}
`;
const toml = `# my settings
model = "gpt-5"

[mcp_servers.notes] # the notes
command = "notes"
text = """
[mcp_servers.tape]
"""

[profiles.fast]
model = "small"
`;

test.each([
  ['claude-code', '.mcp.json', undefined],
  ['claude-code', '.mcp.json', '{\n\t"mcpServers": {}\n}\n'],
  ['cursor', '.cursor/mcp.json', ''],
  ['vscode', '.vscode/mcp.json', commented],
  ['gemini', '.gemini/settings.json', '{"theme":"dark"}\n'],
  ['windsurf', '.codeium/windsurf/mcp_config.json', undefined],
  ['codex', '.codex/config.toml', undefined],
  ['codex', '.codex/config.toml', toml.replace(/text = """[\s\S]*?"""\n/, '')],
])(
  'it is added to the file of %s, a second time changes nothing, and what else is there stays: %s',
  async (client, file, before) => {
    using at = desk(file, before);
    expect(json(await at.run('--install', client, '--yes', '--json'))).toMatchObject({
      client,
      file: at.path,
      state: 'installed',
    });
    const after = at.text();
    expect(after).toMatch(/"?mcp"?/);
    for (const line of (before ?? '')
      .split('\n')
      .filter((text) => /notes|keep|team|model|theme|#/.test(text)))
      expect(after).toContain(line.trim().replace(/^\{|[,}]+$/g, ''));
    expect(json(await at.run('--install', client, '--yes', '--json'))).toMatchObject({ state: 'unchanged' });
    expect(at.text()).toBe(after);
    await at.run('--install', client, '--read-only', '--yes');
    expect(at.text()).toContain('--read-only');
    expect((await at.run('--uninstall', client)).stdout).toMatch(/^Not removed\. Remove it from /);
    expect(json(await at.run('--uninstall', client, '--yes', '--json'))).toMatchObject({ state: 'removed' });
    expect(at.text()).not.toMatch(/"?tape"?/);
    for (const line of (before ?? '')
      .split('\n')
      .filter((text) => /notes|keep|team|model|theme|#/.test(text)))
      expect(at.text()).toContain(line.trim().replace(/^\{|[,}]+$/g, ''));
    expect(json(await at.run('--uninstall', client, '--yes', '--json'))).toMatchObject({
      state: 'unchanged',
    });
  },
);

test.each([
  ['claude-code', '.mcp.json', '{"mcpServers": ', 'is no JSON'],
  ['claude-code', '.mcp.json', '[]', 'it is no JSON object'],
  ['vscode', '.vscode/mcp.json', '{"servers": []}', "its field 'servers' is no object"],
  ['codex', '.codex/config.toml', 'model = ', 'it is no TOML'],
  ['codex', '.codex/config.toml', 'mcp_servers = { tape = { command = "x" } }\n', 'is no table of its own'],
  ['codex', '.codex/config.toml', '[mcp_servers]\ntape.command = "x"\n', 'is no table of its own'],
  ['codex', '.codex/config.toml', toml, 'is no table of its own'],
])(
  'a file of %s that cannot be changed without a loss stays as it is: %s %j',
  async (client, file, before, why) => {
    using at = desk(file, before);
    const refused = await at.run('--install', client, '--yes', '--json');
    expect(jsonError(refused)).toMatchObject({ code: 'CLI_BAD_CONFIG' });
    expect(refused.stderr).toContain(why);
    expect(at.text()).toBe(before);
  },
);

test('a link is followed, and a directory in the place of the file is refused', async () => {
  using at = desk('.mcp.json');
  const target = join(dirname(at.path), 'shared.json');
  writeFileSync(target, '{}\n');
  symlinkSync(target, at.path);
  await at.run('--install', 'claude-code', '--yes');
  expect(readFileSync(target, 'utf8')).toContain('"tape"');
  using other = desk('.mcp.json');
  mkdirSync(other.path);
  expect((await other.run('--install', 'claude-code', '--yes')).stderr).toContain('it is not a regular file');
  using dangling = desk('.mcp.json');
  symlinkSync('nowhere.json', dangling.path);
  const refused = await dangling.run('--install', 'claude-code', '--yes', '--json');
  expect(jsonError(refused)).toMatchObject({ code: 'CLI_BAD_CONFIG' });
  expect(refused.stderr).toContain('it is a link to nothing');
});

test('a file with bytes that are no text keeps them', async () => {
  using at = desk('.mcp.json');
  const before = Buffer.from('{"a":"\xff"}', 'latin1');
  writeFileSync(at.path, before);
  expect((await at.run('--install', 'claude-code', '--yes')).stderr).toContain('it is no text in UTF-8');
  expect(readFileSync(at.path)).toEqual(before);
});
