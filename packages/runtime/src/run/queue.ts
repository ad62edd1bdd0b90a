import type { InboxItem } from '@tapedeck/tape/store';

/**
 * What happens to a message that arrives during a run:
 * - `interrupt` aborts the run and starts a new one
 * - `steer` is part of the run's next step, and adds one to a run that would have ended
 * - `steer-backlog` is part of the next step if the run has one, else it starts a run afterwards
 * - `collect` waits for the end of the run and shares the next run with all other `collect` messages
 * - `followup` and `queue` each start a run of their own afterwards, in order
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

/** The sender of a message: a user, another agent, a timer. */
export type MessageSource = 'user' | 'agent' | 'timer' | (string & {});

/** What is wrong with a source; undefined if nothing is. A session that a job began is known by the name of the job. */
export function sourceFault(source: unknown): string | undefined {
  return typeof source === 'string' && /^cron(?::\s*)?$/.test(source)
    ? `the source '${source}' names no job, expected cron:JOB`
    : undefined;
}

/** The kind of session whose runs user messages interrupt. */
const manager = 'manager';

/**
 * The default queue mode: `queue`. In a session of kind `manager`, user messages interrupt, and those of
 * agents and timers follow the run.
 */
export function defaultMode(source: MessageSource | undefined, kind: string): QueueMode {
  if (source === undefined || kind !== manager) return 'queue';
  return source === 'user' ? 'interrupt' : 'followup';
}

/** The effect of a posted message on the current run. */
export function effectOf(mode: QueueMode): 'queued' | 'steered' | 'interrupted' {
  if (mode === 'interrupt') return 'interrupted';
  return mode === 'steer' || mode === 'steer-backlog' ? 'steered' : 'queued';
}

/**
 * The state of a session when its inbox is read: during a step (`streaming`), between two steps, after the
 * last step, after a run (`ended`), or after a failed or aborted run (`stopped`), which queued messages do
 * not continue.
 */
export type QueuePoint = 'streaming' | 'step' | 'last' | 'ended' | 'stopped';

/** What to do with the inbox, and with which items. */
export type QueueDecision =
  | { readonly do: 'nothing' }
  | { readonly do: 'abort'; readonly reason: string }
  | { readonly do: 'steer'; readonly items: readonly InboxItem[] }
  | { readonly do: 'start'; readonly items: readonly InboxItem[] };

/**
 * Decides what the messages, answers and aborts in an inbox do to the session. Pure. `owner` has the
 * session's lease; aborts for other owners are ignored.
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

/** The aborts in an inbox after a run: they have no run left to stop. */
export function spentAborts(inbox: readonly InboxItem[]): readonly InboxItem[] {
  return inbox.filter(({ body }) => body.type === 'abort');
}
