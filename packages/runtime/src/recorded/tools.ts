import type { Tool, ToolSet } from 'ai';
import { SessionError } from '../errors.ts';
import { partsOf } from '../session/parts.ts';
import type { Session } from '../session/session.ts';
import { withTilde } from '../tools/tilde.ts';
import type { BegunCall } from './begun-call.ts';
import type { ToolPlace } from './tool-lease.ts';

/**
 * Wraps the tools of an application whose model `recorded` wraps. A call is marked on the tape as begun before its
 * `execute` runs, and its result is recorded right after, before the AI SDK has it. While calls run, the process has the
 * session. After a crash, a call that had begun is known to have an unknown outcome, and one that had not can run.
 *
 * Rules count as in a run: what they ask waits for approval on the tape, and the AI SDK asks the application; what has no
 * answer does not run.
 *
 * Tools without `execute` stay as they are. A function that returns an async iterable is given its last value only,
 * unless it is an async generator.
 * @throws SESSION_BAD_INPUT without a session. A call throws SESSION_NO_CALL when it is not on the tape, or has a result
 *   or another start there, and SESSION_BUSY while another process has the session; its tool does not run then
 *
 * @example
 * ```ts
 * import { openDeck, recorded, recordedTools } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 * import { generateText, isStepCount, tool } from 'ai';
 * import { z } from 'zod';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:') });
 * const main = await deck.session('main');
 * const add = tool({
 *   inputSchema: z.object({ a: z.number(), b: z.number() }),
 *   execute: async ({ a, b }) => a + b,
 * });
 * const { text } = await generateText({
 *   model: await recorded(main, 'script:answers.json'),
 *   tools: recordedTools(main, { add }),
 *   stopWhen: isStepCount(5),
 *   prompt: 'Plan the release.',
 * });
 * console.log(text); // Test, tag, publish.
 * ```
 */
export function recordedTools<T extends ToolSet>(session: Session, tools: T): T {
  const parts = partsOf.get(session);
  if (parts === undefined)
    throw new SessionError('SESSION_BAD_INPUT', 'cannot record tools: the first argument must be a session');
  const place = { parts, session };
  const wrapped = Object.entries(tools).map(([name, tool]) => [name, recordedTool(place, name, tool)]);
  return Object.fromEntries(wrapped) as T;
}

type Options = Parameters<NonNullable<Tool['execute']>>[1];

function recordedTool(place: ToolPlace, name: string, tool: ToolSet[string]): ToolSet[string] {
  const { execute } = tool;
  if (execute === undefined) return tool;
  const run = (call: BegunCall, input: unknown, options: Options): unknown =>
    Reflect.apply(execute, tool, [input, { ...options, context: { ...call.context, ...options.context } }]);
  const begin = async (input: unknown, options: Options): Promise<BegunCall> => {
    const { BegunCall } = await import('./begun-call.ts');
    return await BegunCall.begin(place, { ...tool, name }, { input, options });
  };
  const yields = async function* (input: unknown, options: Options): AsyncGenerator<unknown> {
    const call = await begin(input, options);
    let last: unknown;
    let end = () => call.failed(new Error('the application stopped reading the values of the tool'));
    try {
      for await (const value of run(call, input, options) as AsyncIterable<unknown>) {
        last = value;
        yield value;
      }
      end = () => call.succeeded(last);
    } catch (thrown) {
      const error = shownError(thrown);
      end = () => call.failed(error);
      throw error;
    } finally {
      await end();
    }
  };
  const returns = async (input: unknown, options: Options): Promise<unknown> => {
    const call = await begin(input, options);
    let output: unknown;
    try {
      output = await call.during(async () => await lastOf(run(call, input, options)));
    } catch (thrown) {
      const error = shownError(thrown);
      await call.failed(error);
      throw error;
    }
    await call.succeeded(output);
    return output;
  };
  /** What rules ask, the AI SDK asks, as for a tool that asks by itself. */
  const needsApproval: NonNullable<Tool['needsApproval']> = async (input, options) => {
    const { isAsked } = await import('./approval.ts');
    return await isAsked(place, { ...tool, name }, { input, options });
  };
  const isGenerator = Object.prototype.toString.call(execute) === '[object AsyncGeneratorFunction]';
  return { ...tool, needsApproval, execute: isGenerator ? yields : returns } as ToolSet[string];
}

/** The error that the AI SDK shows to a model: with `~` in the place of the home directory, as in a run. */
function shownError(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? withTilde(error) : error;
  const message = withTilde(error.message);
  if (message === error.message) return error;
  return Object.assign(new Error(message, { cause: error }), { name: error.name });
}

async function lastOf(output: unknown): Promise<unknown> {
  const value = await output;
  if (typeof value !== 'object' || value === null || !(Symbol.asyncIterator in value)) return value;
  let last: unknown;
  for await (const one of value as AsyncIterable<unknown>) last = one;
  return last;
}
