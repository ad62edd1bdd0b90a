import { openDeck } from '@tapedeck/runtime';
import { user } from '@tapedeck/tape';
import { tool } from 'ai';
import { z } from 'zod';
import { homeAt, openForWriting } from './home.ts';
import type { Io } from './io.ts';

/** Two tools over an invented project, so that the demo needs no files and no network. */
const tools = {
  commits_since: tool({
    description: 'List the commits since a tag',
    inputSchema: z.object({ tag: z.string() }),
    execute: ({ tag }) => [
      `Round invoices half to even (after ${tag})`,
      'Print which check failed',
      'Bump to 2.4.0',
    ],
  }),
  run_test: tool({
    description: 'Run one test by name',
    inputSchema: z.object({ name: z.string() }),
    execute: ({ name }) => `${name}: expected 10.13 to equal 10.12`,
  }),
};

const tasks = [
  { task: 'Check the changelog: compare Unreleased with the commits since 2.3.1.' },
  { task: 'Check the tests: find out whether invoice rounding or its test is wrong.' },
];

/** Runs a command line and returns its exit code. */
type Main = (argv: readonly string[]) => Promise<number>;

export interface DemoOptions {
  readonly home: string;
  /** Files of this package: a transcript, and the script of the children's models. */
  readonly transcript: string;
  readonly answers: string;
}

/**
 * Runs the demo: import, anchor, parallel delegation, merge, graph, log, verify. Each step is the verb or
 * library call that a user would make, and prints its output.
 */
export async function runDemo(main: Main, io: Io, options: DemoOptions): Promise<number> {
  const { home, transcript } = options;
  const verb = async (...argv: string[]) => {
    await io.out(`\n$ tape ${argv.map((word) => (/[\s{]/.test(word) ? `'${word}'` : word)).join(' ')}\n`);
    return await main([...argv, '--home', home]);
  };
  const { name } = homeAt(home, io);
  const store = await openForWriting(homeAt(home, io), io);
  const taken = store.sessions.find('main') !== undefined;
  store.close();
  if (taken) {
    io.err(`Error: cannot run the demo in '${name}': session 'main' exists\n`);
    return 4;
  }
  // The printed command shows a short file name, not the path inside the package.
  await io.out('\n$ tape import transcript.jsonl --as main\n');
  const steps = [
    () => main(['import', transcript, '--as', 'main', '--home', home]),
    () => verb('anchor', 'main', 'task-start', '--state', '{"release":"2.4.0"}'),
    () => delegate(io, options),
    () => verb('graph'),
    () => verb('log', 'main', '-n', '6', '--oneline'),
    () => verb('verify'),
  ];
  for (const step of steps) {
    const status = await step();
    if (status !== 0) return status;
  }
  // In a checkout (`pnpm demo`) and in a project (`npx tape demo`) the command is not on the PATH. npx puts packages
  // that are not installed in a directory of its own, where the next `npx tape` does not find them.
  const event = io.env.npm_lifecycle_event ?? '';
  const isTemporary = import.meta.dirname.includes('/_npx/');
  const pnpm = (io.env.PATH ?? '').includes('/_npx/') ? 'npx --yes -p node@24 -p pnpm@12 pnpm' : 'pnpm';
  const tape = /^(?:demo|tape)$/.test(event)
    ? `${pnpm} tape`
    : event === 'npx' && !isTemporary
      ? 'npx tape'
      : 'tape';
  const next = ['sessions', 'log main', 'view main', 'children main']
    .map((verb) => `  ${tape} ${verb}\n`)
    .join('');
  const how = event === 'npx' && isTemporary ? 'Install tape, then look around with' : 'Look around with';
  await io.out(`\nThe tapes are in ${name}. ${how}:\n  export TAPE_HOME=${name}\n${next}`);
  return 0;
}

/** Delegates the tasks with a deck that has tools, as a program would. */
async function delegate(io: Io, { home, answers }: DemoOptions): Promise<number> {
  await io.out(
    `\n> session.delegate([${tasks.map(({ task }) => `{ task: '${task}' }`).join(', ')}], { inherit: { since: 'task-start' } })\n`,
  );
  const store = await openForWriting(homeAt(home, io), io);
  try {
    store.entries.append('main', [user('Go ahead with both, at the same time.')]);
    await using deck = await openDeck({ store, tools, model: `script:${answers}` });
    const session = await deck.session('main');
    const outcomes = await session.delegate(tasks, { inherit: { since: 'task-start' }, order: 'spawn' });
    for (const { session, status, merged } of outcomes)
      await io.out(`${session} ${status}, merged into main@${merged?.seq}\n`);
    return outcomes.every(({ status }) => status === 'completed') ? 0 : 1;
  } finally {
    store.close();
  }
}
