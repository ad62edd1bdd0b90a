import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { codeBlocks, page, root } from '../docs/pages.ts';
import { steady } from '../docs/steady.ts';
import { importingAll, ofServers, packages, typeErrors } from '../support/consumer.ts';
import { npmCacheIn, shellOutside, skipsRegistry } from '../support/npm.ts';
import { oneCopyAnswers, oneCopyConfig } from '../support/one-copy.ts';
import { sized } from '../support/size.ts';
import { memoryDir, type TempDir, tempDir } from '../support/temp-dir.ts';

const readme = page('README.md');
const start = page('docs/guide/getting-started.md');
const { version } = JSON.parse(page('packages/cli/package.json'));

/** The commands of a page that pack and install the packages, and those that run the command. */
const commandsIn = (text: string) =>
  codeBlocks(text, 'sh')
    .filter((block) => block.includes('CHECKOUT/dist'))
    .flatMap((block) => block.trimEnd().split('\n'))
    .map((line) => line.replaceAll('CHECKOUT', root));
const commands = commandsIn(start);
const [pack = '', install = '', demo = '', demoOnce = ''] = commands;

/** What the command that packs does behind its build, which these tests find done. */
const packing = JSON.parse(page('package.json')).scripts['pack:all'].replace(/^pnpm build && /, '');

/** npm does not load again what the first test that installs has loaded, and nothing is looked up that no test reads. */
const quickly = (cache: string) =>
  `export npm_config_cache='${cache}' npm_config_prefer_offline=true npm_config_audit=false npm_config_fund=false;`;

test('the guide has four commands about packages, and the README the first two', () => {
  expect(commands).toHaveLength(4);
  expect(commandsIn(readme)).toEqual([pack, install]);
});

describe('a packed package', () => {
  let dir: TempDir;
  beforeAll(async () => {
    dir = tempDir();
    await shellOutside(root, sized(packing, packing, pack));
    for (const name of packages) {
      mkdirSync(dir.file(name));
      execFileSync('tar', ['-xzf', join(root, `dist/tapedeck-${name}.tgz`), '-C', dir.file(name)]);
    }
    return () => dir[Symbol.dispose]();
  }, 300_000);

  test('the command contains the page of tape ui, in at most 300 KB when it is compressed', () => {
    const page = dir.file('cli/package/ui-dist');
    expect(readdirSync(page).toSorted()).toEqual(['index.html', 'page.css', 'page.js']);
    const sizes = readdirSync(page).map((file) => gzipSync(readFileSync(join(page, file))).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(300_000);
  });

  describe.each(packages)('@tapedeck/%s', (name) => {
    const packed = (file: string) => readFileSync(dir.file(`${name}/package/${file}`), 'utf8');
    const files = (pattern: string) => globSync(pattern, { cwd: dir.file(`${name}/package`) });

    test('its manifest has versions, and no entry point in TypeScript', () => {
      const text = packed('package.json');
      expect(text).not.toMatch(/workspace:|catalog:|@tapedeck\/source/);
      const { exports, dependencies, ...manifest } = JSON.parse(text);
      const here = JSON.parse(page(`packages/${name}/package.json`));
      expect(Object.keys(exports)).toEqual(Object.keys(here.exports));
      expect(Object.keys(dependencies)).toEqual(Object.keys(here.dependencies));
      expect(
        Object.values(dependencies).filter((range) => !/^\^?\d+\.\d+\.\d+$/.test(String(range))),
      ).toEqual([]);
      expect(manifest).toMatchObject({ version, license: 'MIT', publishConfig: { access: 'public' } });
    });

    test('contains its page and the licence', () => {
      expect(packed('README.md')).toBe(page(`packages/${name}/README.md`));
      expect(packed('LICENSE')).toBe(page('LICENSE'));
    });

    test('contains the pages of the manual that its manifest names', () => {
      const { man = [] } = JSON.parse(packed('package.json')) as { man?: string[] };
      expect(
        files('man/*')
          .map((file) => `./${file}`)
          .toSorted(),
      ).toEqual(man.toSorted());
      expect(man.length > 0).toBe(name === 'cli');
    });

    test('contains a source for every built file: no stale file, and every source map resolves', () => {
      const sources = files('src/**/*.ts');
      const built = sources.flatMap((source) =>
        ['.js', '.js.map', '.d.ts', '.d.ts.map'].map((ending) =>
          source.replace(/^src/, 'dist').replace(/\.ts$/, ending),
        ),
      );
      expect(sources.length).toBeGreaterThan(5);
      expect(files('dist/**/*.*').toSorted()).toEqual(built.toSorted());
    });
  });
});

/** Where the packages are installed takes half a minute and the network: not on a push. */
if (sized(false, true, true))
  describe.skipIf(skipsRegistry('packages that are installed'))('installed in an empty directory', () => {
    let dir: TempDir;
    let cache: string;
    beforeAll(async () => {
      const places = new DisposableStack();
      dir = places.use(tempDir());
      cache = npmCacheIn(places.use(memoryDir()));
      await shellOutside(dir.path, 'npm init --yes --init-type=module');
      await shellOutside(dir.path, `${quickly(cache)} export npm_config_omit=dev; ${install}`);
      return () => places.dispose();
    }, 300_000);

    test('the packages are copies, and contain nothing of the workspace', () => {
      const installed = readdirSync(dir.file('node_modules/@tapedeck'), { withFileTypes: true });
      expect(installed.map((entry) => entry.isDirectory() && entry.name)).toEqual([...packages].toSorted());
      expect(readdirSync(dir.file('node_modules'))).not.toContain('vitest');
    });

    test('npx tape demo runs the main job', async () => {
      const said = await shellOutside(dir.path, `export TMPDIR=$PWD; ${demo}`);
      expect(said).toContain('ok: 4 sessions, 35 entries, all hashes match');
      expect(said).toContain('\n  npx tape log main\n');
      expect(await shellOutside(dir.path, 'npx tape --version')).toBe(`${version}\n`);
    });

    test('a configuration and the command share one copy of the packages', async () => {
      using home = tempDir();
      writeFileSync(dir.file('tape.config.mts'), oneCopyConfig);
      writeFileSync(dir.file('whose.json'), JSON.stringify(oneCopyAnswers));
      const tape = `npx tape --home ${home.path}/.tape`;
      const run = `${tape} run main Whose? --model script:whose.json --config tape.config.mts`;
      expect(await shellOutside(dir.path, run)).toBe('Done.\n');
      expect(await shellOutside(dir.path, `${tape} log main`)).toContain('one copy');
    });

    test('npx runs the demo from the tarballs alone', async () => {
      using empty = tempDir();
      const said = await shellOutside(empty.path, `${quickly(cache)} export TMPDIR=$PWD; ${demoOnce}`);
      expect(said).toContain('ok: 4 sessions, 35 entries, all hashes match');
      expect(readdirSync(empty.path)).not.toContain('node_modules');
    }, 300_000);

    test('the library example prints what the README says', async () => {
      writeFileSync(dir.file('answers.json'), codeBlocks(readme, 'json')[0] ?? '');
      writeFileSync(dir.file('example.mjs'), codeBlocks(readme, 'js')[0] ?? '');
      const said = await shellOutside(dir.path, 'node example.mjs');
      expect(codeBlocks(readme, 'console').map(steady)).toContain(steady(`$ node example.mjs\n${said}`));
    });

    test('the example of a chat serves its page, what the page imports, and answers', async () => {
      for (const name of ['chat', 'answers'])
        cpSync(join(root, 'examples', name), dir.file(name), { recursive: true });
      const server = spawn(process.execPath, [dir.file('chat/server.ts')], {
        env: { PATH: process.env.PATH, PORT: '0', TAPE_HOME: dir.file('home') },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void server.kill());
      const [line] = (await once(server.stdout, 'data')) as [Buffer];
      const url = line.toString('utf8').trim();
      const types = ['', '/chat-client.js'].map(async (path) =>
        (await fetch(`${url}${path}`)).headers.get('content-type'),
      );
      expect(await Promise.all(types)).toEqual([
        'text/html; charset=utf-8',
        'text/javascript; charset=utf-8',
      ]);
      const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
      const answer = await fetch(`${url}/api/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'main', messages: [message] }),
      });
      expect(await answer.text()).toContain('data: [DONE]');
      expect(await (await fetch(`${url}/api/chat`)).json()).toMatchObject({ chats: [{ title: 'Hello' }] });
    });

    test('every entry point loads, also under the condition by which the workspace reads its sources', async () => {
      writeFileSync(dir.file('entries.mjs'), importingAll());
      const plain = await shellOutside(dir.path, 'node entries.mjs');
      expect(await shellOutside(dir.path, 'node --conditions=@tapedeck/source entries.mjs')).toBe(plain);
    });

    test('an entry point of a server names the package that it lacks: none is installed with the others', async () => {
      expect(ofServers.size).toBeGreaterThan(0);
      for (const entry of ofServers) {
        writeFileSync(
          dir.file('server.mjs'),
          `await import('${entry}').catch(({ message }) => console.log(message));\n`,
        );
        expect(await shellOutside(dir.path, 'node server.mjs')).toMatch(
          /^Cannot find package '(?:pg|kysely|pg-boss)'/,
        );
      }
      const command =
        'node node_modules/@tapedeck/cli/bin/tape.js sessions --home postgres://127.0.0.1:1/none';
      expect(await shellOutside(dir.path, `${command} 2>&1 || true`)).toMatch(
        /the package pg is not installed\nHint: .*npm install/,
      );
    });

    test.each([
      { module: 'nodenext', moduleResolution: 'nodenext' },
      { module: 'esnext', moduleResolution: 'bundler' },
    ])('a strict program has no type error with $moduleResolution', (resolution) => {
      const errors = typeErrors(
        dir,
        codeBlocks(page('docs/guide/configuration.md'), 'ts')[0] ?? '',
        resolution,
      );
      expect(errors.filter((line) => !ofTheAiSdk.test(line))).toEqual(
        [5, 6, 7, 8].map((line) => expect.stringMatching(`^wrong\\.ts\\(${line},`)),
      );
    });
  });

/** Its own declarations do not pass `exactOptionalPropertyTypes` without `skipLibCheck`. */
const ofTheAiSdk = /^node_modules\/(?:ai|@ai-sdk\/[^/]+)\//;
