import { user } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { gitIn, skipsGit } from '../support/repository.ts';
import { atFullSize } from '../support/size.ts';
import { noSsh, tapeThere } from '../support/ssh-homes.ts';
import { tempHome } from '../support/temp-home.ts';

const env = {
  PATH: process.env.PATH ?? '',
  GIT_CONFIG_GLOBAL: '/dev/null',
  TAPE_SSH_COMMAND: noSsh,
  TAPE_REMOTE_TAPE: tapeThere,
};

test.skipIf(skipsGit('the verbs with a git repository'))(
  'push and pull share sessions through a git repository, and refuse a push that contradicts another',
  async () => {
    using a = tempHome();
    using b = tempHome();
    gitIn(a.path, 'init', '--quiet', 'code');
    const url = `git:${a.file('code')}`;
    a.session('main', user('Plan the release.'));
    expect(await a.here(['remote', 'add', 'code', 'git:code'], { env, cwd: a.path })).toMatchObject({
      stdout: expect.stringContaining(url),
    });
    expect(json(await a.here(['push', '--json'], { env }))).toMatchObject({
      ...{ remote: 'code', url, pack: '00000001.bundle.zst', entries: 2 },
    });
    expect(json(await b.here(['clone', url, b.file('new'), '--json'], { env }))).toMatchObject({
      entries: 2,
    });
    const inNew = ['--home', b.file('new')];
    const say = async (more: readonly string[]) =>
      await a.here(['append', 'main', ...more], { stdin: '{"role":"user","content":"More"}' });
    await say([]);
    await say(inNew);
    expect(await a.here(['push'], { env })).toMatchObject({ code: 0 });
    expect(await b.here(['push', ...inNew], { env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('Hint: pull first: tape pull'),
    });
    const token = 'git+https://t0ken-t0ken-t0ken@127.0.0.1:1/x';
    for (const args of [
      ['remote', 'add', 'web', token],
      ['remote'],
      ['remote', '--json'],
      ['push', '--remote', 'web', '--json'],
      ['config', 'list'],
      ['config', 'get', 'remotes.web.url'],
      ['config', 'set', 'remotes.web.url', token.replace('git+', 'git:'), '--json'],
      ['remote', 'remove', 'web'],
    ]) {
      const { stdout, stderr } = await a.here(args, { env });
      expect(`${stdout}${stderr}`, args.join(' ')).not.toContain('t0ken');
    }
    const refused = await a.here(['remote', 'add', 'web', 'git:ext::sh -c x', '--json'], { env });
    expect(jsonError(refused)).toMatchObject({ code: 'TAPE_BAD_OPTION' });
    expect(refused.code).toBe(2);
  },
);

test.runIf(atFullSize)('push, pull and clone reach a home on another machine', async () => {
  using there = tempHome();
  using here = tempHome();
  using third = tempHome();
  there.session('theirs', user('Here.'));
  here.session('main', user('Plan the release.'));
  const url = `ssh://me@host${there.path}`;
  expect(await here.here(['remote', 'add', 'origin', url])).toMatchObject({ code: 0 });
  expect(json(await here.here(['push', '--json'], { env }))).toMatchObject({ pack: null, entries: 2, url });
  expect(json(await here.here(['pull', '--json'], { env }))).toMatchObject({ entries: 2 });
  expect(json(await third.here(['clone', url, third.file('new'), '--json'], { env }))).toMatchObject({
    entries: 4,
  });
  const nowhere = await third.here(['clone', `${url}/none`, third.file('none'), '--json'], { env });
  expect(jsonError(nowhere)).toMatchObject({
    code: 'TAPE_REMOTE_FAILED',
    message: expect.stringContaining('there is no such directory'),
    hint: `name another path; or make the home there with: tape init --home ${there.path}/none`,
  });
  const served = await here.process(['raw', 'serve', '--json']);
  expect(served).toMatchObject({ code: 2, stderr: expect.stringContaining('stdin and stdout') });
});
