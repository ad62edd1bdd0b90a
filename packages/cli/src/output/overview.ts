import type { Status } from '@tapedeck/runtime';
import type { SessionInfo } from '@tapedeck/tape';
import type { Context } from '../context.ts';
import { oneLine } from '../escape.ts';
import { relativeTime } from '../terminal/time.ts';
import { counted } from './counted.ts';
import { sessionJson, stateOf } from './session.ts';
import { sessionsTable } from './sessions.ts';
import { statusJson, statusLine } from './status.ts';

/** A child that ended, and how. */
export interface Ended {
  readonly session: string;
  readonly parent: string;
  readonly status: string;
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
}

/** An overview as `--json` prints it; part of the documented contract. */
export function overviewJson(overview: Overview): Readonly<Record<string, unknown>> {
  const { running, waiting, interrupted, ended, more, recent } = overview;
  return {
    running: running.map(statusJson),
    waiting: waiting.map(statusJson),
    interrupted: interrupted.map(statusJson),
    ended,
    ended_more: more,
    recent: recent.map(({ info }) => sessionJson(info)),
  };
}

/** An overview for people: only the parts that have something. */
export function overviewText(overview: Overview, context: Pick<Context, 'io' | 'style' | 'link'>): string {
  const { io, style } = context;
  const { running, waiting, interrupted, ended, more, recent } = overview;
  const part = (heading: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [style.text('bold', heading), ...lines.map((line) => `  ${line}`), ''];
  const row = (text: string) => oneLine(text, io.columns - 2);
  const answers = waiting.map(({ session }) => `tape approve ${session}`);
  const parts = [
    ...part(
      'Running',
      running.map((status) => row(statusLine(status))),
    ),
    ...part('Waiting for you', [
      ...waiting.map((status) => row(statusLine(status))),
      ...answers.map((line) => style.text('dim', line)),
    ]),
    ...part(
      'Interrupted',
      interrupted.map((status) => row(statusLine(status))),
    ),
    ...part('Children that ended', [
      ...ended.map(({ session, parent, status, at }) =>
        row(`${session} of ${parent}  ${status}  ${relativeTime(Date.parse(at), io.now())}`),
      ),
      ...(more === 0 ? [] : [`and ${counted(more, 'other')}`]),
    ]),
  ];
  const listed = recent.map(({ info, about }) => ({ info, about, depth: 0, state: stateOf(info) }));
  const sessions = recent.length === 0 ? 'No sessions' : sessionsTable(listed, context);
  return [...parts, sessions, ''].join('\n');
}
