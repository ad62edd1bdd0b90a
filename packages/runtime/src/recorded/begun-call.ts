import { type Draft, type Json, type JsonObject, note, toolResult } from '@tapedeck/tape';
import type { Tool, ToolSet } from 'ai';
import { runPoint } from '../crash-point.ts';
import { isUnstorable, messageOf, SessionError } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import { directoryFor } from '../run/place.ts';
import type { DeckParts } from '../session/parts.ts';
import type { ToolContext } from '../session/tool-context.ts';
import type { Decision, OpenCall } from '../stream/call.ts';
import { recordPermit, refusedBy } from '../terms/permit-notes.ts';
import { usedTools } from '../terms/terms.ts';
import { duringCall } from '../tools/current-call.ts';
import { unstorable } from '../tools/execute.ts';
import { batchNotes } from '../tools/open-batch.ts';
import { withTilde } from '../tools/tilde.ts';
import { pathsOf, type ToolTraits } from '../tools/traits.ts';
import { hasChanged } from '../turn/approval.ts';
import { workspaceOf } from '../workspace/open.ts';
import { answerIn, openCall, permitsOf } from './approval.ts';
import { leaseOf, type ToolPlace } from './tool-lease.ts';

type NamedTool = Pick<ToolSet[string], 'toModelOutput'> & ToolTraits & { readonly name: string };

/** What the AI SDK gives a tool that runs. */
interface Given {
  readonly input: unknown;
  readonly options: Parameters<NonNullable<Tool['execute']>>[1];
}

/** A call of a tool that has begun. */
export class BegunCall {
  /** What tools of this package need: the session, the run that their children belong to, and where files are. */
  context: ToolContext;
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

  /**
   * Decides on a call as a run does, and marks it as begun. What is refused gets its result.
   * @throws SESSION_NO_CALL for a call that the tape does not have; the refusal
   */
  static async begin(place: ToolPlace, tool: NamedTool, given: Given): Promise<BegunCall> {
    const { parts, session } = place;
    const { toolCallId, messages } = given.options;
    const held = await leaseOf(place).take();
    try {
      const call = await openCall(place, held, toolCallId);
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
      const answer = call.decision ?? answerIn(messages, toolCallId);
      const of = new BegunCall(place, tool, { call, given, held, run });
      const why = await of.#refusal(answer);
      const answered =
        call.for === 'approval' && call.decision === undefined && answer !== undefined
          ? [note(batchNotes.answered, { toolCallId, ...answer } as Json)]
          : [];
      if (why !== undefined) {
        if (answered.length > 0) await of.#append(answered);
        const refusal = new Error(why);
        await of.#record(await errorOutput(refusal), noPaths);
        throw refusal;
      }
      await of.#append([...answered, note(batchNotes.begun, { run, calls: [{ toolCallId }] })]);
      of.#emit({ type: 'tool-started', toolCallId, name: tool.name, at: parts.now() });
      runPoint('call/before-run');
      return of;
    } catch (error) {
      await leaseOf(place).release();
      throw error;
    }
  }

  /** Why the call may not run, for the model; undefined when it may. */
  async #refusal(answer: Decision | undefined): Promise<string | undefined> {
    const { parts, session } = this.#place;
    const { name } = this.#tool;
    this.context = { ...this.context, ...directoryFor(parts, await workspaceOf(parts, session.id)) };
    const allowed = usedTools(await parts.worker({ session: session.name, id: session.id }).line());
    if (allowed !== undefined && !allowed.has(name)) return `Tool '${name}' may not be used in this session.`;
    const permits = await permitsOf(this.#place, this.#tool);
    const isWaiting = this.#call.for === 'approval';
    if (!permits.isRuled && !isWaiting) return undefined;
    const permit = await permits.permit({ tool: name, input: this.#given.input }, this.#tool);
    if (permits.isRuled) this.context = { ...this.context, mayReach: await permits.reach(permit) };
    const append = async (drafts: readonly Draft[]) => await this.#append(drafts);
    if (answer === undefined || permit.verdict !== 'allow')
      await recordPermit({ append, run: this.context.run }, this.#call, permit);
    if (permit.verdict === 'deny') return withTilde(refusedBy(permit));
    const isAsked = permit.verdict === 'ask' || (isWaiting && !permit.isGranted);
    if (answer === undefined)
      return isAsked ? withTilde(`${permit.claim} needs an approval, which it does not have`) : undefined;
    if (!answer.approved) return answer.reason ?? 'denied';
    return hasChanged(this.#call, permit) ? 'what it would do has changed since it was approved' : undefined;
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
      await this.#record(
        (typed as Json | undefined) ?? outputOf(output),
        pathsOf(this.#tool, input, this.context.directory),
      );
    } finally {
      await leaseOf(this.#place).release();
    }
  }

  /** Records that the tool threw. After an abort the outcome is unknown, and the call stays open. */
  async failed(error: unknown): Promise<void> {
    const { abortSignal } = this.#given.options;
    try {
      if (abortSignal?.aborted !== true)
        return await this.#record(
          await errorOutput(error),
          pathsOf(this.#tool, this.#given.input, this.context.directory),
        );
      await this.#append([note('run/aborted', { reason: messageOf(abortSignal.reason), unbegun: [] })]);
    } finally {
      await leaseOf(this.#place).release();
    }
  }

  async #record(output: Json, paths: object | undefined): Promise<void> {
    const { now } = this.#place.parts;
    const meta = paths === undefined ? {} : { paths: paths as JsonObject };
    try {
      await this.#append([toolResult(this.#call, output, meta)]);
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      await this.#append([unstorable(this.#call, error.message, meta).draft]);
    }
    runPoint('call/recorded');
    const { type, value } = output as { readonly type: string; readonly value?: Json };
    const success = !type.startsWith('error');
    const { toolCallId, toolName: name } = this.#call;
    this.#emit({ type: 'tool-completed', toolCallId, name, success, output: value ?? null, at: now() });
  }

  async #append(drafts: readonly Draft[]): Promise<void> {
    const { parts, session } = this.#place;
    await parts.store.entries.append(session.id, drafts, { lease: this.#held.lease });
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
