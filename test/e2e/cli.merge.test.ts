import { assistant } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { tempHome } from '../support/temp-home.ts';

test('merge says that a child has no result, and does not say so of one that has', async () => {
  using home = tempHome();
  home.session('main');
  for (const name of ['idle', 'done', 'told'])
    expect((await home.here(['fork', 'main', '--as', name, '--task', 'Check the tests'])).code).toBe(0);
  {
    using store = home.open();
    store.entries.append('done', [assistant('All pass.')]);
  }
  const says = 'has no result and no answer: its parent reads "(no result)"\n';
  expect((await home.here(['merge', 'idle'])).stderr).toContain(`idle ${says}`);
  expect((await home.here(['merge', 'done'])).stderr).not.toContain(says);
  expect((await home.here(['merge', 'told', '--result', 'They pass.'])).stderr).not.toContain(says);
});
