import { type Draft, type Json, type JsonObject, note, processOwner, toolResult } from '@tapedeck/tape';
import type { Tool, ToolSet } from 'ai';
import { runPoint } from '../crash-point.ts';
import { isUnstorable, messageOf, SessionError } from '../errors.ts';
import { type Hold, hold } from '../lease/hold.ts';
import { settleLeftovers } from '../lease/settle-leftovers.ts';
import type { DeckParts } from '../session/parts.ts';
import { partsOf } from '../session/parts.ts';
import type { Session } from '../session/session.ts';
import type { ToolContext } from '../session/tool-context.ts';
import type { OpenCall } from '../stream/call.ts';
import { recordPermit, refusedBy } from '../terms/permit-notes.ts';
import { openPermits, type Permit, type Permits } from '../terms/permits.ts';
import { lastSenders } from '../terms/senders.ts';
import { usedTools } from '../terms/terms.ts';
import { duringCall } from '../tools/current-call.ts';
import { unstorable } from '../tools/execute.ts';
import { batchNotes, openBatch } from '../tools/open-batch.ts';
import { closeOrphans } from '../tools/orphans.ts';
import { withTilde } from '../tools/tilde.ts';
import { pathsOf, type ToolTraits } from '../tools/traits.ts';
import { workspaceOf } from '../workspace/open.ts';

/**
 * Wraps the tools of an application whose model `recorded` wraps. A call is marked on the tape as begun before its
 * `execute` runs, and its result is recorded right after, before the AI SDK has it. While calls run, the process has the
 * session. After a crash, a call that had begun is known to have an unknown outcome, and one that had not can run.
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

interface ToolPlace {
  readonly parts: DeckParts;
  readonly session: Session;
}

type Options = Parameters<NonNullable<Tool['execute']>>[1];

function recordedTool(place: ToolPlace, name: string, tool: ToolSet[string]): ToolSet[string] {
  const { execute } = tool;
  if (execute === undefined) return tool;
  const run = (call: BegunCall, input: unknown, options: Options): unknown =>
    Reflect.apply(execute, tool, [input, { ...options, context: { ...call.context, ...options.context } }]);
  const yields = async function* (input: unknown, options: Options): AsyncGenerator<unknown> {
    const call = await BegunCall.begin(place, { ...tool, name }, { input, options });
    let last: unknown;
    let end = () => call.failed(new Error('the application stopped reading the values of the tool'));
    try {
      for await (const value of run(call, input, options) as AsyncIterable<unknown>) {
        last = value;
        yield value;
      }
      end = () => call.succeeded(last);
    } catch (error) {
      end = () => call.failed(error);
      throw error;
    } finally {
      await end();
    }
  };
  const returns = async (input: unknown, options: Options): Promise<unknown> => {
    const call = await BegunCall.begin(place, { ...tool, name }, { input, options });
    let output: unknown;
    try {
      output = await call.during(async () => await lastOf(run(call, input, options)));
    } catch (error) {
      await call.failed(error);
      throw error;
    }
    await call.succeeded(output);
    return output;
  };
  /** What rules ask, the AI SDK asks, as for a tool that asks by itself. */
  const needsApproval: NonNullable<Tool['needsApproval']> = async (input, options) => {
    const own =
      typeof tool.needsApproval === 'function'
        ? await tool.needsApproval(input, options)
        : tool.needsApproval;
    const permits = await permitsOf(place);
    return (
      own === true ||
      (permits.isRuled && (await permits.permit({ tool: name, input }, tool as ToolTraits)).verdict === 'ask')
    );
  };
  const isGenerator = Object.prototype.toString.call(execute) === '[object AsyncGeneratorFunction]';
  return { ...tool, needsApproval, execute: isGenerator ? yields : returns } as ToolSet[string];
}

async function permitsOf({ parts, session }: ToolPlace): Promise<Permits> {
  const line = await parts.worker({ session: session.name, id: session.id }).line();
  const senders = await lastSenders(parts.store, session.id);
  return await openPermits(parts, { line, workspace: await workspaceOf(parts, session.id) }, senders);
}

async function lastOf(output: unknown): Promise<unknown> {
  const value = await output;
  if (typeof value !== 'object' || value === null || !(Symbol.asyncIterator in value)) return value;
  let last: unknown;
  for await (const one of value as AsyncIterable<unknown>) last = one;
  return last;
}

type NamedTool = Pick<ToolSet[string], 'toModelOutput'> & ToolTraits & { readonly name: string };

/** What the AI SDK gives a tool. */
interface Given {
  readonly input: unknown;
  readonly options: Options;
}

/** A call of a tool that has begun. */
class BegunCall {
  /** What tools of this package need: the session, and the run that their children belong to. */
  readonly context: ToolContext;
  readonly #place: ToolPlace;
  readonly #tool: NamedTool;
  readonly #call: OpenCall;
  readonly #given: Given;
  readonly #held: Hold;

  private constructor(
    place: ToolPlace,
    tool: NamedTool,
    {
      call,
      given,
      held,
      run,
    }: { readonly call: OpenCall; readonly given: Given; readonly held: Hold; readonly run: string },
  ) {
    this.#place = place;
    this.#tool = tool;
    this.#call = call;
    this.#given = given;
    this.#held = held;
    this.context = { session: place.session, run };
  }

  /** Marks a call as begun. */
  static async begin(place: ToolPlace, tool: NamedTool, given: Given): Promise<BegunCall> {
    const { parts, session } = place;
    const { toolCallId } = given.options;
    const held = await leaseOf(place).take();
    try {
      const open = await openBatch(parts.store, session.id);
      const call = open.find((one) => one.toolCallId === toolCallId);
      const fault =
        call === undefined
          ? 'it is not on the tape, or has a result there'
          : call.state === 'begun' || call.state === 'unbegun'
            ? 'it has begun before'
            : undefined;
      if (call === undefined || fault !== undefined)
        throw new SessionError(
          'SESSION_NO_CALL',
          `cannot run call '${toolCallId}' of '${session.name}': ${fault}`,
          {
            data: { session: session.name, call: toolCallId },
          },
        );
      const run = parts.newId();
      const begun = note(batchNotes.begun, { run, calls: [{ toolCallId }] });
      await parts.store.entries.append(session.id, [begun], { lease: held.lease });
      const allowed = usedTools(await parts.worker({ session: session.name, id: session.id }).line());
      const of = new BegunCall(place, tool, { call, given, held, run });
      of.#emit({ type: 'tool-started', toolCallId, name: tool.name, at: parts.now() });
      runPoint('call/before-run');
      const isAllowed = allowed === undefined || allowed.has(tool.name);
      const permit = isAllowed ? await of.#permit() : undefined;
      if (isAllowed && permit?.verdict !== 'deny') return of;
      const why =
        permit === undefined
          ? `Tool '${tool.name}' may not be used in this session.`
          : withTilde(refusedBy(permit));
      const refusal = new Error(why);
      await of.#record(await errorOutput(refusal), noPaths);
      throw refusal;
    } catch (error) {
      await leaseOf(place).release();
      throw error;
    }
  }

  /** Decides on the call by rules; undefined without any. What rules ask, the application has asked. */
  async #permit(): Promise<Permit | undefined> {
    const { parts, session } = this.#place;
    const permits = await permitsOf(this.#place);
    if (!permits.isRuled) return undefined;
    const permit = await permits.permit({ tool: this.#tool.name, input: this.#given.input }, this.#tool);
    const append = async (drafts: readonly Draft[]) =>
      await parts.store.entries.append(session.id, drafts, { lease: this.#held.lease });
    await recordPermit({ append, run: this.context.run }, this.#call, permit);
    return permit;
  }

  /** Runs the tool, so that what it starts finds the call. */
  async during<T>(act: () => Promise<T>): Promise<T> {
    const { parts, session } = this.#place;
    const { toolCallId } = this.#call;
    return await duringCall(
      { store: parts.store, session: session.name, toolName: this.#tool.name, toolCallId },
      act,
    );
  }

  /** Records the result. One that cannot be stored becomes an error result. */
  async succeeded(output: unknown): Promise<void> {
    runPoint('call/ran');
    const { toolCallId } = this.#call;
    const { input } = this.#given;
    try {
      const typed = await this.#tool.toModelOutput?.({
        toolCallId,
        input: input as never,
        output: output as never,
      });
      await this.#record((typed as Json | undefined) ?? outputOf(output), pathsOf(this.#tool, input));
    } finally {
      await leaseOf(this.#place).release();
    }
  }

  /** Records that the tool threw. After an abort the outcome is unknown, and the call stays open. */
  async failed(error: unknown): Promise<void> {
    const { parts, session } = this.#place;
    const { abortSignal } = this.#given.options;
    try {
      if (abortSignal?.aborted !== true)
        return await this.#record(await errorOutput(error), pathsOf(this.#tool, this.#given.input));
      const aborted = note('run/aborted', { reason: messageOf(abortSignal.reason), unbegun: [] });
      await parts.store.entries.append(session.id, [aborted], { lease: this.#held.lease });
    } finally {
      await leaseOf(this.#place).release();
    }
  }

  async #record(output: Json, paths: object | undefined): Promise<void> {
    const { store, now } = this.#place.parts;
    const { id } = this.#place.session;
    const meta = paths === undefined ? {} : { paths: paths as JsonObject };
    const append = async (draft: Draft) =>
      await store.entries.append(id, [draft], { lease: this.#held.lease });
    try {
      await append(toolResult(this.#call, output, meta));
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      await append(unstorable(this.#call, error.message, meta).draft);
    }
    runPoint('call/recorded');
    const { type, value } = output as { readonly type: string; readonly value?: Json };
    const success = !type.startsWith('error');
    const { toolCallId, toolName: name } = this.#call;
    this.#emit({ type: 'tool-completed', toolCallId, name, success, output: value ?? null, at: now() });
  }

  #emit(event: Parameters<ReturnType<DeckParts['worker']>['emitEvent']>[0]): void {
    const { parts, session } = this.#place;
    parts.worker({ session: session.name, id: session.id }).emitEvent(event);
  }
}

const noPaths = { read: [], write: [] };

/** The output of a tool as the AI SDK sends it. */
function outputOf(output: unknown): Json {
  if (typeof output === 'string') return { type: 'text', value: output };
  return { type: 'json', value: JSON.parse(JSON.stringify(output) ?? 'null') as Json };
}

/** The error of a tool as the AI SDK sends it. */
async function errorOutput(error: unknown): Promise<Json> {
  const { getErrorMessage } = await import('@ai-sdk/provider');
  return { type: 'error-text', value: getErrorMessage(error) };
}

/** The lease of a session while calls of tools run, which the calls of one answer share. */
class ToolLease {
  readonly #place: ToolPlace;
  #running = 0;
  #held: Promise<Hold> | undefined;
  #released: Promise<unknown> = Promise.resolve();

  constructor(place: ToolPlace) {
    this.#place = place;
  }

  async take(): Promise<Hold> {
    this.#running += 1;
    this.#held ??= this.#released.then(async () => await this.#acquire());
    try {
      return await this.#held;
    } catch (error) {
      this.#running -= 1;
      this.#held = undefined;
      throw error;
    }
  }

  async release(): Promise<void> {
    this.#running -= 1;
    if (this.#running > 0) return;
    const held = this.#held;
    this.#held = undefined;
    this.#released = Promise.resolve(held?.then(async (one) => await one.release())).catch(() => {});
    await this.#released;
    if (this.#running === 0) leases.get(this.#place.parts)?.delete(this.#place.session.id);
  }

  async #acquire(): Promise<Hold> {
    const { parts, session } = this.#place;
    const { store } = parts;
    const held = await hold(store, session.id, {
      owner: processOwner(`tools:${parts.newId()}`),
      act: 'run a tool of',
    });
    try {
      await settleLeftovers(store, session.id, held);
      // Calls that a process had begun which died: their outcome is unknown.
      await closeOrphans(store, session.id, { hold: held });
      return held;
    } catch (error) {
      await held.release();
      throw error;
    }
  }
}

const leases = new WeakMap<DeckParts, Map<string, ToolLease>>();

function leaseOf(place: ToolPlace): ToolLease {
  const { parts, session } = place;
  const known = leases.get(parts) ?? new Map<string, ToolLease>();
  leases.set(parts, known);
  const lease = known.get(session.id) ?? new ToolLease(place);
  known.set(session.id, lease);
  return lease;
}
