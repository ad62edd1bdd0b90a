/**
 * Requires the approval of a person before a tool runs. The run ends with `waiting` and keeps no lease: the answer may
 * arrive much later, in another process, after a restart.
 *
 *     node examples/approval.ts
 */
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDeck } from '@tapedeck/runtime';
import { tool } from 'ai';
import { z } from 'zod';

const deploy = tool({
  description: 'Deploy a version',
  inputSchema: z.object({ version: z.string() }),
  needsApproval: true,
  execute: async ({ version }) => `${version} is live`,
});

await using home = await mkdtempDisposable(join(tmpdir(), 'tapedeck-'));
const settings = {
  home: home.path,
  tools: { deploy },
  model: `script:${import.meta.dirname}/answers/approval.json`,
};

{
  await using deck = await openDeck(settings);
  const { finish } = await (await deck.session('release')).run('Deploy 2.4.0.');
  console.log(`The run ended: ${finish}`);
}

// Some other day.
await using deck = await openDeck(settings);
const session = await deck.session('release');
const { waiting } = await session.status();
for (const { toolCallId, name, input } of waiting) {
  console.log(`${name} ${JSON.stringify(input)} waits for approval`);
  const { run } = await session.respond(toolCallId, { approved: true, reason: 'checked by hand' });
  console.log((await run)?.text);
}
