import type { Meta } from '@tapedeck/tape';
import { traceparentOf } from '../telemetry/runs.ts';
import { spanHere } from '../telemetry/span.ts';
import type { RunOrder, RunSpec } from './engine.ts';
import { type DelegateOptions, type DelegateTask, settingsOf } from './options.ts';
import type { Delegator } from './parts.ts';

/** A run for another process. */
export type OrderedRun = RunSpec & { readonly order: RunOrder };

/** What a task asks of the run of its child. */
interface Asked {
  readonly task: DelegateTask<unknown>;
  readonly options: DelegateOptions<unknown>;
  /** See `Forked.senders`. */
  readonly senders?: readonly string[] | undefined;
  /** See `RunOrder.traceparent`. */
  readonly traceparent?: string | undefined;
}

/** The meta of the message of a child that is resumed. Pure. */
export function messageMeta(parent: Pick<Delegator, 'name'>, { task, senders = [] }: Asked): Meta {
  const { key, resume } = task;
  return {
    ...(resume !== undefined && key !== undefined && { task_key: key }),
    ...(senders.length > 0 && { by: { agent: parent.name, senders } }),
  };
}

/** The run of a child that another process carries out. Pure. */
export function orderedRun(
  parent: Pick<Delegator, 'name' | 'id'>,
  child: { readonly session: string; readonly id: string; readonly depth: number },
  asked: Asked,
): OrderedRun {
  const { task, options, traceparent } = asked;
  const { key, resume, priority } = task;
  const model = task.model ?? options.model;
  const settings = settingsOf(task, options);
  const own = {
    ...(typeof model === 'string' && { model }),
    ...(settings !== undefined && { settings }),
    ...(options.useTools !== undefined && { useTools: options.useTools }),
    ...(options.maxSteps !== undefined && { maxSteps: options.maxSteps }),
  };
  return {
    id: child.session,
    parent: parent.name,
    depth: child.depth,
    ...(priority !== undefined && { priority }),
    order: {
      session: child.id,
      parent: parent.id,
      ...(traceparent !== undefined && { traceparent }),
      ...(Object.keys(own).length > 0 && { options: own }),
      ...(resume !== undefined &&
        key !== undefined && { message: { text: task.task, key, meta: messageMeta(parent, asked) } }),
      ...(isSpecial(options) && { isMergedByStarter: true }),
    },
  };
}

/** The span of the running code, for the runs that it starts elsewhere. */
export async function traceparentHere(): Promise<string | undefined> {
  const span = await spanHere();
  return span === undefined ? undefined : traceparentOf(span);
}

/** Whether the options of a delegation say something of its merges that no tape has. */
function isSpecial({ order, strategy, onConflict, at }: DelegateOptions<unknown>): boolean {
  return order === 'spawn' || typeof strategy === 'function' || onConflict !== undefined || at !== undefined;
}
