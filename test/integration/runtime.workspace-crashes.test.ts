import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { workspacePoints } from '@tapedeck/runtime/testing';
import { isObject } from '@tapedeck/tape/internal';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openDeck } from '../support/deck.ts';
import { startProcess } from '../support/process.ts';
import { skipsGit, tempRepository } from '../support/repository.ts';
import { tempHome } from '../support/temp-home.ts';

/** Delegates one task to a child with a worktree, and dies at a point of it. */
const delegator = `
  import { writeFileSync } from 'node:fs';
  import { openDeck } from '@tapedeck/runtime';
  import { onCrashPoint } from '@tapedeck/tape/crash-point';
  import { tool } from 'ai';
  import { z } from 'zod';
  const [home, model, repository, dieAt] = process.argv.slice(1);
  onCrashPoint((point) => {
    if (point === dieAt) process.kill(process.pid, 'SIGKILL');
  });
  const edit = tool({
    inputSchema: z.object({}),
    execute: (_, { context }) => writeFileSync(context.workspace + '/a.txt', 'edited\\n'),
  });
  await using deck = await openDeck({ home, model, tools: { edit } });
  const main = await deck.session('main');
  await main.delegate({ task: 'Edit.', name: 'fix' }, { workspace: 'worktree', repository });
`;

const answers = [{ toolCalls: [{ name: 'edit', input: {} }] }, { text: 'Done.' }];

test.skipIf(skipsGit('kills around worktrees')).each(workspacePoints)(
  'after a kill at %s the work is merged once, and no worktree is left',
  async (point) => {
    using home = tempHome();
    using code = tempRepository({ 'a.txt': 'a\n' });
    writeFileSync(home.file('answers.json'), JSON.stringify(answers));
    const model = `script:${home.file('answers.json')}`;
    const before = code.state();
    await using running = startProcess(delegator, home.path, model, code.path, point);
    await running.done().catch(() => {});
    expect(running.child.signalCode).toBe('SIGKILL');
    const namesIn = (dir: string) => (existsSync(dir) ? readdirSync(dir) : []);
    if (point === 'workspace/created')
      for (const id of namesIn(home.file('worktrees'))) {
        // Git itself may have died over it.
        rmSync(home.file(`worktrees/${id}/a.txt`));
        rmSync(join(code.path, '.git/worktrees', id, 'HEAD'));
        writeFileSync(join(code.path, '.git/worktrees', id, 'locked'), 'initializing');
      }
    const edit = tool({
      inputSchema: z.object({}),
      execute: (_, { context }) => {
        const { workspace } = context as { workspace: string };
        writeFileSync(join(workspace, 'a.txt'), 'edited\n');
      },
    });
    await using deck = await openDeck({ home: home.path, model, tools: { edit } });
    expect((await deck.recover()).failed).toEqual([]);
    const marks = (await Array.fromAsync(deck.store.entries.read('main', { kind: 'anchor' }))).filter(
      ({ name }) => name === 'merge/fix',
    );
    expect(marks.map(({ payload }) => isObject(payload) && payload.state)).toMatchObject([
      { status: 'completed', complete: true, artifact: { files: [{ path: 'a.txt', change: 'changed' }] } },
    ]);
    expect(namesIn(home.file('worktrees'))).toEqual([]);
    // The repeated merge removes a worktree that is left in git alone.
    await (await deck.session('main')).merge('fix');
    expect(namesIn(join(code.path, '.git/worktrees'))).toEqual([]);
    expect(code.state()).toEqual(before);
    expect(await Array.fromAsync(deck.store.verify())).toEqual([]);
    expect(await deck.recover()).toMatchObject({ resumed: [], merged: [], failed: [] });
  },
);
