import type { Finish, RunResult, Usage } from '@tapedeck/runtime';
import { attach } from '../attach.ts';
import { exit, UsageError } from '../errors.ts';
import { needModelSpec } from '../model.ts';
import { safe } from '../output/safe.ts';
import { needSession } from '../place.ts';
import { readText } from '../text.ts';
import { defineVerb, type Verb } from '../verb.ts';
import { ensure } from './append.ts';

export const run: Verb = defineVerb({
  command: 'run <name> [prompt]',
  group: 'Start',
  summary: 'Send a prompt to a session and follow its run',
  detail:
    'Without a prompt it goes on from the tail; --attach follows a run that another process has under way. The answer is on stdout, everything else on stderr. ' +
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
      .option('attach', {
        type: 'boolean',
        describe: 'Follow the run under way, or the last one, and write nothing',
      })
      .option('max-steps', {
        type: 'number',
        requiresArg: true,
        default: 10,
        describe: 'Model calls at most',
      }),
  run: async ({ name, prompt, model, maxSteps, attach: attaching }, context) => {
    const { io, options, status } = context;
    if (attaching === true) {
      if (prompt !== undefined) throw new UsageError('cannot attach with a prompt: use tape send');
      return await context.reading(
        async (store) => await attach(store, needSession(store, name).name, context),
      );
    }
    const spec = needModelSpec(model, io);
    if (maxSteps < 1) throw new UsageError('cannot run: --max-steps must be at least 1');
    const input = prompt === undefined ? undefined : await readText(prompt, io);
    if (input !== undefined && input.trim() === '') throw new UsageError('cannot run: the prompt is empty');
    const { checkModel, openDeck } = await import('@tapedeck/runtime');
    await checkModel(spec, io.env);
    // Without a prompt there must be something to go on from.
    const opening = input === undefined ? context.changing : context.writing;
    return await opening(async (store) => {
      const session = input === undefined ? needSession(store, name).name : ensure(store, name, context);
      await using deck = await openDeck({ store, model: spec, env: io.env });
      const running = (await deck.session(session)).run(input, { maxSteps, signal: io.signal });
      const asJson = options.json === true || options.jsonl === true;
      let open = false;
      for await (const event of running) {
        if (event.type === 'content-chunk' && !asJson) {
          await io.out(safe(event.text));
          open = !event.text.endsWith('\n');
        } else if (event.type === 'iteration-completed' && open) {
          // Each answer of a run is a text of its own.
          await io.out('\n');
          open = false;
        }
        if (event.type === 'inbox-waiting') status(`${event.items} waiting in the inbox of ${session}`);
        if (event.type === 'tool-started') status(`→ ${event.name}`);
        else if (event.type === 'tool-completed' && !event.success)
          status(safe(`  ${event.name} failed: ${String(event.output)}`));
      }
      const result = await running;
      if (asJson) await io.out(`${JSON.stringify(resultJson(result))}\n`);
      else if (open) await io.out('\n');
      if (!asJson && result.finish !== 'stop')
        status(
          safe(
            result.error === undefined ? `The run ended: ${result.finish}` : `Error: ${result.error.message}`,
          ),
        );
      return exitOf(result.finish);
    });
  },
});

function resultJson(result: RunResult): Readonly<Record<string, unknown>> {
  const { session, run, text, finish, steps, usage, from, to, error } = result;
  const failure = error === undefined ? {} : { error: { code: error.code, message: error.message } };
  return { session, run, text, finish, steps, usage: usageJson(usage), from, to, ...failure };
}

function exitOf(finish: Finish): number {
  if (finish === 'aborted') return exit.interrupted;
  return finish === 'stop' || finish === 'length' ? exit.done : exit.failed;
}

/** Token counts as `--json` gives them. */
export function usageJson(usage: Usage): Readonly<Record<string, number>> {
  const { input, output, reasoning, cacheRead, cacheWrite } = usage;
  return { input, output, reasoning, cache_read: cacheRead, cache_write: cacheWrite };
}
