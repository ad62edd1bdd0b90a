/**
 * An application that keeps its own loop, a `ToolLoopAgent` of the AI SDK, and gets a tape: its model and its tools are
 * wrapped. SIGKILL ends the first start in the middle of a tool call. The second continues with the messages of the
 * tape, and then again from the middle, in a branch.
 *
 *     node examples/own-loop.ts
 */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDeck, recorded, recordedTools, type Session, toPrompt } from '@tapedeck/runtime';
import { type ModelMessage, ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';

const [home] = process.argv.slice(2);

const tools = {
  book: tool({
    description: 'Book a table',
    inputSchema: z.object({ place: z.string() }),
    execute: async ({ place }): Promise<string> => {
      console.log(`(booking at ${place}, and then the power fails)`);
      process.kill(process.pid, 'SIGKILL');
      return 'booked';
    },
  }),
  look_up: tool({
    description: 'Look up a booking',
    inputSchema: z.object({ place: z.string() }),
    execute: async ({ place }) => `a table at ${place} is booked for eight`,
  }),
};

/** The agent of the application. Only the two calls that begin with `recorded` are new. */
async function agentOf(session: Session): Promise<ToolLoopAgent<never, typeof tools>> {
  const model = await recorded(session, `script:${import.meta.dirname}/answers/own-loop.json`);
  return new ToolLoopAgent({ model, tools: recordedTools(session, tools), instructions: 'Be short.' });
}

/** The messages of a session, for its next model call. */
async function messagesOf(
  session: Session,
  load: (hash: string) => Promise<Uint8Array>,
): Promise<ModelMessage[]> {
  const { messages } = await session.view({ target: { provider: 'script' } });
  return await toPrompt(messages, load);
}

if (home === undefined) {
  await using made = await mkdtempDisposable(join(tmpdir(), 'tapedeck-'));
  for (const start of ['first', 'second']) {
    console.log(`${start} start`);
    const args = [...process.execArgv, import.meta.filename, made.path];
    const { status, signal } = spawnSync(process.execPath, args, { stdio: 'inherit' });
    console.log(signal === null ? `ended with ${status}` : `ended by ${signal}`);
  }
} else {
  await using deck = await openDeck({ home });
  const load = async (hash: string) => await deck.store.entries.blob(hash);
  const dinner = await deck.session('dinner');
  const agent = await agentOf(dinner);
  const history = await messagesOf(dinner, load);
  const messages =
    history.length > 0 ? history : [{ role: 'user', content: 'Book a table at Rosa.' } as const];
  console.log((await agent.generate({ messages })).text);
  for await (const { seq, kind, name } of dinner.entries())
    console.log(`${seq} ${kind} ${name ?? ''}`.trimEnd());

  const other = await dinner.branch(2, { name: 'other' });
  const instead = { role: 'user', content: 'At Gino, rather.' } as const;
  const { text } = await (await agentOf(other)).generate({
    messages: [...(await messagesOf(other, load)), instead],
  });
  console.log(`${other.name}: ${text}`);
  const { usage, steps } = await other.usage();
  console.log(`${steps} call, ${usage.input} tokens in and ${usage.output} out`);
}
