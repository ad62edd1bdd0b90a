import type { InboxItem } from '@tapedeck/tape';

/**
 * What happens to a message that arrives during a run (N32-N37):
 * `interrupt` stops the run and starts one of its own; `steer` is seen by the run's next step, and gives it one more where it
 * would have ended; `steer-backlog` is seen by the next step if there is one, else it starts a run afterwards; `collect` waits
 * for the end of the run and shares one run with all others that do; `followup` and `queue` wait for their turn.
 */
export type QueueMode = 'interrupt' | 'steer' | 'followup' | 'collect' | 'steer-backlog' | 'queue';

export const queueModes: readonly QueueMode[] = [
  'interrupt',
  'steer',
  'followup',
  'collect',
  'steer-backlog',
  'queue',
];

/** Who sends a message: a person, another agent, a timer. */
export type Source = 'user' | 'agent' | 'timer' | (string & {});

/** The kind of session that answers people at once (K13). */
const manager = 'manager';

/**
 * The mode of a message that names none: `queue`; a session of kind `manager` is interrupted by people and hears agents
 * and timers after its run (N38, K13).
 */
export function defaultMode(source: Source | undefined, kind: string): QueueMode {
  if (source === undefined || kind !== manager) return 'queue';
  return source === 'user' ? 'interrupt' : 'followup';
}

/** What a message does that was left for whoever runs the session. */
export function effectOf(mode: QueueMode): 'queued' | 'steered' | 'interrupted' {
  if (mode === 'interrupt') return 'interrupted';
  return mode === 'steer' || mode === 'steer-backlog' ? 'steered' : 'queued';
}

/**
 * Where a session is when its inbox is looked at: in the midst of a step; between two steps; after the last; after a run
 * (`ended`), or after one that failed or was aborted, which queued messages do not go on from by themselves (`stopped`).
 */
export type QueuePoint = 'streaming' | 'step' | 'last' | 'ended' | 'stopped';

/** What to do about the inbox, and which of its items are meant. */
export type QueueDecision =
  | { readonly do: 'nothing' }
  | { readonly do: 'abort'; readonly reason: string }
  | { readonly do: 'steer'; readonly items: readonly InboxItem[] }
  | { readonly do: 'start'; readonly items: readonly InboxItem[] };

/**
 * Decides what the messages, answers and aborts in an inbox do to its session. Pure: the same inbox at the same point gives
 * the same decision. `owner` holds the session's lease; aborts that were meant for another are none.
 */
export function decide(inbox: readonly InboxItem[], at: QueuePoint, owner?: string): QueueDecision {
  const inputs = inbox.filter(({ body }) => body.type === 'input');
  const of = (...modes: readonly string[]) => inputs.filter(({ mode }) => modes.includes(mode));
  const answers = inbox.filter(({ body }) => body.type === 'answer');
  const interrupts = of('interrupt');
  if (at === 'streaming' || at === 'step' || at === 'last') {
    for (const { body } of inbox)
      if (body.type === 'abort' && body.owner === owner) return { do: 'abort', reason: body.reason };
    if (interrupts.length > 0) return { do: 'abort', reason: 'interrupted by a new message' };
    if (at === 'streaming') return { do: 'nothing' };
    const steering = at === 'step' ? of('steer', 'steer-backlog') : of('steer');
    return steering.length > 0 ? { do: 'steer', items: steering } : { do: 'nothing' };
  }
  if (interrupts.length > 0) return { do: 'start', items: interrupts };
  if (answers.length > 0) return { do: 'start', items: answers };
  const [next] = inputs;
  if (next === undefined || at === 'stopped') return { do: 'nothing' };
  return { do: 'start', items: next.mode === 'collect' ? of('collect') : [next] };
}

/** Aborts that came too late: there is nothing left for them to stop. */
export function spentAborts(inbox: readonly InboxItem[]): readonly InboxItem[] {
  return inbox.filter(({ body }) => body.type === 'abort');
}
