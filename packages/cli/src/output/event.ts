import type { Json } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/**
 * An event in words: of a note of a run what happened and why, such as `aborted: interrupted`, and else its name with
 * its message, or with its payload if it has none.
 */
export function eventText(name: string, payload: Json): string {
  const { message, reason, title, calls } = isObject(payload) ? payload : {};
  if (name === 'session/title' && typeof title === 'string') return `title: ${title}`;
  if (name === 'call/answered' && isObject(payload)) {
    const answer = payload.approved === true ? 'approved' : 'denied';
    return said(`${answer} ${String(payload.toolCallId)}`, reason);
  }
  const [, run] = /^run\/([a-z]+)$/.exec(name) ?? [];
  if (run === undefined)
    return typeof message === 'string' ? `${name} ${message}` : `${name} ${JSON.stringify(payload)}`.trim();
  return said(run, message ?? reason ?? (Array.isArray(calls) ? calls.map(namedCall).join(', ') : undefined));
}

function said(what: string, why: Json | undefined): string {
  return typeof why === 'string' && why !== '' ? `${what}: ${why}` : what;
}

/** A pending call of a note by the name of its tool and what it waits for, or by its id alone. */
function namedCall(call: Json): string {
  const { toolCallId, toolName, for: awaited } = isObject(call) ? call : {};
  if (typeof toolName !== 'string') return String(toolCallId);
  return typeof awaited === 'string' ? `${toolName} (${awaited})` : toolName;
}
