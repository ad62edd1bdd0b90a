import type { Finish, Run, RunResult, SessionEvent } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { oneLine, safe } from '../escape.ts';
import { exit } from '../exit.ts';
import { usageJson } from './usage.ts';

/** A run that is over, in an object: a run alone would be awaited for its result. */
export interface Ended {
  readonly run: Run;
  readonly result: RunResult;
}

/**
 * Prints a run as it goes on, and those that take up what waits after it: answers on stdout, everything else on stderr, with
 * `--json` no answers. Ctrl-C aborts the run under way.
 */
export async function printRuns(first: Run, context: Context): Promise<readonly Ended[]> {
  const ended: Ended[] = [];
  for (let run: Run | undefined = first; run !== undefined; run = run.following) {
    if (ended.length > 0) context.status('Going on with what waited in the inbox');
    ended.push({ run, result: await printRun(run, context) });
  }
  return ended;
}

async function printRun(run: Run, context: Context): Promise<RunResult> {
  const { io, options, status } = context;
  const asJson = options.json === true || options.jsonl === true;
  const stop = () => run.abort('interrupted');
  io.signal.addEventListener('abort', stop);
  if (io.signal.aborted) stop();
  try {
    let open = false;
    for await (const event of run) {
      if (event.type === 'content-chunk' && !asJson) {
        await io.out(safe(event.text));
        open = !event.text.endsWith('\n');
      } else if (event.type === 'iteration-completed' && open) {
        // Each answer of a run is a text of its own.
        await io.out('\n');
        open = false;
      }
      for (const line of statusLines(event)) status(line);
    }
    const result = await run;
    if (open) await io.out('\n');
    if (!asJson && result.finish !== 'stop')
      status(
        result.error === undefined ? `The run ended: ${result.finish}` : `Error: ${result.error.message}`,
      );
    return result;
  } finally {
    io.signal.removeEventListener('abort', stop);
  }
}

/** What a person is told of a run beside its answers. */
function statusLines(event: SessionEvent): readonly string[] {
  switch (event.type) {
    case 'inbox-waiting':
      return [`${event.items} waiting in the inbox`];
    case 'steered':
      return [`Took in ${event.messages === 1 ? 'a message' : `${event.messages} messages`}`];
    case 'tool-started':
      return [`→ ${event.name}${event.display === undefined ? '' : ` ${event.display}`}`];
    case 'tool-completed':
      return event.success ? [] : [failureLine(event)];
    case 'tool-waiting':
      return event.calls.map(
        ({ name, toolCallId, input, for: awaited }) =>
          `${name} ${awaitedOf[awaited]}: ${toolCallId} ${oneLine(JSON.stringify(input), inputMax)}`,
      );
    case 'compacted':
      return [`Summarised ${event.range.join('-')}: ${summarisedFor[event.trigger]}`];
    case 'pruned':
      return [`Left out ${event.outputs} outputs of calls: about ${event.tokens} tokens`];
    case 'retrying':
      return [`Trying again (${event.attempt}): ${oneLine(event.message, failureMax)}`];
    case 'warning':
      return [`Warning: ${event.message}`];
    default:
      return [];
  }
}

/** Why a session was summarised, as people are told. */
const summarisedFor = {
  manual: 'as was asked',
  threshold: 'little of the window was left',
  overflow: 'it was too much for the model',
  'model-switch': 'the model that comes next takes less',
} as const;

/** What a call waits for, as people are told. */
export const awaitedOf = {
  approval: 'waits for approval',
  result: 'waits for its result',
  tool: 'is approved, and waits for its tool',
} as const;

/** How much of a call's input is shown, in characters: `--json` has all of it. */
export const inputMax = 200;

/** That a call failed, on one line, however much its tool says of it. */
export function failureLine({ name, output }: { readonly name: string; readonly output: unknown }): string {
  return `  ${name} failed: ${oneLine(String(output), failureMax)}`;
}

/** How much of a failure is shown, in characters: all of it is on the tape. */
const failureMax = 1_000;

/** A run as `--json` gives it; `others` are those that this command did beside it. */
export function resultJson(
  result: RunResult,
  others: readonly RunResult[] = [],
): Readonly<Record<string, unknown>> {
  const { session, run, text, finish, steps, usage, from, to, error } = result;
  return {
    session,
    run,
    text,
    finish,
    steps,
    usage: usageJson(usage),
    from,
    to,
    ...(error !== undefined && { error: { code: error.code, message: error.message } }),
    ...(others.length > 0 && { other_runs: others.map((other) => resultJson(other)) }),
  };
}

/** The exit code for how a run ended. */
export function exitOf(finish: Finish): number {
  if (finish === 'aborted') return exit.interrupted;
  return finish === 'stop' || finish === 'length' ? exit.done : exit.failed;
}
