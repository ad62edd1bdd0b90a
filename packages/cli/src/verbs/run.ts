import { needModelSpec } from '../model.ts';
import { safe } from '../output/safe.ts';
import { readText } from '../text.ts';
import { defineVerb, type Verb } from '../verb.ts';
import { ensure } from './append.ts';

export const run: Verb = defineVerb({
  command: 'run <name> [prompt]',
  group: 'Start',
  summary: 'Send a prompt to a session and follow its run',
  detail:
    'Without a prompt it goes on from the tail. The answer is on stdout, everything else on stderr. ' +
    'Exit 1 when the run did not come to its end.',
  examples: [
    [
      'tape run main "Plan the release" --model openai-compatible/gpt-oss',
      'With OPENAI_BASE_URL and OPENAI_API_KEY',
    ],
    ['tape run main "Plan the release" --model script:answers.json', 'With scripted answers, offline'],
  ],
  options: (y) =>
    y
      .positional('name', { type: 'string', demandOption: true, describe: 'Session; made if there is none' })
      .positional('prompt', { type: 'string', describe: 'What to say (- for stdin, @FILE)' })
      .option('model', {
        type: 'string',
        requiresArg: true,
        describe: 'PROVIDER/MODEL or script:FILE (default: $TAPE_MODEL)',
      })
      .option('max-steps', {
        type: 'number',
        requiresArg: true,
        default: 10,
        describe: 'Model calls at most',
      }),
  run: async ({ name, prompt, model, maxSteps }, context) => {
    const { io, options, status } = context;
    const spec = needModelSpec(model, io);
    const input = prompt === undefined ? undefined : await readText(prompt, io);
    const { openDeck, resolveModel } = await import('@tapedeck/runtime');
    return await context.writing(async (store) => {
      await resolveModel(spec, { env: io.env, store });
      const session = ensure(store, name, context);
      await using deck = await openDeck({ store, model: spec, env: io.env });
      const running = (await deck.session(session)).run(input, { maxSteps, signal: io.signal });
      const asJson = options.json === true || options.jsonl === true;
      for await (const event of running) {
        if (event.type === 'content-chunk' && !asJson) await io.out(safe(event.text));
        else if (event.type === 'tool-started') status(`→ ${event.name}`);
        else if (event.type === 'tool-completed' && !event.success)
          status(safe(`  ${event.name} failed: ${String(event.output)}`));
      }
      const result = await running;
      if (asJson) {
        const { text, finish, steps, usage, from, to } = result;
        await io.out(
          `${JSON.stringify({ session, run: result.run, text, finish, steps, usage: usageJson(usage), from, to })}\n`,
        );
      } else await io.out('\n');
      if (result.error !== undefined) status(safe(`Error: ${result.error.message}`));
      else if (result.finish !== 'stop') status(`The run ended: ${result.finish}`);
      if (result.finish === 'aborted') return 130;
      return result.finish === 'stop' || result.finish === 'length' ? 0 : 1;
    });
  },
});

/** Token counts as `--json` gives them. */
export function usageJson(usage: {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}): Readonly<Record<string, number>> {
  const { input, output, reasoning, cacheRead, cacheWrite } = usage;
  return { input, output, reasoning, cache_read: cacheRead, cache_write: cacheWrite };
}
