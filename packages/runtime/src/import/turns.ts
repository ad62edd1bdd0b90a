import { isObject } from '@tapedeck/tape';
import { holdsOnlyResults } from './blocks.ts';
import type { Path } from './path.ts';
import { type CodeRecord, isBoundary, isSummary, text } from './records.ts';

/** What a stretch of the path says: one message of the model, or one record of another sort. */
export type Turn = ModelTurn | RecordTurn;

/** One message of the model, from all the records it was split over, in file order. */
export interface ModelTurn {
  readonly kind: 'assistant';
  /** What its records have in common; one without an id stands alone. */
  readonly id: string | undefined;
  readonly members: readonly CodeRecord[];
  /** Ordinal of its first record on the path. */
  readonly at: number;
}

/** A record of the path that is not the model's message. `aside` is what no model reads. */
export interface RecordTurn {
  readonly kind: 'user' | 'boundary' | 'api-error' | 'aside';
  readonly record: CodeRecord;
  /** Of a boundary: the record with the summary. */
  readonly summary?: CodeRecord;
  readonly at: number;
}

interface OpenMessage {
  readonly kind: 'assistant';
  readonly id: string | undefined;
  readonly members: CodeRecord[];
  readonly at: number;
}

/**
 * The path as turns. Claude Code writes one record per content block, so the records of one `message.id` (and
 * `requestId`) are one message. Results and progress between them do not end it, as tools run while the model
 * still speaks; a person's prompt or another message does, should a proxy give every message the same id.
 * Parallel calls also leave blocks of a message off the path: they are found by its id and belong to it.
 */
export function turnsOf({ steps }: Path, records: readonly CodeRecord[]): Turn[] {
  const turns: (OpenMessage | RecordTurn)[] = [];
  const byId = new Map<string, OpenMessage>();
  let open: OpenMessage | undefined;
  for (const record of steps) {
    const kind = kindOf(record);
    const at = record.ordinal;
    if (kind === 'assistant') {
      const id = messageId(record);
      if (id !== undefined && open?.id === id) open.members.push(record);
      else {
        open = { kind, id, members: [record], at };
        turns.push(open);
        if (id !== undefined) byId.set(id, open);
      }
    } else if (kind === 'summary') {
      addSummary(turns, record);
    } else {
      turns.push({ kind, record, at });
    }
    if (kind !== 'assistant' && kind !== 'aside' && !isInjected(record)) open = undefined;
  }

  const onPath = new Set(steps);
  const sidechain = steps.at(-1)?.sidechain;
  for (const record of records) {
    if (onPath.has(record) || record.sidechain !== sidechain || kindOf(record) !== 'assistant') continue;
    byId.get(messageId(record) ?? '')?.members.push(record);
  }
  for (const { members } of byId.values()) members.sort((a, b) => a.ordinal - b.ordinal);
  return turns;
}

function kindOf(record: CodeRecord): ModelTurn['kind'] | RecordTurn['kind'] | 'summary' {
  if (record.id === undefined) return 'aside';
  if (isSummary(record)) return 'summary';
  if (isBoundary(record)) return 'boundary';
  if (record.type === 'assistant') return record.raw.isApiErrorMessage === true ? 'api-error' : 'assistant';
  return record.type === 'user' ? 'user' : 'aside';
}

/** A summary completes the boundary before it; one without a boundary, as older versions wrote it, is one. */
function addSummary(turns: (OpenMessage | RecordTurn)[], summary: CodeRecord): void {
  const last = turns.findLastIndex(({ kind }) => kind !== 'aside');
  const boundary = turns[last];
  if (boundary?.kind === 'boundary' && boundary.summary === undefined) turns[last] = { ...boundary, summary };
  else turns.push({ kind: 'boundary', record: summary, summary, at: summary.ordinal });
}

function messageId({ raw }: CodeRecord): string | undefined {
  const id = isObject(raw.message) ? text(raw.message.id) : undefined;
  return id === undefined ? undefined : `${id} ${text(raw.requestId) ?? ''}`;
}

/** Results, and texts that no person typed, arrive while the model still speaks. */
function isInjected(record: CodeRecord): boolean {
  return record.type === 'user' && (record.raw.isMeta === true || holdsOnlyResults(record));
}
