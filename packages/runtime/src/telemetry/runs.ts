import type { SpanContext } from '@opentelemetry/api';
import { isTraced, type OpenSpan, type Scope, traced } from './span.ts';

/** Sessions of which the span of the last run is known. */
const runsMax = 1_000;

const lastRuns = new Map<string, SpanContext>();
const openRuns = new Map<string, Scope>();
const openCalls = new Map<string, Scope>();

/** Remembers the span of a run of a session, while it is open as the one to which others belong. */
export function rememberRun(session: string, span: OpenSpan): Disposable {
  lastRuns.delete(session);
  lastRuns.set(session, span.context);
  openRuns.set(session, span.scope);
  const [oldest] = lastRuns.keys();
  if (lastRuns.size > runsMax && oldest !== undefined) lastRuns.delete(oldest);
  return {
    [Symbol.dispose]: () => {
      if (openRuns.get(session) === span.scope) openRuns.delete(session);
    },
  };
}

/** The span of the last run of a session in this process. */
export function lastRun(session: string | undefined): SpanContext | undefined {
  return session === undefined ? undefined : lastRuns.get(session);
}

const keyOf = (session: string, call: string) => `${session}/${call}`;

/** Remembers the span of a call while it is open: the runs of the children that it starts are below it. */
export function rememberCall(call: string, span: OpenSpan): Disposable {
  const key = keyOf(span.scope.session ?? '', call);
  openCalls.set(key, span.scope);
  return { [Symbol.dispose]: () => void openCalls.delete(key) };
}

/** The open call of a session that started a child. */
export function openCall(session: string | undefined, call: string | undefined): Scope | undefined {
  return session === undefined || call === undefined ? undefined : openCalls.get(keyOf(session, call));
}

/** Records that children were merged into a session: a span of it, with links to their runs. Nothing without children. */
export async function traceMerge(parent: string | undefined, children: readonly string[]): Promise<void> {
  if (!isTraced() || parent === undefined || children.length === 0) return;
  const links = children.flatMap((child) => lastRun(child) ?? []);
  await traced(
    () => ({
      name: 'merge',
      session: parent,
      links,
      attributes: { 'tapedeck.children': [...children] },
      parent: openRuns.get(parent) ?? null,
    }),
    async () => {},
  );
}

/** A span as W3C Trace Context writes it, for a tape: `00-{trace}-{span}-{flags}`. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** The span that a tape names; undefined for another text. */
export function contextOf(traceparent: unknown): SpanContext | undefined {
  const [, traceId, spanId, flags] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(
      typeof traceparent === 'string' ? traceparent : '',
    ) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
