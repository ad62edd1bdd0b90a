import type { LineageLine, LineageType, LineIntention } from '@tapedeck/tape/store';
import { z } from 'zod';
import { withoutBom } from './chain.ts';
import { lineBytesMax } from './lines.ts';

/** Why a line was skipped. */
export type SkipReason = 'tooLong' | 'malformed' | 'unknownType';

/** The result of parsing a line: a record, or the reason why it was skipped. */
export type Parsed =
  | { readonly kind: 'record'; readonly record: LineageLine }
  | { readonly kind: 'skipped'; readonly reason: SkipReason; readonly why: string };

const text = z.string();
const position = z.int().nonnegative();

/** Accepts a date that is not a string, as its JSON text, so that it does not make the record invalid. */
const date = z.union([text, z.unknown().transform((value) => JSON.stringify(value))]);

const types = {
  session: 'session',
  fork: 'fork',
  status: 'status',
  merge: 'merge',
  discard: 'discard',
  alias: 'alias',
  unalias: 'unalias',
  archive: 'archive',
  link: 'link',
} as const satisfies { readonly [T in LineageType]: T };

const intention: z.ZodType<LineIntention> = z.object({
  next_steps: z.exactOptional(text),
  context_summary: z.exactOptional(text),
  trigger_on_complete: z.exactOptional(text),
  digest: text,
} satisfies { readonly [F in keyof LineIntention]-?: z.ZodType<LineIntention[F]> });

/** Schema of a record. Drops unknown fields, so that a later version may add some. */
export const lineageLine: z.ZodType<LineageLine> = z.object({
  v: z.literal(1),
  g: z.int().positive(),
  event_id: text,
  type: z.enum(types),
  session_id: text.min(1),
  parent_session_id: text.nullable(),
  from_anchor: text.nullable(),
  created_at: date,
  status: text,
  at: text,
  session: text.min(1),
  parent: text.nullable(),
  tape: text,
  kind: text,
  row: z.exactOptional(text),
  was: z.exactOptional(text),
  base: z.exactOptional(position),
  range: z.exactOptional(z.tuple([position, position]).nullable()),
  spawn_key: z.exactOptional(text),
  intention: z.exactOptional(intention),
  into: z.exactOptional(text),
  into_session_id: z.exactOptional(text),
  seq: z.exactOptional(position),
  received: z.exactOptional(position),
  text_version: z.exactOptional(position),
  parent_head: z.exactOptional(text),
  child_head: z.exactOptional(text),
  alias: z.exactOptional(text),
  reason: z.exactOptional(text),
  edge: z.exactOptional(text),
  derived: z.exactOptional(z.literal(true)),
  evidence: z.exactOptional(text),
  call: z.exactOptional(text),
  lifecycle: z.exactOptional(text),
  task: z.exactOptional(text),
  delivery: z.exactOptional(text),
  prev: text,
} satisfies { readonly [F in keyof LineageLine]-?: z.ZodType<LineageLine[F]> });

/**
 * Parses one line, given without its LF. Never throws: skips a line that is not a record, or has an unknown
 * type or version, with the reason.
 *
 * @example
 * ```ts
 * import { parseRecord, readLines } from '@tapedeck/graph';
 * import { openJournal } from '@tapedeck/graph/journal';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore('.tape/tape.db', { journal: openJournal('.tape/session_graph.jsonl') });
 * store.sessions.open('main');
 * store.lineage.fork('main', { name: 'idea' });
 * for (const line of readLines('.tape/session_graph.jsonl')) {
 *   const parsed = parseRecord(line.kind === 'line' ? line.text : '');
 *   if (parsed.kind === 'record') console.log(parsed.record.type, parsed.record.session_id);
 *   // session main
 *   // fork idea
 * }
 * ```
 */
export function parseRecord(line: string): Parsed {
  if (line.length > lineBytesMax || Buffer.byteLength(line) > lineBytesMax)
    return skipped('tooLong', `it is larger than ${lineBytesMax} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(withoutBom(line));
  } catch (cause) {
    return skipped('malformed', cause instanceof Error ? cause.message : String(cause));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return skipped('malformed', 'it is not a JSON object');
  if (forged(value) || ('intention' in value && forged(value.intention)))
    return skipped('malformed', "it has a field '__proto__'");
  if ('type' in value && typeof value.type === 'string' && !Object.hasOwn(types, value.type))
    return skipped('unknownType', 'its type is unknown');
  if ('v' in value && typeof value.v === 'number' && value.v > 1)
    return skipped('unknownType', `it has version ${value.v}`);
  const read = lineageLine.safeParse(value);
  if (read.success) return { kind: 'record', record: read.data };
  const [issue] = read.error.issues;
  return skipped('malformed', `field '${issue?.path.join('.')}': ${issue?.message}`);
}

/** Whether an object has a field `__proto__`, which only a forged line has. It is harmless here. */
function forged(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '__proto__');
}

function skipped(reason: SkipReason, why: string): Parsed {
  return { kind: 'skipped', reason, why };
}
