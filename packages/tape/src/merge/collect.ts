import { artifactOf, type RecordedArtifact } from '../entry/artifact.ts';
import type { Entry, Seq } from '../entry/entry.ts';
import { isObject, type Json, type JsonObject } from '../entry/json.ts';
import type { Db } from '../sqlite/sqlite.ts';
import { visible } from '../tape/interval.ts';
import { readEntries } from '../tape/read.ts';
import type { TapeRow } from '../tape/tape.ts';

/** What a child has to show for a range of its own entries. */
export interface Collected {
  /** Its explicit result, else the last text of its model and why it ended before its work was done; never empty. */
  readonly text: string;
  /** The explicit result as it was given, if there is one. */
  readonly value?: Json;
  /** The entry that the text came from, if one did. */
  readonly textSeq: Seq | undefined;
  readonly usage: JsonObject | undefined;
  /**
   * Whether every tool that was run declared what it reads and writes, or worked in a worktree whose changes were recorded
   * afterwards: without that, no verdict on conflicts is complete.
   */
  readonly complete: boolean;
  /** What was done in the child's worktree: the newest record, which has all that the ones before it had. */
  readonly recorded: RecordedArtifact | undefined;
  readonly durationMs: number;
}

/**
 * Reads a child's own entries for its result: an explicit `result` entry, else the last text of its model, else
 * its error. Reads only; done before the merge's transaction.
 */
export function collectResult(db: Db, child: TapeRow, [from, to]: readonly [Seq, Seq]): Collected {
  let result: Entry | undefined;
  let said: { seq: Seq; text: string } | undefined;
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
    // What the child took back on its tape stays in its files.
    const artifact = artifactOf(entry);
    if (artifact !== undefined) {
      recorded = { seq: entry.seq, artifact };
      complete = true;
    }
    // What the child itself took back was done and paid for, but is not its result.
    while (shown[0] !== undefined && entry.seq > shown[0].hi) shown.shift();
    if (shown[0] === undefined || entry.seq <= shown[0].lo) continue;
    if (entry.kind === 'result') result = entry;
    else if (entry.kind === 'event') {
      failed = endOf(entry) ?? failed;
      if (entry.name === resultRefused) result = said = undefined;
    } else if (entry.kind === 'message') {
      const text = assistantText(entry.payload);
      if (text !== '') said = { seq: entry.seq, text };
    }
  }
  const unfinished = failed !== undefined && failed.seq > (said?.seq ?? 0) ? failed : undefined;
  const value = result === undefined ? undefined : resultValue(result.payload);
  const chosen =
    result === undefined || value === undefined
      ? joinText(said, unfinished)
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

type Said = { readonly seq: Seq; readonly text: string };

function joinText(said: Said | undefined, failed: Said | undefined): Said | undefined {
  if (said === undefined || failed === undefined) return said ?? failed;
  return { seq: failed.seq, text: `${said.text}\n\n${failed.text}` };
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

/** What a run says of its end, when it did not come to one by itself. */
function endOf({ seq, name = '', payload }: Entry): Said | undefined {
  const label = endLabels[name];
  if (label === undefined || !isObject(payload) || typeof payload.message !== 'string') return undefined;
  return { seq, text: `${label}: ${payload.message}` };
}

/** The event that records why a result before it cannot be used: what the child came to is this error. */
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
