/**
 * Survives a kill. SIGKILL ends the first start in the middle of a tool call; the second continues. The effect of the
 * call is unknown, so it does not run again, and its result says so. A tool that is safe to repeat would run again.
 *
 *     node examples/resume.ts
 */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type DeckTools, openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

const [home] = process.argv.slice(2);

const tools: DeckTools = {
  send_invoice: tool({
    description: 'Send the invoice of an order',
    inputSchema: z.object({ order: z.string() }),
    execute: ({ order }) => {
      console.log(`(sending the invoice of ${order}, and then the power fails)`);
      process.kill(process.pid, 'SIGKILL');
    },
  }),
  // Looking is safe to repeat: after a crash it is done again.
  look_up: {
    ...tool({
      description: 'Look up whether an invoice was sent',
      inputSchema: z.object({ order: z.string() }),
      execute: async ({ order }) => `the invoice of ${order} was sent`,
    }),
    safeToRepeat: true,
  },
};

if (home === undefined) {
  await using made = await mkdtempDisposable(join(tmpdir(), 'tapedeck-'));
  for (const start of ['first', 'second']) {
    console.log(`${start} start`);
    const { status, signal } = spawnSync(
      process.execPath,
      [...process.execArgv, import.meta.filename, made.path],
      { stdio: 'inherit' },
    );
    console.log(signal === null ? `ended with ${status}` : `ended by ${signal}`);
  }
} else {
  await using deck = await openDeck({
    home,
    tools,
    model: `script:${import.meta.dirname}/answers/resume.json`,
  });
  const session = await deck.session('billing');
  const { head } = await session.info();
  // A new session gets its task; an interrupted one continues.
  const { text } = await session.run(head === 1 ? 'Send the invoice of order 7.' : undefined);
  for (const { role, content } of (await session.view()).messages) console.log(role, JSON.stringify(content));
  console.log(text);
}
