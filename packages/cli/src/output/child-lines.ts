import type { ChildEvent, SessionEvent, WaitingCall } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { jsonText } from '../escape.ts';

/** Prints what happens to children as lines of `--jsonl`: their progress, and the calls that wait for answers. */
export function childLines({ io, options }: Context): (event: SessionEvent) => Promise<void> {
  return async (event) => {
    if (options.jsonl !== true) return;
    if (event.type === 'child-progress' || event.type === 'tool-waiting')
      await io.out(`${jsonText(event)}\n`);
  };
}

/** The calls of a delegated child that wait for answers, as an event of its parent. */
export function waitingAbove(event: ChildEvent): SessionEvent | undefined {
  if (event.type !== 'child-event' || event.event.type !== 'tool-waiting') return undefined;
  const { session } = event;
  const calls = event.event.calls
    .filter((call) => call.for !== 'children')
    .map(
      (call): WaitingCall =>
        call.session === undefined ? { ...call, toolCallId: `${session}/${call.toolCallId}`, session } : call,
    );
  return { type: 'tool-waiting', calls };
}
