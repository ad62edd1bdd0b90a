import type { Status } from '@tapedeck/runtime';
import type { SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { commandLine } from '../escape.ts';
import { relativeTime } from '../terminal/time.ts';
import { cutText } from '../terminal/width.ts';
import { counted } from './counted.ts';
import { isAnswerable, toolCommand } from './run.ts';
import { painted, sessionJson, stateOf, withSource } from './session.ts';
import { sessionsTable } from './sessions.ts';
import { statusJson, statusLine } from './status.ts';
import { table } from './table.ts';

/** A child that ended, and how. */
export interface Ended {
  readonly session: string;
  readonly parent: string;
  readonly status: string;
  /** The status for people: of a merged child that did not complete, that too. */
  readonly state: string;
  /** ISO 8601. */
  readonly at: string;
}

/** A home at one look. */
export interface Overview {
  readonly running: readonly Status[];
  /** Those with calls that wait for an answer. */
  readonly waiting: readonly Status[];
  /** Those whose process died during a run. */
  readonly interrupted: readonly Status[];
  readonly ended: readonly Ended[];
  /** Number of ended children beside these. */
  readonly more: number;
  readonly recent: readonly { readonly info: SessionInfo; readonly about: string }[];
  /** Number of sessions beside these. */
  readonly others: number;
}

/** An overview as `--json` prints it; part of the documented contract. */
export function overviewJson(overview: Overview): Readonly<Record<string, unknown>> {
  const { running, waiting, interrupted, ended, more, recent } = overview;
  return {
    running: running.map(statusJson),
    waiting: waiting.map(statusJson),
    interrupted: interrupted.map(statusJson),
    ended: ended.map(({ session, parent, status, at }) => ({ session, parent, status, at })),
    ended_more: more,
    recent: recent.map(({ info }) => sessionJson(info)),
  };
}

/** How an overview looks, and how much of a name tells it from the others of the home. */
interface Look extends Pick<Context, 'io' | 'style' | 'link' | 'inHome'> {
  readonly distinct?: (name: string) => number;
}

/** An overview for people: only the parts that have something. */
export function overviewText(overview: Overview, context: Look): string {
  const { io, style, inHome } = context;
  const { running, waiting, interrupted, ended, more, recent, others } = overview;
  const part = (heading: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [style.text('bold', heading), ...lines.map((line) => `  ${line}`), ''];
  const row = (status: Status) => {
    const line = cutText(statusLine(status, context), io.columns - 2);
    const { length } = status.session;
    return style.text('bold', line.slice(0, length)) + line.slice(length);
  };
  const answers = waiting.map((status) => inHome(answerOf(status)));
  const parts = [
    ...part('Running', running.map(row)),
    ...part('Waiting for you', [...waiting.map(row), ...answers.map((line) => style.text('dim', line))]),
    ...part('Interrupted', interrupted.map(row)),
    ...part('Children that ended', [
      ...endedRows(ended, context),
      ...(more === 0 ? [] : [`and ${counted(more, 'other')}`]),
    ]),
  ];
  const states = new Map([...running, ...waiting, ...interrupted].map((one) => [one.session, one.state]));
  const listed = recent.map(({ info, about }) => {
    const state = withSource(states.get(info.session) ?? stateOf(info), info);
    return { info, about, branch: '', state };
  });
  const sessions = recent.length === 0 ? 'No sessions' : sessionsTable(listed, context);
  const rest =
    others === 0 ? [] : [style.text('dim', inHome(`… ${others.toLocaleString('en')} more (tape sessions)`))];
  return [...parts, sessions, ...rest, ''].join('\n');
}

/** The command that lets a waiting session go on: an answer, or a run with the tools of its approved calls. */
function answerOf(status: Status): string {
  const { session, children = [] } = status;
  const all = [status, ...children];
  const lackTool = all.filter(({ waiting }) => waiting.some((call) => call.for === 'tool'));
  return lackTool.length === 0 || all.some(({ waiting }) => waiting.some(isAnswerable))
    ? commandLine('approve', [session])
    : toolCommand(
        session,
        lackTool.map((one) => one.session),
      );
}

function endedRows(ended: readonly Ended[], { io, style, distinct }: Look): readonly string[] {
  if (ended.length === 0) return [];
  const rows = ended.map(({ session, parent, state, at }) => [
    session,
    state,
    `of ${parent}`,
    relativeTime(Date.parse(at), io.now()),
  ]);
  const paint = (cell: string, column: number) =>
    column === 0 ? style.text('bold', cell) : column === 1 ? painted(style, cell) : style.text('dim', cell);
  return table({ rows, names: [0], distinct, width: io.columns - 2, paint }).split('\n');
}
