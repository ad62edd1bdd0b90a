import type { Draft } from '@tapedeck/tape';
import type { OpenEnd } from '../../plan/open-end.ts';
import type { ConversationPlan } from '../../plan/plan.ts';
import type { Chain } from './chain.ts';
import type { Conversation, SpokenTurn } from './conversation.ts';
import type { CodeRecord } from './records.ts';
import type { RecordTurn } from './turns.ts';

/** A conversation, and the drafts that begin with each of its turns. */
interface Planned {
  readonly plan: ConversationPlan;
  readonly conversation: Pick<Conversation, 'turns' | 'answers'>;
  /** All of its drafts in order, and at which of them each turn begins. */
  readonly drafts: readonly Draft[];
  readonly starts: readonly number[];
  readonly settled: number;
  /** What the last snapshot before its records says of turns of the system. */
  readonly systemTurns: boolean | undefined;
}

/**
 * Where a longer version of a file can be read from: at the last answer before which all is settled, from which all later
 * records descend, and behind which there is no compaction. Undefined without one. Pure.
 */
export function openEndOf(
  chain: Chain,
  { plan, conversation, drafts, starts, settled, systemTurns: before }: Planned,
): OpenEnd | undefined {
  const { records } = chain;
  const { turns } = conversation;
  // The first record that is given need not be that of the file.
  const base = (records[0]?.ordinal ?? 1) - 1;
  const spans = turns.map((turn) => spanOf(turn, conversation));
  const crossings = crossingsIn(chain);
  let [least, isCompacted] = [Number.POSITIVE_INFINITY, false];
  const most = mostBefore(spans);
  for (let i = turns.length - 1; i > 0; i -= 1) {
    const [turn, span] = [turns[i], spans[i]];
    if (turn === undefined || span === undefined) return undefined;
    least = Math.min(least, span.least);
    isCompacted ||= turn.kind === 'boundary';
    if (isCompacted) return undefined;
    const isPlain = turn.kind === 'assistant' && turn.at === least && (most[i] ?? 0) < least;
    if (!isPlain || (starts[i] ?? 0) > settled || crossings[least - base] !== 1) continue;
    const first = records[least - base - 1];
    // A line is read whole.
    if (first === undefined || records[least - base - 2]?.offset === first.offset) continue;
    if (first.parent === undefined || chain.parents.get(first)?.id !== first.parent) continue;
    const systemTurns = systemTurnsBefore(turns, least) ?? before;
    return {
      conversation: plan.key,
      line: first.line,
      offset: first.offset,
      keys: new Set(drafts.slice(starts[i]).map(({ key = '' }) => key)),
      ids: namesBefore(records, least - base - 1),
      state: {
        ordinal: least - 1,
        parent: first.parent,
        ...(first.before !== undefined && { before: first.before }),
        ...(systemTurns !== undefined && { systemTurns }),
      },
    };
  }
  return undefined;
}

/** What the last snapshot before a record says of turns of the system. */
function systemTurnsBefore(turns: readonly SpokenTurn[], ordinal: number): boolean | undefined {
  let last: RecordTurn | undefined;
  for (const turn of turns) {
    if (turn.kind !== 'aside' || turn.record.traits.systemTurns === undefined) continue;
    if (turn.at < ordinal && turn.at > (last?.at ?? 0)) last = turn;
  }
  return last?.record.traits.systemTurns;
}

/** The first and the last record that a turn is made of, by their ordinals. */
interface Span {
  readonly least: number;
  readonly most: number;
}

function spanOf(turn: SpokenTurn, { answers }: Pick<Conversation, 'answers'>): Span {
  const own =
    turn.kind === 'assistant'
      ? [...turn.members, ...turn.message.calls.flatMap((call) => answers.byCall.get(call)?.record ?? [])]
      : [turn.record, ...(turn.summary === undefined ? [] : [turn.summary])];
  const ordinals = own.map(({ ordinal }) => ordinal);
  return { least: Math.min(...ordinals), most: Math.max(...ordinals) };
}

/** For each turn the last record of those before it. */
function mostBefore(spans: readonly Span[]): readonly number[] {
  let most = 0;
  return spans.map((span) => {
    const before = most;
    most = Math.max(most, span.most);
    return before;
  });
}

/**
 * For each place among the records, from 1, how many links lead from a record at or behind it to one before it, or the other way round. A root
 * behind the first record counts as a link that crosses all.
 */
function crossingsIn({ records, parents }: Chain): Int32Array {
  const crossings = new Int32Array(records.length + 2);
  const add = (from: number, to: number) => {
    crossings[from + 1] = (crossings[from + 1] ?? 0) + 1;
    crossings[to + 1] = (crossings[to + 1] ?? 0) - 1;
  };
  const base = (records[0]?.ordinal ?? 1) - 1;
  for (const record of records) {
    if (!record.isChained) continue;
    const parent = parents.get(record);
    const [own, other] = [record.ordinal - base, parent === undefined ? 0 : parent.ordinal - base];
    add(Math.min(own, other), Math.max(own, other));
  }
  // Until here what changes at each place.
  for (let i = 1; i < crossings.length; i += 1) crossings[i] = (crossings[i] ?? 0) + (crossings[i - 1] ?? 0);
  return crossings;
}

/** The ids of the first records. It has nothing else of the plan: that need not stay in memory for it. */
function namesBefore(records: readonly CodeRecord[], count: number): OpenEnd['ids'] {
  return () => namesIn(records.slice(0, count));
}

/** The ids of records, and those that they name: a record that comes later can have one of these. */
function* namesIn(records: readonly CodeRecord[]): Generator<string> {
  yield* idsIn(records);
  for (const { ordinal, parentAt, parent, leaf } of records) {
    // Nearly every record follows the one before it.
    if (parent !== undefined && parentAt !== ordinal - 1) yield parent;
    if (leaf !== undefined) yield leaf;
  }
}

/** What other records can name of records: uuids, messages and calls. Some of them come several times. */
export function* idsIn(records: readonly CodeRecord[]): Generator<string> {
  for (const { id, uuid, message, results, calls } of records) {
    for (const one of [id, uuid === id ? undefined : uuid, message]) if (one !== undefined) yield one;
    for (const call of results ?? []) if (call !== '') yield call;
    yield* calls ?? [];
  }
}
