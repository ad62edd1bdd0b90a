/**
 * The formats: a folder for each tool whose transcripts are trees, of which there is one, `claude-code/`. `nexus3.ts` and
 * `session-jsonl.ts` read one conversation from one file, and `read-transcript.ts` one file of any format. Imports `plan`
 * and `lines`.
 */

import { statSync } from 'node:fs';
import { basename } from 'node:path';
import type { JsonObject } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import type { OnProgress } from '@tapedeck/tape/store';
import { ImportError } from '../lines/errors.ts';
import { type BadLine, chunksOf, type JsonLines, parseJsonLines } from '../lines/json-lines.ts';
import {
  assertRegular,
  type FaultyLines,
  type IrregularLine,
  inOrder,
  irregularLine,
} from '../plan/faulty-lines.ts';
import { Irregularities, type RecordForm } from '../plan/irregular.ts';
import { planOf } from '../plan/one-conversation.ts';
import type { ImportPlan } from '../plan/plan.ts';
import { planClaudeCode } from './claude-code/plan-of.ts';
import { isClaudeCode } from './claude-code/records.ts';
import { claudeCode } from './claude-code/tool.ts';
import { readNexus3 } from './nexus3.ts';
import { isSavedSession, readSavedSession } from './saved-session.ts';
import { isSessionRecord, readSessionJsonl, sessionJsonl } from './session-jsonl.ts';

/** A supported transcript format. */
export type TranscriptFormat = 'claude-code' | 'nexus3' | 'session-jsonl';

/** How to read a transcript. */
export interface ReadOptions {
  /** Default: that of the content. */
  readonly format?: 'auto' | TranscriptFormat;
  /** The bytes of a transcript that is no file. */
  readonly chunks?: Iterable<Uint8Array>;
  /** Refuses a file that has a line that is no record, or an irregular one. */
  readonly strict?: boolean;
  /** Further formats whose records are named where they are among others: `transcriptTools`. */
  readonly forms?: readonly RecordForm[];
  /** Receives how many bytes were read. */
  readonly onProgress?: OnProgress;
}

/** One file as a plan. */
export interface ReadPlan extends ImportPlan {
  readonly format: TranscriptFormat;
  /** The places of lines that are not JSON and were left out, the first of them; the counts have all as `skipped`. */
  readonly bad: readonly BadLine[];
  /** Lines that were taken, though something in them is wrong, the first of them. */
  readonly irregular: readonly IrregularLine[];
}

/**
 * Reads one transcript file as a plan, which {@link reconcile} writes; the session is named after the file if no record names
 * it. Of a session of Claude Code that has more files, it reads the given one alone. With `chunks`, `file` is only used in
 * names.
 * @throws ImportError: IMPORT_CANNOT_READ, IMPORT_EMPTY, IMPORT_BAD_JSON with `line` and byte `offset` (see `parseJsonLines`), and
 * IMPORT_UNKNOWN_FORMAT when the file does not have the format
 * @example
 * ```ts
 * import { readTranscript, reconcile } from '@tapedeck/runtime/import';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('tapes/tape.db');
 * const message = { role: 'user', content: 'Why does the build fail?' };
 * const record = { type: 'user', uuid: 'r1', parentUuid: null, sessionId: 's1', message };
 * const plan = readTranscript('s1.jsonl', { chunks: [Buffer.from(`${JSON.stringify(record)}\n`)] });
 * for (const { session, created } of reconcile(store, plan)) console.log(session, created); // s1 true
 * ```
 */
export function readTranscript(
  file: string,
  { format = 'auto', chunks, strict = false, forms = [], onProgress }: ReadOptions = {},
): ReadPlan {
  const all = chunks === undefined ? undefined : [...chunks];
  const bytes = () => all ?? chunksOf(file);
  const shown = () => (onProgress === undefined ? bytes() : counted(bytes(), sizeOf(file, all), onProgress));
  if (format === 'nexus3' || (format === 'auto' && isSaved(bytes()))) {
    const saved = readSavedSession(shown(), file);
    return read('nexus3', planOf('nexus3', readNexus3(saved, { name: basename(file, '.json') })));
  }
  const lines = parseJsonLines(shown(), { file, strict });
  const irregularIn = (own: RecordForm) => {
    const irregular = new Irregularities(own, [claudeCode, sessionJsonl, ...forms]);
    for (const line of lines.records) irregular.look(line);
    return irregular.found;
  };
  const how = strict ? { strictFor: file } : {};
  const has = (test: (value: JsonObject) => boolean) => lines.records.some(({ value }) => test(value));
  if (format !== 'claude-code' && has(isSessionRecord))
    return read('session-jsonl', planOf('session-jsonl', readSessionJsonl(lines, { file })), {
      ...{ ...lines, ...how },
      found: irregularIn(sessionJsonl),
    });
  if (format === 'session-jsonl' || !has(isClaudeCode))
    throw new ImportError(
      'IMPORT_UNKNOWN_FORMAT',
      `cannot import ${quote(file)}: it contains no record of ${format === 'auto' ? 'Claude Code or of a session.jsonl, and is no saved session of NEXUS3' : `format ${format}`}`,
      { data: { file } },
    );
  const plan = planClaudeCode({ name: basename(file, '.jsonl'), lines: lines.records });
  return read('claude-code', plan, { ...lines, ...how, found: irregularIn(claudeCode) });
}

/**
 * A plan, with what is wrong with the lines of its file among its counts. `strictFor`: the file, if it may have no irregular line.
 * @throws IMPORT_UNKNOWN_FORMAT
 */
function read(
  format: TranscriptFormat,
  plan: ImportPlan,
  lines?: JsonLines & { readonly found: FaultyLines; readonly strictFor?: string },
): ReadPlan {
  if (lines === undefined) return { ...plan, format, bad: [], irregular: [] };
  const { glued, truncated, skipped, bad, found, strictFor } = lines;
  const [file = ''] = plan.counts.keys();
  const faults = inOrder(found.lines, plan.faults?.get(file) ?? []);
  if (strictFor !== undefined) assertRegular(faults, strictFor);
  const counts = new Map(plan.counts);
  const one = counts.get(file);
  if (one !== undefined) {
    const more = { skipped: one.skipped + skipped, irregular: one.irregular + found.count };
    counts.set(file, { ...one, glued, truncated, ...more });
  }
  return { ...plan, format, bad, irregular: faults.map(irregularLine), counts };
}

/** Whether a file begins as a saved session. */
function isSaved(chunks: Iterable<Uint8Array>): boolean {
  for (const chunk of chunks) return isSavedSession(chunk);
  return false;
}

function sizeOf(file: string, chunks: readonly Uint8Array[] | undefined): number {
  if (chunks !== undefined) return chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Chunks, with a report of each that was taken. */
function* counted(
  chunks: Iterable<Uint8Array>,
  total: number,
  onProgress: OnProgress,
): Generator<Uint8Array> {
  let done = 0;
  for (const chunk of chunks) {
    yield chunk;
    done += chunk.byteLength;
    onProgress({ done: Math.min(done, total), total });
  }
}
