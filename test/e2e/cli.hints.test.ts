import { anchor, assistant, user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { rawDb } from '../support/raw-db.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tempHome } from '../support/temp-home.ts';

test.each<readonly [string, readonly string[], string]>([
  ['fork', ['fork', 'main', '--as', 'other', '--task', 'Go'], 'Run it with: tape run --home HOME other'],
  ['branch', ['branch', 'main', '--as', 'other'], 'tape run --home HOME other'],
  ['rewind', ['rewind', 'main@5'], 'undo with: tape undo --home HOME main@'],
  ['undo', ['undo', 'main'], 'undo with: tape undo --home HOME main@'],
  ['alias', ['alias', 'main', 'trunk'], 'undo with: tape unalias --home HOME trunk'],
  ['archive', ['archive', 'main'], 'undo with: tape archive --home HOME main --undo'],
  ['send', ['send', 'main', 'Hi'], 'run it with: tape run --home HOME main'],
])('what %s says to do next is in the home that the line names, and only then', async (verb, args, next) => {
  using home = tempHome();
  using elsewhere = tempDir();
  home.session('main', user('One'), assistant('Two'), anchor('plan'), user('Three'));
  if (verb === 'undo') await home.here(['rewind', 'main@5']);
  const named = await home.here([...args, '--home', home.path], { cwd: elsewhere.path });
  const said = named.stdout + named.stderr;
  expect(said).toContain(next.replace('HOME', home.path));
  using other = tempHome();
  other.session('main', user('One'), assistant('Two'), anchor('plan'), user('Three'));
  if (verb === 'undo') await other.here(['rewind', 'main@5']);
  const plain = await other.here(args);
  expect(plain.stdout + plain.stderr).toContain(next.replace(' --home HOME', ''));
});

test('the hint about an anchor that a rewind hides says how to reach it, and both ways lead there', async () => {
  using home = tempHome();
  home.session('main', user('One'), assistant('First.'), anchor('here'), user('Two'));
  expect((await home.here(['rewind', 'main@2'])).code).toBe(0);
  expect((await home.here(['show', 'main@here'])).stderr).toBe(
    "Error: cannot find anchor 'here' on 'main': the rewind main@6 hides it; @4 still names it\n" +
      'Hint: name it by its position: main@4; or undo the rewind with: tape undo main@6\n',
  );
  expect((await home.here(['show', 'main@4'])).stdout).toContain('here');
  expect((await home.here(['branch', 'main', '--as', 'other'])).code).toBe(0);
  // What a branch has inherited it cannot undo.
  expect((await home.here(['log', 'other', '--since', 'here'])).stderr).toMatch(
    /Hint: name it by its position: other@4\n$/,
  );
  expect((await home.here(['undo', 'main@6'])).code).toBe(0);
  expect((await home.here(['show', 'main@here'])).code).toBe(0);
});

test('a command that names a session is one to copy, whatever the name', async () => {
  using home = tempHome();
  home.session('wow!x', user('One'));
  home.session('named', user('One'));
  {
    // The store makes no such name; a home from elsewhere can have one.
    using db = rawDb(home.db);
    db.dropTriggers();
    db.run(`UPDATE tape SET name = '-x' WHERE name = 'named'`);
  }
  const said = async (...args: readonly string[]) => {
    const { stdout, stderr } = await home.here(args);
    return stdout + stderr;
  };
  expect(await said('archive', 'wow!x')).toContain("undo with: tape archive 'wow!x' --undo)");
  expect(await said('show', 'wow!x@99')).toContain("tape log 'wow!x' -n 20");
  expect(await said('show', '--', '-x@99')).toContain('tape log -n 20 -- -x');
  expect(await said('archive', '--', '-x')).toContain('undo with: tape archive --undo -- -x)');
  expect(await said('archive', '--undo', '--', '-x')).toContain('undo with: tape archive -- -x)');
  expect(await said('rename', '--', '-x', 'x')).toContain('undo with: tape rename -- x -x)');
});
