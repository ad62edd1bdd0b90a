import { anchor, assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json } from '../support/cli.ts';
import { tempHome } from '../support/temp-home.ts';

/** A home with a child that was merged, and what its verbs say of the child. */
function merged() {
  const home = tempHome();
  home.session('main', user('Go'), anchor('plan'));
  {
    using store = home.open();
    store.lineage.fork('main', { name: 'kid', intention: { nextSteps: 'Look.' } });
    store.entries.append('kid', [assistant('Seen.')]);
    store.sessions.update('kid', { task: 'completed' });
  }
  const run = async (...args: string[]) => {
    const { stdout, stderr, code } = await home.here(args);
    if (code !== 0) throw new Error(`tape ${args.join(' ')} failed: ${stderr}`);
    return stdout;
  };
  const look = async () => {
    const [main] = json<{ children: object }[]>(await home.here(['sessions', '--json']));
    const [graph] = json<{ children: { delivery?: string }[] }[]>(await home.here(['graph', '--json']));
    const [child] = json<object[]>(await home.here(['children', 'main', '--json']));
    return {
      children: (await run('children', 'main')).split('\t')[2],
      delivery: await run('children', 'main', '--format', '{delivery}'),
      merged_at: child !== undefined && 'merged_at' in child,
      counts: main?.children,
      log: /forked kid {2}(\w+)/.exec(await run('log', 'main'))?.[1],
      stat: /children +(.*)/.exec(await run('log', 'main', '--stat'))?.[1],
      lanes: /kid \[subagent\] (.*?), from/.exec(await run('log', 'main', '--graph'))?.[1],
      graph: /kid \[subagent\] (.*?), from/.exec(await run('graph'))?.[1],
      family: /kid \[subagent\] (.*?), from/.exec(await run('graph', 'main'))?.[1],
      dot: /kid\\n(\w+)/.exec(await run('graph', '--format', 'dot'))?.[1],
      json: graph?.children[0]?.delivery,
      lineage: /kid {2}subagent {2}(\w+)/.exec(await run('lineage', 'main'))?.[1],
      status: (await run('status', 'kid')).includes('delivery'),
      overview: /kid {2,}(\w+) +of main/.exec(await run('overview'))?.[1],
    };
  };
  return Object.assign(home, { run, look });
}

const asMerged = {
  children: 'merged',
  delivery: 'merged\n',
  merged_at: true,
  counts: { all: 1, open: 0, merged: 1 },
  log: 'merged',
  stat: '1 merged',
  lanes: 'merged 4-6 → main@4',
  graph: 'merged 4-6 → main@4',
  family: 'merged 4-6 → main@4',
  dot: 'merged',
  json: 'merged',
  lineage: 'merged',
  status: true,
  overview: 'merged',
};

test('after an undo of its merge a child is not merged in any verb, and after an undo of that it is', async () => {
  using home = merged();
  await home.run('merge', 'kid');
  await home.run('undo', 'main@4');
  // A later line about the child repeats what was recorded of the merge.
  await home.run('archive', 'kid');
  await home.run('archive', 'kid', '--undo');
  const undone = 'completed, merged 4-6 → main@4 (undone)';
  expect(await home.look()).toEqual({
    children: 'completed',
    delivery: '\n',
    merged_at: false,
    counts: { all: 1, open: 1, merged: 0 },
    log: 'completed',
    stat: '1 completed',
    lanes: undone,
    graph: undone,
    family: undone,
    dot: 'completed',
    json: undefined,
    lineage: 'completed',
    status: false,
    overview: 'completed',
  });
  await home.run('undo', 'main');
  expect(await home.look()).toEqual(asMerged);
  expect(await home.run('check', '--quiet')).toBe('ok\n');
});

test('nothing merges a child again whose merge was undone, but a user does, or discards it', async () => {
  using home = merged();
  await home.run('merge', 'kid');
  await home.run('undo', 'main@4');
  expect(json(await home.here(['recover', '--json']))).toMatchObject({ merged: [] });
  expect(json(await home.here(['merge', 'kid', '--json']))).toMatchObject({ seq: 7, repeated: false });
  await home.run('undo', 'main@7');
  expect(json(await home.here(['discard', 'kid', '--json']))).toMatchObject({ state: 'discarded', seq: 10 });
  expect(await home.run('children', 'main', '--format', '{delivery}')).toBe('discarded\n');
});

test('a drawing marks the anchors that a rewind hides', async () => {
  using home = merged();
  await home.run('undo', 'main@3');
  await home.run('anchor', 'main', 'other');
  const rows = (await home.run('log', 'main', '--graph')).split('\n').map((row) => row.replace(/^\W*/, ''));
  expect(rows).toContain('plan at main@3 (undone)');
  expect(rows).toContain('other at main@5');
});
