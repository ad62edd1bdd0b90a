import { join } from 'node:path';
import { user } from '@tapedeck/tape';
import { beforeAll, describe, expect, test } from 'vitest';
import { shellOutside, skipsRegistry } from '../support/npm.ts';
import { tapeProgram } from '../support/programs.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

describe.skipIf(skipsRegistry('the inspector of the protocol'))('the inspector of the protocol', () => {
  const dir = tempDir();
  const inspector = join(dir.path, 'node_modules/.bin/mcp-inspector');

  beforeAll(async () => {
    await shellOutside(
      dir.path,
      'npm init --yes && npm install --no-audit --no-fund @modelcontextprotocol/inspector@2.12.0',
    );
    return () => dir[Symbol.dispose]();
  }, 300_000);

  /** What it prints of a request to `tape mcp`. */
  const inspect = async (home: string, words: string) => {
    const server = `${process.execPath} ${tapeProgram} mcp --home ${home}`;
    return JSON.parse(await shellOutside(dir.path, `HOME=${dir.path} ${inspector} --cli ${server} ${words}`));
  };

  test('lists tools and sessions, and calls a tool', async () => {
    using home = tempHome();
    home.session('main', user('Plan the release.'));
    const { tools } = await inspect(home.path, '--method tools/list');
    expect(tools.map(({ name }: { readonly name: string }) => name)).toContain('fork');
    const forked = await inspect(
      home.path,
      '--method tools/call --tool-name fork --tool-arg parent=main name=try task="Check the docs"',
    );
    expect(forked.content[0].text).toContain('"session":"try"');
    const { resources } = await inspect(home.path, '--method resources/list');
    expect(resources).toHaveLength(2);
    const read = await inspect(home.path, '--method resources/read --uri tape://session/main');
    expect(read.contents[0].text).toContain('Plan the release.');
  }, 120_000);
});
