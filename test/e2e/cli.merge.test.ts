import { assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tempHome } from '../support/temp-home.ts';

test('merge refuses a child that has not run, and says that one which has run has no result', async () => {
  using home = tempHome();
  home.session('main');
  for (const name of ['idle', 'silent', 'done', 'told'])
    expect((await home.here(['fork', 'main', '--as', name, '--task', 'Check the tests'])).code).toBe(0);
  {
    using store = home.open();
    store.entries.append('done', [assistant('All pass.')]);
    store.entries.append('silent', [user('Did you?')]);
  }
  const says = 'has no result and no answer: its parent reads "(no result)"\n';
  // Its parent would read that it completed, with no result.
  for (const more of [[], ['--dry-run']]) {
    const refused = await home.here(['merge', 'idle', ...more]);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining('has not begun its task')]);
    expect(refused.stderr).toContain('tape run idle');
    expect(refused.stderr).toContain('tape discard idle');
  }
  expect((await home.here(['merge', 'silent'])).stderr).toContain(`silent ${says}`);
  expect((await home.here(['merge', 'done'])).stderr).not.toContain(says);
  expect((await home.here(['merge', 'told', '--result', 'They pass.'])).stderr).not.toContain(says);
  expect((await home.here(['merge', 'idle', '--force'])).stderr).toContain(`idle ${says}`);
  expect((await home.here(['merge', 'idle'])).stdout).toContain('already merged');
  // A branch is no task.
  expect((await home.here(['branch', 'main', '--as', 'side'])).code).toBe(0);
  const empty = await home.here(['merge', 'side', '--json']);
  expect(JSON.parse(empty.stderr)).toMatchObject({ error: { code: 'CLI_NOTHING_TO_MERGE' } });
  expect(empty.stderr).toContain('nothing to merge');
});
