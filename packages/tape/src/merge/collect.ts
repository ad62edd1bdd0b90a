import { artifactOf, type RecordedArtifact } from '../entry/artifact.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { visible } from '../tape/interval.ts';
import { readEntries } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';

/** The outcome of a child over a range of its own entries. */
export interface Collected {
  /** The explicit result, else the model's last text and the reason for an early end; never empty. */
  readonly text: string;
  /** The value of the explicit result, if one was recorded. */
  readonly value?: Json;
  /** Position of the entry that the text came from, if any. */
  readonly textSeq: Seq | undefined;
  readonly usage: JsonObject | undefined;
  /**
   * Whether every tool that ran declared its paths, or ran in a worktree whose changes were recorded
   * afterwards. If false, a conflict report is incomplete.
   */
  readonly complete: boolean;
  /** The newest record of the child's worktree; it includes the changes of all earlier ones. */
  readonly recorded: RecordedArtifact | undefined;
  readonly durationMs: number;
}

/**
 * Collects a child's result from its own entries: an explicit `result` entry, else the model's last text,
 * else its error. Reads only, and runs before the merge's transaction.
 */
export function collectResult(db: Db, child: TapeRow, [from, to]: readonly [Seq, Seq]): Collected {
  let result: Entry | undefined;
  let lastText: { seq: Seq; text: string } | undefined;
  let failed: { seq: Seq; text: string } | undefined;
  let first: number | undefined;
  let last = 0;
  let complete = true;
  let recorded: RecordedArtifact | undefined;
  const usage: Record<string, number> = {};
  const shown = [...visible(db, child, to)].reverse();
  for (const entry of readEntries(db, child, { from, to, own: true })) {
    first ??= entry.at;
    last = entry.at;
    if (entry.kind === 'tool-result') complete &&= isObject(entry.meta.paths);
    if (entry.kind === 'message') addUsage(usage, entry.meta.usage);
    // A rewind on the child's tape does not undo changes to its files.
    const artifact = artifactOf(entry);
    if (artifact !== undefined) {
      recorded = { seq: entry.seq, artifact };
      complete = true;
    }
    // Rewound entries count for usage and duration, but not for the result.
    while (shown[0] !== undefined && entry.seq > shown[0].hi) shown.shift();
    if (shown[0] === undefined || entry.seq <= shown[0].lo) continue;
    // A redacted result is no result.
    if (entry.kind === 'result') result = entry.payload === null ? undefined : entry;
    else if (entry.kind === 'event') {
      failed = endOf(entry) ?? failed;
      if (entry.name === resultRefused) result = lastText = undefined;
    } else if (entry.kind === 'message') {
      const text = assistantText(entry.payload);
      if (text.trim() !== '') lastText = { seq: entry.seq, text };
    }
  }
  const unfinished = failed !== undefined && failed.seq > (lastText?.seq ?? 0) ? failed : undefined;
  const value = result === undefined ? undefined : resultValue(result.payload);
  const chosen =
    result === undefined || value === undefined
      ? joinText(lastText, unfinished)
      : { seq: result.seq, text: typeof value === 'string' ? value : JSON.stringify(value) };
  return {
    text: chosen?.text ?? '(no result)',
    ...(value !== undefined && { value }),
    textSeq: chosen?.seq,
    usage: Object.keys(usage).length === 0 ? undefined : usage,
    complete,
    recorded,
    durationMs: first === undefined ? 0 : last - first,
  };
}

type FoundText = { readonly seq: Seq; readonly text: string };

function joinText(lastText: FoundText | undefined, failed: FoundText | undefined): FoundText | undefined {
  if (lastText === undefined || failed === undefined) return lastText ?? failed;
  return { seq: failed.seq, text: `${lastText.text}\n\n${failed.text}` };
}

function resultValue(payload: Json): Json {
  return isObject(payload) && 'value' in payload ? (payload.value ?? null) : payload;
}

/** The text parts of an assistant message, joined; empty for any other payload. */
export function assistantText(payload: Json): string {
  if (!isObject(payload) || payload.role !== 'assistant' || !Array.isArray(payload.content)) return '';
  return payload.content
    .flatMap((part) => (isObject(part) && part.type === 'text' ? [String(part.text)] : []))
    .join('');
}

/** Returns the reason that a run recorded for an early end. */
function endOf({ seq, name = '', payload }: Entry): FoundText | undefined {
  const label = endLabels[name];
  if (label === undefined || !isObject(payload) || typeof payload.message !== 'string') return undefined;
  return { seq, text: `${label}: ${payload.message}` };
}

/** Name of the event that records why an earlier result is invalid. This error then is the child's result. */
export const resultRefused = 'result/refused';

const endLabels: Readonly<Record<string, string>> = {
  'run/error': 'Error',
  'run/halted': 'Halted',
  [resultRefused]: 'Error',
};

function addUsage(sum: Record<string, number>, usage: Json | undefined): void {
  if (!isObject(usage)) return;
  for (const [name, value] of Object.entries(usage))
    if (typeof value === 'number') sum[name] = (sum[name] ?? 0) + value;
}
