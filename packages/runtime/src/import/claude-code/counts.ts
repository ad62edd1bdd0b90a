import type { Draft } from '@tapedeck/tape';
import type { JsonLines } from '../json-lines.ts';
import type { TranscriptCounts } from '../transcript.ts';
import type { Answers } from './answers.ts';
import { holdsOnlyResults } from './blocks.ts';
import type { Conversation, SpokenTurn } from './conversation.ts';

/** Counts of what was read, so that the user can judge the import. */
export function countsOf(
  lines: JsonLines,
  { path, turns, answers, beside }: Conversation,
  drafts: readonly Draft[],
): TranscriptCounts {
  const count = (test: (draft: Draft) => boolean): number => drafts.filter(test).length;
  return {
    records: lines.records.length,
    messages: count(({ kind }) => kind === 'message'),
    offPath: beside.filter((record) => !answers.records.has(record)).length,
    repaired: count(({ meta }) => meta?.repaired === true),
    compactions: count(({ mark }) => mark === 'boundary'),
    merged: turns.filter(isMerged).length,
    reordered: movedResults(turns, answers),
    dangling: path.dangling,
    skipped: lines.skipped + count(({ meta }) => meta?.omittedBytes !== undefined),
    glued: lines.glued,
    truncated: lines.truncated,
  };
}

function isMerged(turn: SpokenTurn): boolean {
  return turn.kind === 'assistant' && turn.members.length > 1 && !turn.message.isEmpty;
}

/** Results that precede their message in the file, or follow a later message. */
function movedResults(turns: readonly SpokenTurn[], answers: Answers): number {
  let moved = 0;
  let next = Number.POSITIVE_INFINITY;
  for (const turn of turns.toReversed()) {
    if (turn.kind === 'assistant')
      moved += turn.message.calls.filter((call) => {
        const at = answers.byCall.get(call)?.record.ordinal;
        return at !== undefined && (at < turn.at || at > next);
      }).length;
    if (turn.kind !== 'aside' && !(turn.kind === 'user' && holdsOnlyResults(turn.record))) next = turn.at;
  }
  return moved;
}
