/**
 * Takes a git snapshot of a workspace before each message is appended, and restores it when the session is rewound to that
 * message. The repository's own index, branches and history stay unchanged.
 *
 *     node examples/snapshots.ts
 */
import { execFileSync } from 'node:child_process';
import { mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

await using home = await mkdtempDisposable(join(tmpdir(), 'tapedeck-'));
await using workspace = await mkdtempDisposable(join(tmpdir(), 'workspace-'));

/** Runs git on a separate index, so that staged changes of the user stay as they are. */
function git(...args: readonly string[]): string {
  const env = { ...process.env, GIT_INDEX_FILE: join(workspace.path, '.git', 'snapshots.index') };
  return execFileSync('git', args, { cwd: workspace.path, env, encoding: 'utf8' }).trim();
}

/** All files that git does not ignore, as a tree. */
function takeSnapshot(): string {
  git('add', '--all');
  const tree = git('write-tree');
  // Git does not collect an object that a ref names.
  git('update-ref', `refs/snapshots/${tree}`, tree);
  return tree;
}

const write_file = tool({
  description: 'Write a file of the workspace',
  inputSchema: z.object({ name: z.string(), text: z.string() }),
  execute: async ({ name, text }) => {
    await writeFile(join(workspace.path, name), text);
    return `${name} is written`;
  },
});

await using deck = await openDeck({
  home: home.path,
  model: `script:${import.meta.dirname}/answers/snapshots.json`,
  tools: { write_file },
  hooks: {
    onMessage: () => ({ snapshotId: takeSnapshot() }),
    onRewind: ({ snapshotId }) => {
      if (snapshotId === undefined) return;
      // A snapshot also keeps the files that a mistaken rewind removes.
      takeSnapshot();
      git('read-tree', '--reset', '-u', snapshotId);
    },
  },
});

async function show(what: string): Promise<void> {
  const names = (await readdir(workspace.path)).filter((name) => name !== '.git').sort();
  const files = names.map(async (name) => `${name} '${await readFile(join(workspace.path, name), 'utf8')}'`);
  console.log(`${what}: ${(await Promise.all(files)).join(', ')}`);
}

git('init', '--quiet');
const session = await deck.session('writing');
await session.run('Write a draft.');
await show('after the first message');
const { from } = await session.run('Make it longer, and write a summary.');
await show('after the second');
const { text } = await session.rewind(from);
await show('rewound');
await session.run(`${text} No summary.`);
await show('said otherwise');
