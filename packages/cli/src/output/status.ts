/**
 * Formats values of the library for stdout: as JSON of the contract (`…Json`) and as text (`…Line`,
 * `…Table`). No file here opens a store or has the logic of a verb. May import `context`, `graph-file`, `home`,
 * `progress-line`, `io`, `errors`, `escape`, `terminal` and `exit`.
 */

import { stripVTControlCharacters } from 'node:util';
import type { Status } from '@tapedeck/runtime';
import type { Context } from '../context.ts';
import { commandLine, jsonText, oneLine, safe } from '../escape.ts';
import { textWidth } from '../terminal/width.ts';
import { wrapText } from '../terminal/wrap.ts';
import { awaitedOf, inputMax, toolHint } from './run.ts';
import { painted } from './session.ts';

/** The status of a session as `--json` prints it; part of the documented contract. */
export function statusJson(status: Status): Readonly<Record<string, unknown>> {
  const { session, state, phase, run, startedAt, servers, attempt, message } = status;
  const { lifecycle, task, delivery, queued, waiting, owner, children, damage } = status;
  return {
    session,
    state,
    ...(phase !== undefined && { phase }),
    ...(run !== undefined && { run }),
    ...(startedAt !== undefined && { started_at: new Date(startedAt).toISOString() }),
    ...(servers !== undefined && { servers }),
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
  return waiting.map(({ toolCallId, name, input, for: awaited, claims, offers, askedFor }) => ({
    call: toolCallId,
    tool: name,
    input,
    for: awaited,
    ...(claims !== undefined && { claims }),
    ...(offers !== undefined && { offers }),
    ...(askedFor !== undefined && { asked_for: askedFor }),
  }));
}

/** The status of a session on one line: `main  busy, streaming  lifecycle active  2 queued  process 4711`. */
export function statusLine(status: Status, context: Pick<Context, 'inHome'>): string {
  return statusParts(status, context).join('  ');
}

function paintedLine(status: Status, context: Pick<Context, 'inHome' | 'style'>): string {
  const [name = '', standing = '', ...others] = statusParts(status, context);
  const { style } = context;
  return [style.text('bold', name), painted(style, standing), ...others].join('  ');
}

/** The same on as many lines of a terminal as it takes: what has no room is on lines of its own. */
function statusRows(
  status: Status,
  { io: { columns }, ...context }: Pick<Context, 'io' | 'style' | 'inHome'>,
): string {
  const { style } = context;
  const [name = '', standing = '', ...others] = statusParts(status, context);
  const fits = textWidth(`${name}  ${standing}`) <= columns;
  // The name stays whole, so that it can be typed.
  const rows: string[] = fits ? [] : [style.text('bold', name)];
  let row = `${fits ? style.text('bold', name) : ''}  ${painted(style, standing)}`;
  let used = textWidth(stripVTControlCharacters(row));
  for (const part of others) {
    if (used + 2 + textWidth(part) <= columns) row += `  ${part}`;
    else {
      const broken = wrapText(part, columns - 2).map((line) => `  ${line}`);
      rows.push(row, ...broken.slice(0, -1));
      row = broken.at(-1) ?? '';
    }
    used = textWidth(stripVTControlCharacters(row));
  }
  return [...rows, row].join('\n');
}

function statusParts(status: Status, { inHome }: Pick<Context, 'inHome'>): readonly string[] {
  const { session, state, phase, attempt, message, lifecycle, task, delivery } = status;
  const { queued, waiting, owner, children = [], servers = [], damage } = status;
  const standing = [state, phase, ...(attempt === undefined ? [] : [`attempt ${attempt}`])];
  const axes = { lifecycle, task, delivery };
  const named = Object.entries(axes).flatMap(([axis, word]) => (word === undefined ? [] : `${axis} ${word}`));
  const parts = [
    session,
    standing.filter((word) => word !== undefined).join(', '),
    named.join(', '),
    ...(queued > 0 ? [`${queued} queued`] : []),
    ...waiting.map(
      ({ toolCallId, name, input, for: awaited }) =>
        `${name} ${awaitedOf[awaited]}: ${toolCallId} ${oneLine(JSON.stringify(input), inputMax)}`,
    ),
    ...(children.length === 0
      ? []
      : [`${children.length} ${children.length === 1 ? 'child' : 'children'} unfinished`]),
    ...children.flatMap((child) => child.waiting.flatMap((call) => waitingBelow(child.session, call))),
    ...[{ session, waiting }, ...children]
      .filter((one) => one.waiting.some((call) => call.for === 'tool'))
      .map((one) => inHome(toolHint(one.session))),
    ...(state === 'interrupted' ? [inHome(`continue it with: ${commandLine('recover', [session])}`)] : []),
    ...(servers.length === 0 ? [] : [`MCP ${servers.join(', ')}`]),
    ...(owner?.pid === undefined ? [] : [`process ${owner.pid}`]),
    ...(message === undefined ? [] : [message]),
    ...(damage === undefined ? [] : [`damaged: ${damage}`]),
  ];
  return parts.map((part) => safe(part).replace(/\s*\n\s*/g, ' '));
}

/** A call of a session below that waits for an answer. */
function waitingBelow(
  session: string,
  { name, toolCallId, for: awaited }: Status['waiting'][number],
): string[] {
  if (awaited === 'children') return [];
  return [`${name} of ${session} ${awaitedOf[awaited]}: ${session}/${toolCallId}`];
}

/** Prints the status of sessions: one line each, or JSON. */
export async function printStatuses(statuses: readonly Status[], context: Context): Promise<void> {
  const { io, options } = context;
  if (options.json === true) {
    await io.out(`${jsonText(statuses.map(statusJson))}\n`);
    return;
  }
  for (const status of statuses) {
    if (options.jsonl === true) await io.out(`${jsonText(statusJson(status))}\n`);
    else if (options.quiet === true) await io.out(`${status.session}\n`);
    else await io.out(`${io.isTerminal ? statusRows(status, context) : paintedLine(status, context)}\n`);
  }
}
