import type { ChildEvent } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { safe } from '../escape.ts';
import { cutText, textWidth } from '../terminal/width.ts';

/** The progress of one child, as its line shows it. */
interface ChildState {
  readonly session: string;
  readonly at: string;
  readonly steps: number;
  readonly tool?: string;
}

/**
 * Shows the progress of children: on a terminal one line per child, rewritten in place; in a pipe one line
 * per event.
 */
export function childProgress(
  context: Context,
  { resumed = false }: { readonly resumed?: boolean } = {},
): (event: ChildEvent) => void {
  const { io, options } = context;
  if (io.statusIsTerminal && options.quiet !== true) return inPlace(context);
  return (event) => {
    for (const line of linesOf(event, resumed)) context.status(line);
  };
}

/** The lines of an event in a pipe; none for most events. Conflicts of a merge have a separate line. */
function linesOf(event: ChildEvent, resumed: boolean): readonly string[] {
  if (event.type === 'child-forked')
    return [`${resumed ? 'Continuing' : event.repeated === true ? 'Found' : 'Forked'} ${event.session}`];
  if (event.type === 'child-ended') return [`${event.session} ${event.status}`];
  if (event.type === 'child-merged') {
    const { parent, seq, conflicts, repeated } = event.merged;
    if (repeated) return [`${event.session} is already merged at ${parent}@${seq}`];
    const both = conflicts.map(({ what, via }) => (via === undefined ? what : `${what} (as ${via} did)`));
    return [
      `Merged ${event.session} into ${parent}@${seq}`,
      ...(both.length === 0 ? [] : [`  both wrote ${both.join(', ')}`]),
    ];
  }
  if (event.event.type === 'tool-started') return [`  ${event.session} → ${event.event.name}`];
  if (event.event.type === 'tool-waiting')
    return [`  ${event.session} waits: ${event.event.calls.map(({ name }) => name).join(', ')}`];
  return [];
}

function inPlace({ io }: Context): (event: ChildEvent) => void {
  const states = new Map<string, ChildState>();
  let drawn: readonly string[] = [];
  const draw = () => {
    const { columns } = io;
    // A terminal that became narrower has broken the lines that were drawn.
    const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(textWidth(line) / columns)), 0);
    const back = rows === 0 ? '' : `\u001b[${rows}A\r\u001b[J`;
    drawn = [...states.values()].map((state) => cutText(safe(stateLine(state)), Math.max(1, columns - 1)));
    io.err(`${back}${drawn.map((line) => `${line}\n`).join('')}`);
  };
  return (event) => {
    const before = states.get(event.session) ?? { session: event.session, at: 'forked', steps: 0 };
    const after = stateAfter(before, event);
    if (after === before && states.has(event.session)) return;
    states.set(event.session, after);
    draw();
  };
}

/** The progress of a child after an event. Returns the same object when the line does not change. */
function stateAfter(state: ChildState, event: ChildEvent): ChildState {
  const { tool, ...rest } = state;
  if (event.type === 'child-ended') return { ...rest, at: event.status };
  if (event.type === 'child-merged')
    return { ...rest, at: `${state.at}, merged into ${event.merged.parent}@${event.merged.seq}` };
  if (event.type !== 'child-event') return state;
  const { event: inner } = event;
  if (inner.type === 'run-started') return { ...rest, at: 'running' };
  if (inner.type === 'tool-started') return { ...rest, at: 'running', tool: inner.name };
  if (inner.type === 'tool-completed') return { ...rest, at: 'running' };
  if (inner.type === 'iteration-completed') return { ...state, steps: inner.iteration };
  if (inner.type === 'retrying') return { ...rest, at: `retrying (${inner.attempt})` };
  if (inner.type === 'tool-waiting')
    return { ...rest, at: `waiting: ${inner.calls.map(({ name }) => name).join(', ')}` };
  return state;
}

function stateLine({ session, at, steps, tool }: ChildState): string {
  const counted = steps === 0 ? '' : `  ${steps} ${steps === 1 ? 'step' : 'steps'}`;
  return `${session}  ${at}${counted}${tool === undefined ? '' : `  → ${tool}`}`;
}
