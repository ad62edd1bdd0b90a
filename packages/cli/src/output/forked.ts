import type { Forked } from '@tapedeck/tape';
import { commandLine } from '../escape.ts';
import { counted } from './counted.ts';

/** The receipt of a fork or a branch as `--json` prints it; part of the documented contract. */
export function forkedJson(forked: Forked): Readonly<Record<string, unknown>> {
  return {
    session: forked.session,
    tape: forked.tape,
    parent: forked.parent,
    from_anchor: forked.fromAnchor,
    base: forked.base,
    range: forked.range,
    ...(forked.snappedFrom !== undefined && { snapped_from: forked.snappedFrom }),
    repeated: forked.repeated,
  };
}

/** The receipt of a fork or a branch as text. */
export function forkedLine(
  { session, parent, range, snappedFrom, repeated }: Forked,
  {
    done,
    workspace,
    next = `Run it with: ${commandLine('run', [session])}`,
    undo,
  }: {
    readonly done: string;
    readonly workspace?: string | undefined;
    /** What the user can do now. */
    readonly next?: string;
    /** The command that takes it back. */
    readonly undo?: string;
  },
): string {
  const what =
    range === null
      ? `inherits nothing of ${parent}`
      : `inherits ${parent} ${range[0]}-${range[1]} (${counted(range[1] - range[0] + 1, 'entry', 'entries')})`;
  const snapped =
    snappedFrom === undefined ? '' : `; snapped back from @${snappedFrom}, where tool calls are open`;
  const where = workspace === undefined ? '' : `\nIts worktree is ${workspace}`;
  const back = undo === undefined || repeated ? '' : ` (undo with: ${undo})`;
  return `${repeated ? 'Already exists:' : done} ${session} ${what}${snapped}${where}\n${next}${back}`;
}
