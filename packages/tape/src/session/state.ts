import { crashPoint } from '../crash-point.ts';
import { TapeError } from '../errors.ts';
import { recordLineage } from '../lineage/outbox.ts';
import type { Writer } from '../tape/append.ts';
import {
  assertStatus,
  isDeleted,
  type Lifecycle,
  lifecycles,
  notActive,
  type TapeRow,
  type Task,
  tasks,
} from '../tape/tape.ts';
import { freeNames, reclaimNames } from './names.ts';
import { tellParent, tellsParent } from './notify.ts';

/**
 * Sets a session's lifecycle, with a lineage line; no change if it has that lifecycle. A session that is deleted
 * (`destroyed`) gives up its names; one that is brought back gets them again.
 * @throws TAPE_BAD_STATUS, also for `purged`, which a purge alone sets; TAPE_ARCHIVED for a session that was purged;
 * TAPE_EXISTS when something else has a name of the session now
 */
export function setLifecycle(
  writer: Writer,
  tape: TapeRow,
  { lifecycle, epoch }: { readonly lifecycle: Lifecycle; readonly epoch: number },
): TapeRow {
  const act = `set the lifecycle of '${tape.name}' to`;
  assertStatus(act, lifecycle, lifecycles);
  if (tape.lifecycle === lifecycle) return tape;
  if (tape.lifecycle === 'purged')
    throw notActive({ session: tape.name, id: tape.ulid, lifecycle: tape.lifecycle }, `${act} ${lifecycle}`);
  if (lifecycle === 'purged')
    throw new TapeError('TAPE_BAD_STATUS', `cannot ${act} purged: sessions.purge erases its content`, {
      data: { value: lifecycle, allowed: lifecycles.filter((one) => one !== 'purged') },
    });
  return moveLifecycle(writer, tape, { lifecycle, epoch });
}

/** Sets another lifecycle, and gives up the names of the session or takes them again. */
export function moveLifecycle(
  writer: Writer,
  tape: TapeRow,
  { lifecycle, epoch }: { readonly lifecycle: Lifecycle; readonly epoch: number },
): TapeRow {
  if (isDeleted({ lifecycle })) freeNames(writer, tape);
  else if (isDeleted(tape)) reclaimNames(writer, tape);
  const type = lifecycle === 'archived' ? 'archive' : 'status';
  return setState(writer, tape, { column: 'lifecycle', value: lifecycle, type, epoch });
}

/**
 * Sets a child's task state, with a lineage line, and notifies the parent of its end if the fork requested that. Only
 * runs call this.
 * @throws TAPE_BAD_STATUS
 */
export function setTask(
  writer: Writer,
  tape: TapeRow,
  { task, epoch }: { readonly task: Task; readonly epoch: number },
): TapeRow {
  const changed = setState(writer, tape, { column: 'task', value: task, type: 'status', epoch });
  if (tape.task !== task && tellsParent(writer, changed, task)) tellParent(writer, changed, task);
  return changed;
}

interface StateChange {
  readonly column: 'lifecycle' | 'task';
  readonly value: Lifecycle | Task;
  readonly type: 'archive' | 'status';
  /** The epoch to write under. */
  readonly epoch: number;
}

function setState(writer: Writer, tape: TapeRow, { column, value, type, epoch }: StateChange): TapeRow {
  assertStatus(`set the ${column} of '${tape.name}' to`, value, column === 'task' ? tasks : lifecycles);
  if (tape[column] === value) return tape;
  // Raises the epoch, like every write without a lease, so that an owner whose lease expired can no longer
  // write.
  const now = writer.sources.now();
  writer.db.run(`UPDATE tape SET ${column} = @value, epoch = @epoch, updated_at = @now WHERE id = @id`, {
    id: tape.id,
    value,
    epoch,
    now,
  });
  crashPoint('status/row');
  const changed: TapeRow = { ...tape, [column]: value, epoch, updated_at: now };
  recordLineage(writer, changed, { type, childHead: changed.head_hash });
  crashPoint('status/lineage');
  return changed;
}
