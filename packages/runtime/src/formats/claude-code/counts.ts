import type { Draft } from '@tapedeck/tape';
import { entryBytesMax } from '@tapedeck/tape/store';
import type { FaultyLines } from '../../plan/faulty-lines.ts';
import { keyPart } from '../../plan/key-part.ts';
import { LaterDraft } from '../../plan/later-draft.ts';
import type { ConversationPlan } from '../../plan/plan.ts';
import { noCounts, type TranscriptCounts } from '../../plan/transcript.ts';
import type { Answers } from './answers.ts';
import type { Chain } from './chain.ts';
import type { Conversation, SpokenTurn } from './conversation.ts';

/** What the conversations of a file do not show of how they were read. */
export type ReadingCounts = Pick<TranscriptCounts, 'merged' | 'reordered' | 'dangling' | 'irregular'>;

/** How the paths of a file were read. A message that several have counts once. Pure. */
export function readingCounts(
  { records, parents }: Chain,
  paths: readonly Conversation[],
  { count: irregular }: FaultyLines,
): ReadingCounts {
  const merged = new Set<number>();
  const reordered = new Set<string>();
  for (const { turns, answers } of paths) {
    for (const turn of turns) if (isMerged(turn)) merged.add(turn.members[0]?.ordinal ?? 0);
    for (const call of movedResults(turns, answers)) reordered.add(call);
  }
  const dangling = records.filter((record) => {
    const { isChained, parentAt } = record;
    if (!isChained) return false;
    return parentAt === undefined ? record.parent !== undefined : parents.get(record)?.ordinal !== parentAt;
  });
  return { merged: merged.size, reordered: reordered.size, dangling: dangling.length, irregular };
}

function isMerged(turn: SpokenTurn): turn is Extract<SpokenTurn, { kind: 'assistant' }> {
  return turn.kind === 'assistant' && turn.members.length > 1 && !turn.message.isEmpty;
}

/** The calls whose results precede their message in the file, or follow a later message. */
function movedResults(turns: readonly SpokenTurn[], answers: Answers): readonly string[] {
  const moved: string[] = [];
  let next = Number.POSITIVE_INFINITY;
  for (const turn of turns.toReversed()) {
    if (turn.kind === 'assistant')
      for (const call of turn.message.calls) {
        const at = answers.byCall.get(call)?.record.ordinal;
        if (at !== undefined && (at < turn.at || at > next))
          moved.push(`${call.record.key}:${keyPart(call.toolCallId)}`);
      }
    if (turn.kind !== 'aside' && !(turn.kind === 'user' && turn.record.traits.isOnlyResults)) next = turn.at;
  }
  return moved;
}

/** What became of the records of a file, in all of its conversations. Pure. */
export function countsOf(
  records: number,
  conversations: readonly ConversationPlan[],
  reading: ReadingCounts,
): TranscriptCounts {
  const spine = differentIn(conversations);
  const asides = conversations.flatMap((one) => one.asides).map(({ draft }) => draft);
  const count = (test: (draft: Draft) => boolean): number => spine.filter(test).length;
  return {
    ...noCounts,
    ...reading,
    records,
    messages: count(({ kind }) => kind === 'message'),
    offPath: asides.filter(({ key }) => key?.startsWith('cc:') === true && !ofPart.test(key)).length,
    repaired: count(({ kind, key }) => kind === 'tool-result' && key?.endsWith(':interrupted') === true),
    compactions: count(({ mark }) => mark === 'boundary'),
    skipped: asides.filter(isOmitted).length,
  };
}

/** The drafts of conversations, each once: a branch repeats what it has in common with its parent. */
function differentIn(conversations: readonly ConversationPlan[]): readonly Draft[] {
  const [first, ...others] = conversations;
  if (others.length === 0) return first?.spine ?? [];
  const drafts = new Set<Draft>();
  for (const { spine, shared = 0 } of conversations)
    for (let i = shared; i < spine.length; i += 1) drafts.add(spine[i] as Draft);
  const byKey = new Map<string | undefined, Draft>();
  for (const draft of drafts) byKey.set(draft.key, draft);
  return [...byKey.values()];
}

/** Records of which an entry of the conversation has a part, and those of other files. */
const ofPart = /:(?:rest|whole)$|^cc:(?:agent-meta|journal:|tool-results:)/;

/** Whether an aside names its record only. Does not read the content where that would read its line again. */
function isOmitted(draft: Draft): boolean {
  return draft instanceof LaterDraft ? draft.bytes > entryBytesMax : draft.meta?.omittedBytes !== undefined;
}
