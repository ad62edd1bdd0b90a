import { text } from '../text.ts';
import type { Path } from './path.ts';
import type { CodeRecord } from './records.ts';

/**
 * The session of a file, as its last records name it: the file of a forked session begins with records of the
 * original session. The file of a subagent carries its parent's session id, so its agent id is used.
 */
export function sessionOf({ steps }: Path, records: readonly CodeRecord[]): string | undefined {
  const agent = steps.at(-1)?.sidechain ? text(steps.at(-1)?.raw.agentId) : undefined;
  if (agent !== undefined) return `agent-${agent}`;
  const named = (record: CodeRecord): boolean => text(record.raw.sessionId) !== undefined;
  return text((steps.findLast(named) ?? records.findLast(named))?.raw.sessionId);
}

/**
 * The title: the user's, or else the model's, or else the last summary of a record in this file. Most
 * summaries in a file describe other sessions.
 */
export function titleOf(records: readonly CodeRecord[]): string | undefined {
  const last = (type: string, field: string): string | undefined =>
    text(
      records.findLast((record) => record.type === type && text(record.raw[field]) !== undefined)?.raw[field],
    );
  const ids = new Set(records.flatMap(({ id }) => id ?? []));
  const own = records.findLast(({ type, leaf }) => type === 'summary' && ids.has(leaf ?? ''));
  return last('custom-title', 'customTitle') ?? last('ai-title', 'aiTitle') ?? text(own?.raw.summary);
}
