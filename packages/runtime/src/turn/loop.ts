import {
  type Appended,
  assistantText,
  type Draft,
  type Entry,
  type Forked,
  type ForkRequest,
  type Json,
  type JsonObject,
  type Seq,
  type TapeStore,
  type ViewPolicy,
} from '@tapedeck/tape';
import type { ToolSet } from 'ai';
import type { CompactionTerms } from '../compaction/compact.ts';
import type { DeckConfig, Limits } from '../config/config.ts';
import type { SessionError } from '../errors.ts';
import type { Answer, LanguageModel, ModelMessage } from '../model/model.ts';
import type { Finish } from '../run/run.ts';
import type { Phase } from '../status/status.ts';
import type { Chunk } from '../stream/chunks.ts';
import type { SessionEvent } from '../stream/events.ts';
import type { Reached } from '../terms/budget.ts';
import type { OpenCall } from '../tools/open-batch.ts';
import type { DeckTools, ToolContext } from '../tools/traits.ts';
import { addUsage, noUsage, type Usage } from '../usage/usage.ts';
import { type BatchEnd, runBatch } from './batch.ts';
import { complete, halt, recordAbort, recordFailure, settleAbort } from './end.ts';
import { giveResult, owedResult } from './result.ts';
import { promptOf, takeTurn } from './turn.ts';

/** What the loop works with. */
export interface LoopContext {
  readonly run: string;
  readonly session: string;
  /** The session that it was forked from. */
  readonly parent: string | undefined;
  readonly store: TapeStore;
  readonly model: LanguageModel;
  readonly summarizer: LanguageModel | undefined;
  /** Which part of the session the model is shown. */
  readonly shows: ViewPolicy;
  readonly compaction: CompactionTerms;
  readonly tools: DeckTools;
  /** The tools as they are sent. */
  readonly definitions: ToolSet;
  /** SHA-256 of the tools as they are sent. */
  readonly toolsDigest: string | undefined;
  /** What the model is told before the messages that these entries show. */
  readonly instruct: (entries: readonly Entry[]) => Promise<string | undefined>;
  /** What tools are told of where they run. */
  readonly toolContext: ToolContext;
  /** Whether a tool is offered, and may not be used here. */
  readonly forbidden: (name: string) => boolean;
  /** The last inherited position, of a session that inherits something. */
  readonly base: Seq | undefined;
  /** Whether a budget allows a further model call. */
  readonly reached: () => Promise<Reached | undefined>;
  /** JSON Schema of the result that the last step is asked for. */
  readonly output: JsonObject | undefined;
  readonly limits: Required<Limits>;
  readonly onApproval: DeckConfig['onApproval'];
  readonly cost: DeckConfig['cost'];
  readonly signal: AbortSignal;
  readonly now: () => number;
  /** Shows a chunk to everybody who watches. */
  readonly emit: (chunk: Chunk) => void;
  readonly tell: (event: SessionEvent) => void;
  /** Says what the run is at. */
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Makes a model call when its provider has room for one. */
  readonly calling: <T>(call: () => Promise<T>) => Promise<T>;
  /** Counts what a summary took, which is no step of the run. */
  readonly spend: (usage: Usage) => void;
  /** Makes a child of the session. */
  readonly fork: (request: ForkRequest) => Promise<Forked>;
  /** Commits entries under the run's lease. */
  readonly append: (drafts: readonly Draft[]) => Promise<Appended>;
  /** Commits what the session came to, in the form that was asked for. */
  readonly giveResult: (value: Json) => Promise<Appended>;
  /** Commits what a live answer came to, in place of its chunks. */
  readonly settle: (drafts: readonly Draft[]) => Promise<Appended>;
  /**
   * Does what arrived in the inbox, at a point where no call is open, and takes in messages for this run. True when
   * there were any. `last`: the run would end here.
   */
  readonly takeMessages: (at: 'step' | 'last') => Promise<boolean>;
}

/** What the loop came to. */
export interface LoopResult {
  readonly finish: Finish;
  readonly text: string;
  readonly steps: number;
  readonly usage: Usage;
  readonly error?: SessionError;
}

/**
 * Turns until nothing is left to do (G62). Contract: an entry is committed before it is acted on, a call before it is run,
 * its result right after; whatever cannot be recorded stops the run (laws 4 and 11). What arrived in the inbox is
 * done between steps, when no call is open. It begins with the calls that were left open, if any.
 */
export async function runLoop(context: LoopContext, open: readonly OpenCall[] = []): Promise<LoopResult> {
  const { limits, signal, tell } = context;
  let done: Omit<LoopResult, 'finish' | 'error'> = { text: '', steps: 0, usage: noUsage };
  let calls = open;
  let messages: readonly ModelMessage[] = open.length === 0 ? [] : (await promptOf(context)).messages;
  let answer: Answer | undefined;
  const owed = open.length > 0 ? undefined : await owedResult(context);
  if (context.output !== undefined && owed !== undefined)
    return await giveResult(context, { schema: context.output, done, owed });
  for (;;) {
    if (calls.length > 0) context.enter('processing');
    const { end, unbegun } = calls.length === 0 ? nothingToRun : await runBatch(context, calls, messages);
    if (end === 'waiting') return { ...done, ...complete(context, 'waiting') };
    if (signal.aborted) return { ...done, ...(await recordAbort(context, answer, { ...done, unbegun })) };
    const more = answer === undefined || calls.length > 0;
    const mayGoOn = done.steps < limits.maxSteps;
    const steered = mayGoOn && (await context.takeMessages(more ? 'step' : 'last'));
    const willContinue = mayGoOn && (more || steered);
    if (answer !== undefined)
      tell({ type: 'iteration-completed', iteration: done.steps, usage: answer.usage, willContinue });
    if (signal.aborted) return { ...done, ...(await settleAbort(context, [])) };
    const reached = willContinue ? await context.reached() : more ? outOfSteps(done.steps) : undefined;
    if (reached !== undefined) return { ...done, ...(await halt(context, reached, done.steps)) };
    if (!willContinue) {
      const finish = finishOf(answer);
      if (finish === 'stop' && context.output !== undefined)
        return await giveResult(context, { schema: context.output, done, owed: { state: 'ask' } });
      return { ...done, ...complete(context, finish) };
    }
    const turn = await takeTurn(context, done.steps + 1);
    done = { ...done, steps: done.steps + 1 };
    if ('failure' in turn) {
      const text = turn.partial.map(({ payload }) => assistantText(payload as Json)).join('');
      return { ...done, ...(text !== '' && { text }), ...(await recordFailure(context, turn)) };
    }
    answer = turn.answer;
    calls = answer.calls;
    messages = turn.messages;
    done = { ...done, text: answer.text, usage: addUsage(done.usage, answer.usage) };
  }
}

function outOfSteps(steps: number): Reached {
  return { limit: 'steps', message: `no end after ${steps} steps, which is the limit` };
}

const nothingToRun: BatchEnd = { end: 'done', unbegun: [] };

function finishOf(answer: Answer | undefined): Finish {
  return answer?.finish === 'length' ? 'length' : answer?.finish === 'error' ? 'error' : 'stop';
}
