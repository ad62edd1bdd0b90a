import type { ByRecord } from './by-record.ts';
import { type CodeRecord, isBoundary, isSummary } from './records.ts';

/** A step of the conversation: an assistant message, or a record of another kind. */
export type TranscriptTurn = ModelTurn | RecordTurn;

/** An assistant message, with all its records in file order. */
export interface ModelTurn {
  readonly kind: 'assistant';
  /** The id that its records share; a record without one is a turn of its own. */
  readonly id: string | undefined;
  readonly members: readonly CodeRecord[];
  /** Ordinal of its first record on the path. */
  readonly at: number;
}

/** A record of the path that is not an assistant message. No model sees an `aside`. */
export interface RecordTurn {
  readonly kind: 'user' | 'boundary' | 'api-error' | 'aside';
  readonly record: CodeRecord;
  /** For a boundary: the record with the summary. */
  readonly summary?: CodeRecord;
  readonly at: number;
}

interface OpenMessage {
  readonly kind: 'assistant';
  readonly id: string | undefined;
  members: CodeRecord[];
  readonly at: number;
}

/** The records of answers in a tree, by the ids of their messages. */
export type AnswerRecords = ReadonlyMap<string, readonly CodeRecord[]>;

/**
 * Pure.
 * @param except those that are not wanted
 */
export function answerRecordsOf(
  records: readonly CodeRecord[],
  except?: Pick<ByRecord<true>, 'has'>,
): AnswerRecords {
  const found = new Map<string, CodeRecord[]>();
  for (const record of records) {
    if (except?.has(record) === true) continue;
    const id = kindOf(record) === 'assistant' ? messageId(record) : undefined;
    if (id === undefined) continue;
    const others = found.get(id);
    if (others === undefined) found.set(id, [record]);
    else others.push(record);
  }
  return found;
}

/** What a path is beside its steps. */
export interface Way {
  readonly onPath: Pick<ByRecord<true>, 'has'>;
  /** What was attached to results that are off the path, by the step behind which the model got it. */
  readonly hanging?: ReadonlyMap<CodeRecord, readonly CodeRecord[]>;
  /** Of the end of a path: what the last snapshot before it says of turns of the system. */
  readonly systemTurns?: boolean | undefined;
  /** Is given the number of turns before each step. */
  readonly before?: number[];
}

/**
 * The path as turns. Claude Code writes one record per content block, so the records with one `message.id`
 * (and `requestId`) form one message. Results and progress between them do not end it, since tools run while
 * the model still streams; a user prompt or another message does, in case a proxy gives every message the
 * same id. Parallel calls also leave blocks of a message off the path; their id assigns them to it.
 */
export function turnsOf(
  steps: readonly CodeRecord[],
  answers: AnswerRecords,
  { onPath, hanging, systemTurns, before }: Way,
): TranscriptTurn[] {
  const turns: (OpenMessage | RecordTurn)[] = [];
  const byId = new Map<string, OpenMessage[]>();
  let open: OpenMessage | undefined;
  const add = (record: CodeRecord): void => {
    const kind = kindOf(record);
    const at = record.ordinal;
    if (kind === 'assistant') {
      const id = messageId(record);
      if (id !== undefined && open?.id === id) open.members.push(record);
      else {
        open = { kind, id, members: [record], at };
        turns.push(open);
        if (id !== undefined) {
          const same = byId.get(id);
          if (same === undefined) byId.set(id, [open]);
          else same.push(open);
        }
      }
    } else if (kind === 'summary') {
      addSummary(turns, record);
    } else {
      turns.push({ kind, record, at });
    }
    if (kind !== 'assistant' && kind !== 'aside' && !isInjected(record)) open = undefined;
  };
  for (const step of steps) {
    before?.push(turns.length);
    add(step);
    for (const one of hanging?.get(step) ?? []) add(one);
  }
  before?.push(turns.length);

  const sidechain = steps.at(-1)?.sidechain;
  for (const [id, same] of byId)
    for (const record of answers.get(id) ?? []) {
      if (onPath.has(record) || record.sidechain !== sidechain) continue;
      // A message that a compaction kept, or a proxy that repeats its ids, gives several turns one id.
      (same.findLast(({ at }) => at <= record.ordinal) ?? same[0])?.members.push(record);
    }
  for (const same of byId.values())
    for (const turn of same) turn.members = turn.members.toSorted((a, b) => a.ordinal - b.ordinal);
  return asGiven(turns, systemTurns);
}

/**
 * The turns in the order in which the model got them: Claude Code writes what is attached to a prompt behind it, and sends it
 * before the prompt, right behind the last answer or result. What it sends as a turn of the system stays behind the prompt, and
 * behind one that waited and has a turn of its own.
 */
function asGiven(turns: readonly TranscriptTurn[], before: boolean | undefined): TranscriptTurn[] {
  const ordered: TranscriptTurn[] = [];
  let prompts: TranscriptTurn[] = [];
  let ofSystem: TranscriptTurn[] = [];
  const endRun = (): void => {
    for (const turn of prompts) ordered.push(turn);
    for (const turn of ofSystem) ordered.push(turn);
    prompts = [];
    ofSystem = [];
  };
  // The first snapshot follows the first request.
  let hasSystemTurns = before ?? turns.map(systemTurnsOf).find((one) => one !== undefined) ?? false;
  for (const turn of turns) {
    hasSystemTurns = systemTurnsOf(turn) ?? hasSystemTurns;
    if (hasSystemTurns && hasOwnTurn(turn)) {
      // What a hook said of one of several results is before the others, which it follows.
      ofSystem = [...takenOfSystem(ordered), ...ofSystem];
      ordered.push(turn);
    } else if (isAttached(turn)) (hasSystemTurns && isOfSystem(turn) ? ofSystem : ordered).push(turn);
    else if (turn.kind === 'aside' || isPrompt(turn)) prompts.push(turn);
    else {
      endRun();
      ordered.push(turn);
    }
  }
  endRun();
  return ordered;
}

function systemTurnsOf(turn: TranscriptTurn): boolean | undefined {
  return turn.kind === 'aside' ? turn.record.traits.systemTurns : undefined;
}

function isOfSystem(turn: TranscriptTurn): boolean {
  return turn.kind === 'user' && turn.record.traits.isOfSystem;
}

function hasOwnTurn(turn: TranscriptTurn): boolean {
  return turn.kind === 'user' && turn.record.traits.hasOwnTurn;
}

/** Takes the turns of the system since the last answer out of a list. */
function takenOfSystem(ordered: TranscriptTurn[]): readonly TranscriptTurn[] {
  const answer = ordered.findLastIndex(({ kind }) => kind === 'assistant');
  const since = ordered.splice(answer + 1);
  ordered.push(...since.filter((turn) => !isOfSystem(turn)));
  return since.filter(isOfSystem);
}

function isAttached(turn: TranscriptTurn): boolean {
  return turn.kind === 'user' && turn.record.type === 'attachment';
}

function isPrompt(turn: TranscriptTurn): boolean {
  return turn.kind === 'user' && !turn.record.traits.hasResults;
}

export function kindOf(record: CodeRecord): ModelTurn['kind'] | RecordTurn['kind'] | 'summary' {
  if (!record.isChained) return 'aside';
  if (isSummary(record)) return 'summary';
  if (isBoundary(record)) return 'boundary';
  if (record.type === 'assistant') return record.traits.isApiError ? 'api-error' : 'assistant';
  return record.type === 'user' || record.traits.isGiven ? 'user' : 'aside';
}

/**
 * Adds a summary to the boundary before it; an automatic compaction can have attachments between the two. A summary without a
 * boundary, as older versions wrote it, is itself a boundary.
 */
function addSummary(turns: (OpenMessage | RecordTurn)[], summary: CodeRecord): void {
  const last = turns.findLastIndex((turn) => turn.kind !== 'aside' && !isAttached(turn));
  const boundary = turns[last];
  if (boundary?.kind === 'boundary' && boundary.summary === undefined) turns[last] = { ...boundary, summary };
  else turns.push({ kind: 'boundary', record: summary, summary, at: summary.ordinal });
}

/** What the records of one message have in common. */
export function messageId({ message }: CodeRecord): string | undefined {
  return message;
}

/** Whether a record is a prompt, which ends the message before it. */
export function isTyped(record: CodeRecord): boolean {
  return kindOf(record) === 'user' && !isInjected(record) && !record.traits.hasResults;
}

/** Results, and texts that the user did not type, arrive while the model still streams. */
function isInjected(record: CodeRecord): boolean {
  if (record.type === 'attachment') return true;
  return record.type === 'user' && (record.traits.isMeta || record.traits.isOnlyResults);
}
