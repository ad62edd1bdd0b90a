/**
 * Formats values of the library for stdout: as JSON of the contract (`…Json`) and as text (`…Line`,
 * `…Table`). No file here opens a store or has the logic of a verb. May import `context`, `graph-file`, `io`,
 * `errors`, `escape`, `terminal` and `exit`.
 */

import type { Status } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { jsonText, oneLine, safe } from '../escape.ts';
import { makeStyle, type Style } from '../terminal/style.ts';
import { awaitedOf, inputMax } from './run.ts';
import { painted } from './sessions.ts';

/** The status of a session as `--json` prints it; part of the documented contract. */
export function statusJson(status: Status): Readonly<Record<string, unknown>> {
  const { session, state, phase, run, startedAt, attempt, message } = status;
  const { lifecycle, task, delivery, queued, waiting, owner, children, damage } = status;
  return {
    session,
    state,
    ...(phase !== undefined && { phase }),
    ...(run !== undefined && { run }),
    ...(startedAt !== undefined && { started_at: new Date(startedAt).toISOString() }),
    ...(attempt !== undefined && { attempt }),
    ...(message !== undefined && { message }),
    lifecycle,
    ...(task !== undefined && { task }),
    ...(delivery !== undefined && { delivery }),
    queued,
    waiting: waitingJson(waiting),
    ...(children !== undefined && {
      children: children.map((child) => ({ session: child.session, waiting: waitingJson(child.waiting) })),
    }),
    ...(damage !== undefined && { damage }),
    ...(owner !== undefined && { owner: { id: owner.id, pid: owner.pid ?? null, host: owner.host ?? null } }),
  };
}

function waitingJson(waiting: Status['waiting']): readonly object[] {
  return waiting.map(({ toolCallId, name, input, for: awaited }) => ({
    call: toolCallId,
    tool: name,
    input,
    for: awaited,
  }));
}

/** The status of a session on one line: `main  busy streaming  active  2 queued  process 4711`. */
export function statusLine(status: Status, style: Style = makeStyle(false)): string {
  const { session, state, phase, attempt, message, lifecycle, task, delivery } = status;
  const { queued, waiting, owner, children = [], damage } = status;
  const standing = [state, phase, attempt].filter((word) => word !== undefined).join(' ');
  const words = [
    [lifecycle, task, delivery].filter((word) => word !== undefined).join(' '),
    ...(queued > 0 ? [`${queued} queued`] : []),
    ...waiting.map(
      ({ toolCallId, name, input, for: awaited }) =>
        `${name} ${awaitedOf[awaited]}: ${toolCallId} ${oneLine(JSON.stringify(input), inputMax)}`,
    ),
    ...(children.length === 0
      ? []
      : [`${children.length} ${children.length === 1 ? 'child' : 'children'} unfinished`]),
    ...children
      .filter((child) => child.waiting.length > 0)
      .map((child) => `${child.session} waits: tape status ${child.session}`),
    ...(state === 'interrupted' ? [`continue it with: tape recover ${session}`] : []),
    ...(owner?.pid === undefined ? [] : [`process ${owner.pid}`]),
    ...(message === undefined ? [] : [message]),
    ...(damage === undefined ? [] : [`damaged: ${damage}`]),
  ];
  const rest = words.map((word) => safe(word).replace(/\s*\n\s*/g, ' '));
  return [style.text('bold', safe(session)), painted(style, standing), ...rest].join('  ');
}

/** Prints the status of sessions: one line each, or JSON. */
export async function printStatuses(
  statuses: readonly Status[],
  { io, options, style }: Context,
): Promise<void> {
  if (options.json === true) {
    await io.out(`${jsonText(statuses.map(statusJson))}\n`);
    return;
  }
  for (const status of statuses) {
    if (options.jsonl === true) await io.out(`${jsonText(statusJson(status))}\n`);
    else await io.out(`${options.quiet === true ? status.session : statusLine(status, style)}\n`);
  }
}
