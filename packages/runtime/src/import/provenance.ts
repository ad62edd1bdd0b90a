import type { Path } from './path.ts';
import { type CodeRecord, text } from './records.ts';

/**
 * The session a file belongs to, as it says near its end: a forked session's file begins with records of the
 * session it came from. A subagent's file carries its parent's id, so its own is taken.
 */
export function sessionOf({ steps }: Path, records: readonly CodeRecord[]): string | undefined {
  const agent = steps.at(-1)?.sidechain ? text(steps.at(-1)?.raw.agentId) : undefined;
  if (agent !== undefined) return `agent-${agent}`;
  const named = (record: CodeRecord): boolean => text(record.raw.sessionId) !== undefined;
  return text((steps.findLast(named) ?? records.findLast(named))?.raw.sessionId);
}

/**
 * The title: one a person gave, else the one a model wrote, else the last summary of a record in this file; most
 * summaries in a file are about other sessions.
 */
export function titleOf(records: readonly CodeRecord[]): string | undefined {
  const last = (type: string, field: string): string | undefined =>
    text(records.findLast(({ raw }) => raw.type === type && text(raw[field]) !== undefined)?.raw[field]);
  const ids = new Set(records.flatMap(({ id }) => id ?? []));
  const own = records.findLast(({ raw }) => raw.type === 'summary' && ids.has(text(raw.leafUuid) ?? ''));
  return last('custom-title', 'customTitle') ?? last('ai-title', 'aiTitle') ?? text(own?.raw.summary);
}
