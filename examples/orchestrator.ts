/**
 * Orchestrates a release with five children that work at the same time. One completes, one is halted at its
 * budget, one fails, one runs a tool and one waits for a person when the process is killed. Another process
 * finds the work by the id of its session and finishes it: no answer is requested twice, and each child is
 * merged once.
 *
 *     node examples/orchestrator.ts
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { drawGraph } from '@tapedeck/graph';
import { audit, type Deck, type DeckTools, openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

/** A directory: this is the process that starts the work there, and is killed. */
const [started] = process.argv.slice(2);

const tools: DeckTools = {
  run_tests: tool({
    description: 'Run a part of the tests',
    inputSchema: z.object({ part: z.string() }),
    execute: async ({ part }) => `${part}: passed`,
  }),
  measure: {
    ...tool({
      description: 'Measure how long something takes',
      inputSchema: z.object({ what: z.string() }),
      // Too long for the process that is killed.
      execute: ({ what }) => setTimeout(started === undefined ? 0 : 20_000, `${what}: 12 µs`),
    }),
    // Recovery runs this call again. Of other calls that were cut off it records that the outcome is unknown.
    safeToRepeat: true,
  },
  publish: tool({
    description: 'Publish a version',
    inputSchema: z.object({ version: z.string() }),
    needsApproval: true,
    execute: async ({ version }) => `${version} is published`,
  }),
};

function open(home: string): Promise<Deck> {
  return openDeck({ home, tools, model: `script:${import.meta.dirname}/answers/orchestrator.json` });
}

/** Delegates the work. Sends the id of its session when three children are merged and two have open calls. */
async function start(home: string): Promise<void> {
  await using deck = await open(home);
  const release = await deck.session('release');
  console.log((await release.run('Prepare release 2.4.0.')).text);
  const delegation = release.delegate(
    [
      { name: 'changelog', task: 'Read the changelog.' },
      { name: 'tests', task: 'Run the tests.', budget: { steps: 1 } },
      { name: 'links', task: 'Check the links.' },
      { name: 'speed', task: 'Measure the speed.' },
      { name: 'candidate', task: 'Publish a candidate.' },
    ],
    { concurrency: 5, order: 'spawn' },
  );
  const merged = new Set<string>();
  const underWay = new Set<string>();
  for await (const event of delegation) {
    if (event.type === 'child-ended') console.log(`${event.session} ${event.status}: ${event.text}`);
    if (event.type === 'child-merged') merged.add(event.session);
    // The tool of 'speed' runs, and that of 'candidate' waits.
    if (event.type === 'child-event' && event.session === 'speed' && event.event.type === 'tool-started')
      underWay.add(event.session);
    if (event.type === 'child-event' && event.event.type === 'tool-waiting') underWay.add(event.session);
    if (merged.size === 3 && underWay.size === 2) process.send?.(release.id);
  }
}

/** Finds the work by its id, and brings it to its end. */
async function finish(home: string, id: string): Promise<void> {
  await using deck = await open(home);
  const release = await deck.find(id);
  if (release === undefined) throw new Error(`there is no session ${id}`);
  for (const { session, code } of (await audit(deck.store)).findings)
    console.log(`audit: ${session} ${code}`);

  // What was cut off goes on. What waits for a person still does.
  const { merged, waiting } = await deck.recover({ session: release.name });
  console.log(`recovered ${merged.join()}, ${waiting.join()} waits`);
  for (const name of waiting) {
    const child = await deck.session(name);
    for (const { toolCallId, name: called, input } of (await child.status()).waiting) {
      console.log(`approving ${called} ${JSON.stringify(input)}`);
      const { run } = await child.respond(toolCallId, { approved: true, reason: 'checked by hand' });
      console.log((await run)?.text);
    }
  }
  // Then its result is merged, too.
  await deck.idle();

  console.log((await release.run('Is 2.4.0 ready?')).text);
  console.log(drawGraph(deck.graph.list()).join('\n'));
  const { tree } = await release.usage({ tree: true });
  console.log(`${tree.total} tokens in ${tree.steps} calls`);
  const { findings } = await audit(deck.store);
  const problems = await Array.fromAsync(deck.store.verify());
  console.log(`${findings.length} findings, ${problems.length} problems`);
}

if (started !== undefined) await start(started);
else {
  await using home = await mkdtempDisposable(join(tmpdir(), 'tapedeck-'));
  const orchestrator = fork(import.meta.filename, [home.path]);
  const [id = '']: string[] = await once(orchestrator, 'message');
  orchestrator.kill('SIGKILL');
  const [, signal] = await once(orchestrator, 'close');
  console.log(`the orchestrator was ended by ${signal}`);
  await finish(home.path, id);
}
