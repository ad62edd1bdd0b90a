import type { SessionInfo } from '@tapedeck/tape';
import { isoTime } from '@tapedeck/tape/internal';
import { oneLine } from '../escape.ts';
import { relativeTime } from '../terminal/time.ts';
import { table } from './table.ts';

/** A session as `--json` prints it; part of the documented contract. */
export function sessionJson(info: SessionInfo): Readonly<Record<string, unknown>> {
  return {
    session: info.session,
    id: info.id,
    kind: info.kind,
    lifecycle: info.lifecycle,
    ...(info.task !== undefined && { task: info.task }),
    ...(info.delivery !== undefined && { delivery: info.delivery }),
    ...(info.parent !== undefined && { parent: info.parent, from_anchor: info.fromAnchor ?? null }),
    ...(info.mergedAt !== undefined && { merged_at: isoTime(info.mergedAt) }),
    ...(info.title !== undefined && { title: info.title }),
    ...(info.aliases.length > 0 && { aliases: info.aliases }),
    ...(info.ephemeral && { ephemeral: true }),
    head: info.head,
    updated_at: isoTime(info.updatedAt),
    ...(info.lastMessageAt !== undefined && { last_message_at: isoTime(info.lastMessageAt) }),
  };
}

/** Maximum number of characters of a result in a table. */
const textWidth = 60;

/**
 * Sessions as a table: aligned on a terminal, separated by tabs in a pipe. `isCut` tells whether the process of a
 * session died during a run, `textOf` returns its result.
 */
export function sessionTable(
  sessions: readonly SessionInfo[],
  {
    terminal,
    isCut,
    textOf,
  }: {
    /** Undefined in a pipe. */
    readonly terminal: { readonly columns: number; readonly now: number } | undefined;
    readonly isCut: (info: SessionInfo) => boolean;
    readonly textOf?: ((info: SessionInfo) => string) | undefined;
  },
): string {
  const rows = sessions.map((s) => [
    s.session,
    s.kind,
    isCut(s) ? 'interrupted' : (s.delivery ?? s.task ?? s.lifecycle),
    `@${s.head}`,
    s.parent === undefined ? '' : `${s.parent}${s.fromAnchor === undefined ? '' : ` ⚓ ${s.fromAnchor}`}`,
    terminal === undefined
      ? isoTime(s.lastMessageAt ?? s.createdAt).slice(0, 19)
      : relativeTime(s.lastMessageAt ?? s.createdAt, terminal.now),
    ...(textOf === undefined ? [] : [oneLine(textOf(s), textWidth)]),
  ]);
  return table(rows, { aligned: terminal !== undefined, ...(terminal && { width: terminal.columns }) });
}
