import { columnText } from './column-text.ts';
import { isObject, type JsonObject } from './json.ts';
import { recordedUsage, type Usage } from './usage.ts';

/** A model call, as the entry of its answer records it. */
export interface Call {
  /** Absent when it is not recorded. */
  readonly model?: string;
  readonly usage: Usage;
  /** The part of it that earlier entries counted: an import writes an answer again that has grown since. */
  readonly usageBefore?: Usage;
  /** In the unit of the writer; absent when it is not recorded. */
  readonly cost?: number;
  /** Whether it wrote a message: the window of the next call contains it. A summary is in no window. */
  readonly isMessage: boolean;
}

/** What of an entry says which call it records. */
interface CallEntry {
  readonly kind: string;
  readonly payload: unknown;
  readonly meta?: JsonObject | undefined;
}

/** Returns the call that an entry records: of an assistant message, of the summary of a merge, or of a compaction. Pure. */
export function callOf({ kind, payload, meta = {} }: CallEntry): Call | undefined {
  const isMessage = kind === 'message';
  const usage = isMessage || kind === 'compaction' ? recordedUsage(meta) : undefined;
  if (usage === undefined || !isObject(payload)) return undefined;
  // The message of a merge records the usage of its summary.
  const usageBefore = recordedUsage({ usage: meta.usageBefore ?? null });
  if (isMessage && payload.role !== 'assistant' && meta.source !== 'merge') return undefined;
  return {
    ...(typeof meta.model === 'string' && { model: columnText(meta.model) }),
    usage,
    ...(usageBefore !== undefined && { usageBefore }),
    ...(typeof meta.cost === 'number' && { cost: meta.cost }),
    isMessage,
  };
}

/** The tokens that a call adds to those counted before, and whether it is a call of which none were. Pure. */
export function countedOf({ usage, usageBefore }: Pick<Call, 'usage' | 'usageBefore'>): {
  readonly steps: 0 | 1;
  readonly usage: Usage;
} {
  if (usageBefore === undefined) return { steps: 1, usage };
  const more = (name: keyof Usage) => Math.max(0, usage[name] - usageBefore[name]);
  return {
    steps: 0,
    usage: {
      input: more('input'),
      output: more('output'),
      reasoning: more('reasoning'),
      cacheRead: more('cacheRead'),
      cacheWrite: more('cacheWrite'),
    },
  };
}
