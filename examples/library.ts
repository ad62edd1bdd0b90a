/**
 * Uses Tapedeck as a library: one session, one tool, and a look at the entries of its tape.
 *
 *     node examples/library.ts                                   # scripted answers, offline
 *     MODEL=openai-compatible/gpt-oss node examples/library.ts   # with OPENAI_BASE_URL and OPENAI_API_KEY
 */
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

const forecast = tool({
  description: 'Get the forecast for a city',
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => ({ city, sky: 'clear', celsius: 21 }),
});

await using home = await mkdtempDisposable(join(tmpdir(), 'tapedeck-'));
await using deck = await openDeck({
  home: home.path,
  model: process.env.MODEL ?? `script:${import.meta.dirname}/answers/library.json`,
  tools: { forecast },
  instructions: 'Answer in one sentence.',
});

const session = await deck.session('weather');
const run = session.run('Shall I take an umbrella to Rome?');
for await (const event of run) {
  if (event.type === 'content-chunk') process.stdout.write(event.text);
  if (event.type === 'tool-completed') console.log(`[${event.name} → ${JSON.stringify(event.output)}]`);
}
const { finish, steps, usage } = await run;
console.log(`\n${finish} after ${steps} steps, ${usage.input} tokens in and ${usage.output} out`);

for await (const { seq, kind, name } of session.entries())
  console.log(`${seq} ${kind} ${name ?? ''}`.trimEnd());
