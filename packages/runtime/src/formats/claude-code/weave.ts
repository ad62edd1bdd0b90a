import type { Draft, Part } from '@tapedeck/tape';
import { DraftMaker, type DraftOutline, LaterDraft, outlineOf } from '../../plan/later-draft.ts';
import type { Answers } from './answers.ts';
import { blocksOf, isBlank, userPart } from './blocks.ts';
import type { Conversation, SpokenTurn } from './conversation.ts';
import {
  asideDraft,
  asideKind,
  boundaryDraft,
  errorDraft,
  messageDraft,
  repairDraft,
  resultDraft,
  resultKey,
  userDraft,
} from './drafts.ts';
import { usageOf } from './message.ts';
import type { CodeRecord } from './records.ts';
import type { TreeReading } from './tree-reading.ts';
import type { RecordTurn } from './turns.ts';

type SpokenMessage = Extract<SpokenTurn, { kind: 'assistant' }>;

/** The boundary of the nth compaction. */
interface NthBoundary {
  readonly turn: RecordTurn;
  readonly n: number;
}

/** The drafts of a conversation in order. */
interface Woven {
  readonly drafts: readonly Draft[];
  /** How many of them a longer version of the file repeats; negative where that is less than precedes them. */
  readonly settled: number;
  /** At which of them each turn begins. */
  readonly starts: readonly number[];
}

/** What precedes the turns of a conversation, where these are the end of one. */
interface WovenBefore {
  readonly last: SpokenTurn | undefined;
  readonly compactions: number;
}

/**
 * The drafts of a conversation: its turns in order, each assistant message followed by its results, and the
 * records beside the path before the next turn in the file.
 */
export function weave(
  { turns, answers, beside }: Conversation,
  reading: TreeReading,
  { last, compactions: before }: WovenBefore,
): Woven {
  const drafts: Draft[] = [];
  const add = <Step>(records: readonly CodeRecord[], maker: DraftMaker<Step>, step: Step): void => {
    for (const draft of draftsOf(records, maker, step)) drafts.push(draft);
  };
  /** `more`: what its drafts are made of beside the records of a turn. */
  const addTurn = <Step>(turn: SpokenTurn, maker: DraftMaker<Step>, step: Step, more = ''): void => {
    const records = turn.kind === 'assistant' ? recordsOf(turn, answers) : [turn.record];
    const made = reading.drafts(turn, answers, more, () => draftsOf(records, maker, step));
    for (const draft of made) drafts.push(draft);
  };
  const makers = makersOf(answers);
  const counted = new Set<string>();
  const starts: number[] = [];
  let settled = last?.kind !== 'assistant' || isOver(last, turns[0]) ? undefined : -1;
  let compactions = before;
  let side = 0;
  /** Where what the user says begins. What is attached to it can still come before it. */
  let run: number | undefined;
  const catchUp = (ordinal: number): void => {
    for (let record = beside[side]; record && record.ordinal < ordinal; record = beside[side]) {
      add([record], makers.beside, record);
      side += 1;
    }
  };

  for (const [i, turn] of turns.entries()) {
    catchUp(turn.at);
    const start = drafts.length;
    starts.push(start);
    switch (turn.kind) {
      case 'assistant':
        if (isCounted(turn, counted)) addTurn(turn, makers.counted, turn, 'counted');
        else addTurn(turn, makers.model, turn);
        if (turn.id !== undefined && !turn.message.isEmpty) counted.add(turn.id);
        settled = isOver(turn, turns[i + 1]) ? undefined : start;
        run = undefined;
        break;
      case 'user':
        addTurn(turn, makers.user, turn.record);
        run = answers.records.has(turn.record) ? drafts.length : (run ?? start);
        if (drafts.slice(start).some(({ kind }) => kind === 'message')) settled = run;
        break;
      case 'boundary':
        compactions += 1;
        addTurn(turn, makers.boundary, { turn, n: compactions }, String(compactions));
        settled = start;
        run = undefined;
        break;
      case 'api-error':
        addTurn(turn, makers.error, turn.record);
        settled = undefined;
        run = undefined;
        break;
      case 'aside':
        addTurn(turn, makers.aside, turn.record);
    }
  }
  catchUp(Number.POSITIVE_INFINITY);
  return { drafts, settled: settled ?? drafts.length, starts };
}

/** What makes the drafts of a conversation. It has nothing else of that, as long as they are there. */
function makersOf(answers: Answers) {
  return {
    model: new DraftMaker((turn: SpokenMessage) => modelDrafts(turn, answers, false)),
    // A message split by another one counts its usage only once.
    counted: new DraftMaker((turn: SpokenMessage) => modelDrafts(turn, answers, true)),
    user: new DraftMaker((record: CodeRecord) => userDrafts(record, answers)),
    boundary: new DraftMaker(({ turn, n }: NthBoundary) => [outlineOf(boundaryDraft(turn, n))]),
    error: new DraftMaker((record: CodeRecord) => [outlineOf(errorDraft(record))]),
    aside: new DraftMaker((record: CodeRecord) => [aside(record)]),
    beside: new DraftMaker((record: CodeRecord) => besideDrafts(record, answers)),
  };
}

/** Drafts that are made again each time a caller takes them, unless all of their records are in memory. */
function draftsOf<Step>(
  records: readonly CodeRecord[],
  maker: DraftMaker<Step>,
  step: Step,
): readonly Draft[] {
  const outlines = maker.outline(step);
  if (!records.some(({ isAway }) => isAway)) return outlines.map((outline) => outline.make());
  const total = records.reduce((sum, record) => sum + record.bytes, 0);
  const bytes = Math.ceil(total / Math.max(outlines.length, 1));
  const [keyed] = records;
  return outlines.map((outline, i) => new LaterDraft(outline, { maker, step, i, bytes, keyed }));
}

function recordsOf({ members, message }: SpokenMessage, { byCall }: Answers): readonly CodeRecord[] {
  return [...members, ...message.calls.flatMap((call) => byCall.get(call)?.record ?? [])];
}

function isCounted({ id }: SpokenMessage, counted: ReadonlySet<string>): boolean {
  return id !== undefined && counted.has(id);
}

/**
 * The message, its results in file order, results for unanswered calls, then the records that do not fit the
 * message. `isCounted`: whether its usage is that of an earlier part of it.
 */
function modelDrafts(
  { members, message }: SpokenMessage,
  answers: Answers,
  isCounted: boolean,
): DraftOutline[] {
  const [first] = members;
  if (first === undefined || message.isEmpty) return members.map((record) => aside(record));
  const answered = message.calls
    .flatMap((call) => {
      const answer = answers.byCall.get(call);
      return answer ? [{ call, answer }] : [];
    })
    .sort((a, b) => a.answer.record.ordinal - b.answer.record.ordinal);
  const open = message.calls.filter((call) => !answers.byCall.has(call));
  return [
    {
      kind: 'message',
      key: first.key,
      make: () => messageDraft(first, message, isCounted ? undefined : usageOf(members)),
    },
    ...answered.map(({ call, answer }) => ({
      kind: 'tool-result' as const,
      key: resultKey(call, answer),
      make: () => resultDraft(call, answer),
    })),
    ...open.map((call) => outlineOf(repairDraft(call))),
    ...message.rest.map((record) => aside(record, `${record.key}:rest`)),
  ];
}

/**
 * The message of a user record, without the results that it contains. Also keeps the record itself if it has
 * a block of unknown type, a result that answers no call or a call answered before, or more than the model got.
 */
function userDrafts(record: CodeRecord, answers: Answers): DraftOutline[] {
  const used = answers.records.get(record);
  if (record.type === 'user' && hasNothingBeside(record, used)) return [];
  const parts: Part[] = [];
  let rest = false;
  for (const [i, block] of blocksOf(record.raw).entries()) {
    if (used?.includes(i) === true || isBlank(block)) continue;
    const part = userPart(block);
    if (part) parts.push(part);
    else rest = true;
  }
  const message = parts.length > 0 ? [outlineOf(userDraft(record, parts))] : [];
  if (message.length === 0 && !answers.records.has(record)) return [aside(record)];
  if (record.type !== 'user') return [...message, aside(record, `${record.key}:whole`)];
  return rest ? [...message, aside(record, `${record.key}:rest`)] : message;
}

/** A record beside the path, unless it contains only results of calls on the path. */
function besideDrafts(record: CodeRecord, answers: Answers): DraftOutline[] {
  const used = answers.records.get(record);
  if (used === undefined) return [aside(record)];
  if (hasNothingBeside(record, used)) return [];
  const all = blocksOf(record.raw).every((block, i) => used.includes(i) || isBlank(block));
  return all ? [] : [aside(record, `${record.key}:rest`)];
}

/** A record that views skip. */
function aside(record: CodeRecord, key: string = record.key): DraftOutline {
  return { kind: asideKind, key, make: () => asideDraft(record, key) };
}

/** Whether each block of a record is a result that answers a call. */
function hasNothingBeside({ traits, results }: CodeRecord, used: readonly number[] | undefined): boolean {
  return traits.isOnlyResults && used !== undefined && used.length === results?.length;
}

/** Whether no later record can extend a message: the model stopped, or the end of its turn is recorded. */
function isOver({ message }: SpokenMessage, next: SpokenTurn | undefined): boolean {
  if (message.calls.length > 0) return false;
  return message.stopped || (next?.kind === 'aside' && next.record.type === 'system');
}
