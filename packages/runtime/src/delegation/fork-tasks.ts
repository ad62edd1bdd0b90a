import type { SessionInfo } from '@tapedeck/tape';
import { assertActive } from '@tapedeck/tape/internal';
import type { ForkPreview } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import type { Ancestry } from '../terms/terms.ts';
import { depthOf } from './fork-limits.ts';
import {
  assertElsewhere,
  assertModels,
  assertTasks,
  assertTools,
  type Delegated,
  type DelegateTask,
  forkOptions,
} from './options.ts';
import { assertOpen, type DelegationParts, type Delegator } from './parts.ts';
import { orderedRun, traceparentHere } from './run-spec.ts';
import { previewForks, sendersOfRun, spawn } from './spawn.ts';

/** The child of a task. */
export interface Forked {
  readonly child: Delegator;
  readonly task: DelegateTask<unknown>;
  /** The number of forks between the child and its root, branches not counted. */
  readonly depth: number;
  /** Its start was committed with its fork. */
  readonly isStarted?: true;
  /** Set for a child that its key had made before. */
  readonly earlier: { readonly repeated?: true };
  /** The ULIDs of the sessions whose rules bind the task of a child that is resumed, beside those of its line. */
  readonly senders?: readonly string[];
}

/**
 * Makes the checks of a delegation that need no fork, and returns the line of the parent.
 * @throws SESSION_CLOSED, SESSION_BAD_INPUT, TAPE_ARCHIVED, and the errors of models
 */
export async function lineFor(
  parts: DelegationParts,
  parent: Delegator,
  delegated: Delegated,
): Promise<Ancestry> {
  assertOpen(parts, 'delegate from', parent.name);
  assertTasks(parent.name, delegated);
  const info = await parent.info();
  assertActive(info, 'delegate from');
  assertTools(parts, parent, delegated);
  assertElsewhere(parts, parent.name, delegated);
  const line = await parts.worker(info).line(info);
  await assertModels(parts, line[0], delegated);
  return line;
}

/**
 * Makes the checks of a delegation, and returns what the fork of each task would write. Writes nothing, and calls no
 * model.
 * @throws the errors of the delegation before its first fork; SESSION_BAD_INPUT for a task that resumes a child, which
 *   forks nothing
 */
export async function previewDelegation(
  parts: DelegationParts,
  parent: Delegator,
  delegated: Delegated,
): Promise<readonly ForkPreview[]> {
  const line = await lineFor(parts, parent, delegated);
  if (delegated.tasks.some(({ resume }) => resume !== undefined))
    throw new SessionError(
      'SESSION_BAD_INPUT',
      'cannot preview a task that resumes a child: it forks nothing',
      { data: { session: parent.name } },
    );
  return await previewForks(parts, line, forksOf(delegated));
}

/** Forks the child of each task, or finds it. All tasks are checked first: either all children are forked or none. */
export async function forkTasks(
  parts: DelegationParts,
  line: Ancestry,
  { delegated, onForked }: { readonly delegated: Delegated; readonly onForked: (one: Forked) => void },
): Promise<readonly Forked[]> {
  const { tasks } = delegated;
  if (tasks.length > 1) {
    for (const { resume } of tasks) if (resume !== undefined) await resumed(parts, line[0].info, resume);
    await previewForks(parts, line, forksOf(delegated));
  }
  const forked: Forked[] = [];
  for (const task of tasks) {
    const one = await childFor(parts, line, { task, delegated });
    onForked(one);
    forked.push(one);
  }
  return forked;
}

function forksOf({ tasks, options }: Delegated): Parameters<typeof previewForks>[2] {
  const { by } = options;
  return tasks
    .filter(({ resume }) => resume === undefined)
    .map((task) => ({ options: forkOptions(task, options, by?.blocking === true), by }));
}

/** The row of a child to resume. */
async function resumed({ store }: DelegationParts, parent: SessionInfo, ref: string): Promise<SessionInfo> {
  const info = await store.sessions.find(ref);
  if (info?.parentId !== parent.id)
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot resume '${ref}': it is not a child of '${parent.session}'`,
      { data: { session: parent.session, child: ref } },
    );
  if (info.delivery === 'discarded')
    throw new SessionError('SESSION_ENDED', `cannot resume '${ref}': it was discarded`, {
      data: { session: ref },
    });
  assertActive(info, 'resume');
  return info;
}

async function childFor(
  parts: DelegationParts,
  line: Ancestry,
  { task, delegated: { options } }: { readonly task: DelegateTask<unknown>; readonly delegated: Delegated },
): Promise<Forked> {
  const { by } = options;
  if (task.resume !== undefined) {
    const info = await resumed(parts, line[0].info, task.resume);
    const facts = await parts.worker(info).facts(info);
    const child = parts.child(info, { onUnmerged: 'keep', output: task.output ?? options.output });
    const senders = await sendersOfRun(parts, line[0], by);
    // The key says in another process whether the tape has the message.
    const key = task.key ?? (parts.engine.isElsewhere === true ? parts.newId() : undefined);
    const keyed = key === undefined ? task : { ...task, key };
    return { child, task: keyed, depth: depthOf([facts, ...line]), earlier: {}, senders };
  }
  const fork = forkOptions(task, options, by?.blocking === true);
  const depth = depthOf(line) + 1;
  const toStatement = await parts.engine.startBeside?.(depth);
  const [{ info: parent }] = line;
  const traceparent = toStatement === undefined ? undefined : await traceparentHere();
  const beside =
    toStatement === undefined
      ? undefined
      : ({ session, id }: Pick<SessionInfo, 'session' | 'id'>) =>
          toStatement(
            orderedRun(
              { name: parent.session, id: parent.id },
              { session, id, depth },
              { task, options, traceparent },
            ),
          );
  const { info, directory, repeated } = await spawn(parts, line, { options: fork, by, beside });
  const child = parts.child(info, { ...fork, directory, onUnmerged: 'keep' });
  const isStarted = beside !== undefined && !repeated ? ({ isStarted: true } as const) : {};
  return { child, task, depth, ...isStarted, earlier: repeated ? { repeated } : {} };
}
