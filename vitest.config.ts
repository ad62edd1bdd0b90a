import { defineConfig } from 'vitest/config';
import { LongFirst } from './test/sequencer.ts';
import { compileCache } from './test/support/compile-cache.ts';
import { sized } from './test/support/size.ts';

/** The tests run the packages' sources; only the e2e tests run the build. */
const conditions = ['@tapedeck/source'];

/** Tests that the store under test does not change: they open none, or processes of their own open the usual one. */
const elsewhere = [
  ...['loading', 'waiting'].map((name) => `test/integration/runtime.${name}.test.ts`),
  ...['import-nexus3', 'interrupted', 'prompt', 'queue-rules', 'system-prompt'].map(
    (name) => `test/unit/runtime.${name}.test.ts`,
  ),
];

/**
 * The runtime's tests: on a push those of its loop and of what waits; in full also those of children, of what recovers, and
 * of processes that lock or post to each other; in a soak all, those of processes that are killed too.
 */
const every = ['test/unit/runtime.*.test.ts', 'test/integration/runtime.*.test.ts'];
const few = ['delegate', 'loop', 'session'].map((name) => `test/unit/runtime.${name}.test.ts`);
const several = [
  ...few,
  ...[
    'aborts',
    'child-events',
    'delegate-tool',
    'delivery',
    'fork',
    'merging',
    'outcomes',
    'queue',
    'recover',
    'recover-abort',
    'recover-calls',
    'recover-sessions',
    'rewind',
    'sending',
    'spawning',
    'store-calls',
    'tools',
    'undo',
    'waiting',
    'waiting-children',
    'watch',
  ].map((name) => `test/unit/runtime.${name}.test.ts`),
  ...['deliveries', 'locks', 'recover'].map((name) => `test/integration/runtime.${name}.test.ts`),
];

/**
 * Tests with other users, disks, terminals, tracers, shells, providers' packages, examples, pages, large homes or many
 * processes, of hostile, forged and damaged input beyond the kinds that others try, of costs that must not grow, of the
 * tests' own parts, and of a second kind of the same store. `pnpm test` leaves them to the full size; what they
 * promise, it tests in smaller pieces.
 */
const lanes = [
  ...[
    'attach',
    'attacked',
    'attacked-store',
    'bundles',
    'chat',
    'chat-terminal',
    'compiled-code',
    'config',
    'config-verb',
    'copy-log',
    'created-homes',
    'damaged-items',
    'damaged-pages',
    'delegate-repeat',
    'deliver',
    'dry-run',
    'export-html',
    'fit',
    'foreign-homes',
    'forged-parts',
    'graph-faults',
    'graph-projection',
    'graph-reading',
    'hostile-rows',
    'hostile-text',
    'import-memory',
    'import-privacy',
    'import-timer',
    'links',
    'literal-words',
    'live-terminal',
    'logs',
    'looks',
    'mcp-inspector',
    'mcp-servers',
    'memory',
    'names',
    'other-names',
    'pager',
    'parsers',
    'progress',
    'read-only-homes',
    'redaction',
    'references',
    'round-trip',
    'scale',
    'second-reader',
    'second-reader-random',
    'secrets',
    'send',
    'server-home',
    'shells',
    'similar-names',
    'ssh-remotes',
    'stray-errors',
    'streams',
    'ui-crowd',
    'ui-homes',
    'ui-hostile',
    'waiting-children',
    'ways-back',
    'widths',
    'worker',
    'working-agent',
    'workspace',
  ].map((name) => `test/e2e/cli.${name}.test.ts`),
  'test/e2e/bench.*.test.ts',
  'test/e2e/bench.test.ts',
  'test/e2e/examples.test.ts',
  'test/e2e/examples.chat.test.ts',
  'test/e2e/packages.test.ts',
  'test/e2e/page.browser.test.ts',
  'test/e2e/ui.commands.test.ts',
  'test/e2e/ui.hostile.test.ts',
  'test/e2e/ui.live.test.ts',
  'test/e2e/ui.names.test.ts',
  'test/e2e/ui.numbers.test.ts',
  'test/e2e/ui.pages.test.ts',
  'test/e2e/ui.printing.test.ts',
  'test/e2e/ui.tabs.test.ts',
  'test/docs/pictures.test.ts',
  'test/docs/library.test.ts',
  'test/docs/package-pages.test.ts',
  'test/docs/recording.test.ts',
  'test/docs/verb-examples.test.ts',
  ...[
    'export.histories',
    'graph.file-faults',
    'import.continued',
    'import.counts',
    'import.explained',
    'import.exported-samples',
    'import.growing',
    'import.many',
    'import.open-ends',
    'import.pieces',
    'later-store',
    'page.growth',
    'page.sessions',
    'page.sizes',
    'recorded.histories',
    'runner',
    'runtime.bad-input',
    'runtime.elsewhere',
    'runtime.slow-subscribers',
    'tape.bundle-hostile',
    'tape.database-faults',
    'tape.forged-records',
    'tape.forged-views',
    'tape.long-entries',
    'tape.query-plan',
    'tape.read-sessions',
    'tape.second-reader',
    'tape.secret-patterns',
    'views.growth',
    'views.manifest',
  ].map((name) => `test/unit/${name}.test.ts`),
  'test/contract/sqlite-memory.test.ts',
  'test/contract/postgres.test.ts',
  'test/contract/postgres-home.test.ts',
  'test/integration/boss.engine.test.ts',
  'test/integration/boss.kills.test.ts',
  'test/integration/postgres.upgrade.test.ts',
  'test/integration/postgres.together.test.ts',
  'test/integration/postgres.bad-input.test.ts',
  'test/integration/postgres.clock.test.ts',
  'test/integration/postgres.copies.test.ts',
  'test/integration/postgres.disk-full.test.ts',
  'test/integration/postgres.follow.test.ts',
  'test/integration/postgres.forged.test.ts',
  'test/integration/postgres.growth.test.ts',
  'test/integration/postgres.pgbouncer.test.ts',
  'test/integration/postgres.random.test.ts',
  'test/integration/postgres.replicas.test.ts',
  'test/integration/postgres.trips.test.ts',
  ...[
    'builtins.races',
    'chat.elsewhere',
    'chat.in-step',
    'chat.mounts',
    'chat.refusals',
    'chat.slow-clients',
    'chat.waiting-children',
    'claude-code.continued',
    'claude-code.program',
    'claude-code.transcripts',
    'deck.weeks',
    'faults.commands',
    'faults.disk',
    'faults.in-process',
    'faults.power-cut',
    'faults.sync-order',
    'faults.syscalls',
    'import.processes',
    'mcp.reference-servers',
    'pi.opens',
    'providers.quiet',
    'recorded.processes',
    'remote.git',
    'runtime.active',
    'runtime.carried-models',
    'runtime.compaction',
    'runtime.cut-tapes',
    'runtime.delivery-processes',
    'runtime.hostile-answers',
    'runtime.killed-streams',
    'runtime.loading',
    'runtime.processes',
    'runtime.providers',
    'runtime.queue',
    'runtime.recover',
    'runtime.summarizers',
    'runtime.tool-names',
    'runtime.tool-requests',
    'runtime.waiting',
    'runtime.workspace-crashes',
    'tape.bundle-crashes',
    'tape.copies',
    'tape.processes',
    'tape.remotes-crashes',
    'tape.soak',
    'views.golden',
  ].map((name) => `test/integration/${name}.test.ts`),
];

/** The projects that use a disk. The others write to memory: see use-memory.ts. */
const onDisk = sized<readonly string[]>([], ['integration'], ['integration', 'lanes']);

/** How long a test may take that sets no limit of its own: at full size, browsers and servers share the machine. */
const testTimeout = sized(60_000, 180_000, 3_600_000);

function project(
  name: string,
  more: { testTimeout?: number; include?: string[]; env?: Record<string, string>; isolate?: boolean } = {},
) {
  const { include = [`test/${name}/**/*.test.ts`], ...rest } = more;
  // The lanes run on the usual store alone; on the other one, the full size runs them as the tests of the runtime.
  const exclude = name === 'lanes' ? [] : name === 'later' ? elsewhere : lanes;
  const setupFiles = onDisk.includes(name) ? [] : ['./test/support/use-memory.ts'];
  return { extends: true as const, test: { name, include, exclude, setupFiles, ...rest } };
}

export default defineConfig({
  ssr: { resolve: { conditions } },
  test: {
    // Tests wait for processes, timers and the disk: two workers leave a part of two processors idle.
    maxWorkers: 3,
    // The thousand processes that the tests start inherit it.
    // The libraries record no home that a test makes.
    env: { NODE_COMPILE_CACHE: compileCache, TAPE_TRUST_HOME: '1' },
    hookTimeout: 120_000,
    // What is waited for comes within a second, but for a busy machine.
    expect: { poll: { timeout: sized(30_000, 60_000, 60_000) } },
    reporters: ['default', './test/reporter.ts'],
    sequence: { sequencer: LongFirst },
    globalSetup: ['./test/support/temp-in-memory.ts', './test/support/bundle-programs.ts'],
    setupFiles: ['./test/support/no-late-rejections.ts'],
    projects: [
      // Many files that are soon done: loading the packages anew for each would take as long as the tests.
      project('unit', {
        include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts'],
        isolate: false,
        testTimeout,
      }),
      project('integration', { isolate: false, testTimeout }),
      // Tests of the runtime again, on a store that answers everything on a later tick: see test/support/deck.ts.
      project('later', {
        include: sized(few, several, every),
        env: { TAPEDECK_STORE: 'later' },
        isolate: false,
        testTimeout,
      }),
      project('e2e', {
        include: ['test/e2e/**/*.test.ts', 'test/docs/**/*.test.ts'],
        isolate: false,
        testTimeout,
      }),
      project('lanes', { include: lanes, isolate: false, testTimeout }),
    ],
    coverage: { provider: 'v8', include: ['packages/*/src/**'], reporter: ['text-summary', 'html'] },
  },
});
