import { importedEvent } from './import-source.ts';
import type { JsonObject } from './json.ts';

/**
 * Returns when an entry of an import happened at its source, in milliseconds since the epoch: `meta.timestamp`, in the
 * form of ISO 8601, where `meta.source` is `import`, or `merge` for a merge that an import found. Undefined for other
 * entries, and for a text that is no time: they happened when they were recorded.
 */
export function sourceTime(meta: JsonObject | undefined): number | undefined {
  if (meta?.source !== 'import' && meta?.source !== 'merge') return undefined;
  if (typeof meta.timestamp !== 'string') return undefined;
  if (!isoTime.test(meta.timestamp)) return undefined;
  const time = Date.parse(meta.timestamp);
  return Number.isNaN(time) ? undefined : time;
}

/**
 * Returns when something was said by an entry of a session: a message, or the event of an import that says when the last
 * message was that a fork inherits of its own conversation. Undefined for other entries.
 */
export function spokenTime({
  kind,
  name,
  at,
  sourceAt,
}: {
  readonly kind: string;
  readonly name: string | null;
  readonly at: number;
  readonly sourceAt: number | undefined;
}): number | undefined {
  if (kind === 'message') return sourceAt ?? at;
  return kind === 'event' && name === importedEvent ? sourceAt : undefined;
}

/**
 * What stays of the meta of an entry of an import when its content is erased: when its source said it, and in answer to which
 * request. It says nothing of the content, and a copy of the entry is known by it. Undefined for other entries.
 */
export function leftOfSource({ source, timestamp, requestId, model }: JsonObject): JsonObject | undefined {
  if (source !== 'import') return undefined;
  const left = {
    ...(typeof timestamp === 'string' && { timestamp }),
    ...(typeof requestId === 'string' && { requestId }),
    ...(typeof model === 'string' && { model }),
  };
  return Object.keys(left).length === 0 ? undefined : left;
}

/** `Date.parse` accepts much more than ISO 8601, and then depends on the time zone of the machine. */
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;
