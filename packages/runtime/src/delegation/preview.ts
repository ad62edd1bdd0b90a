import { assertActive } from '@tapedeck/tape/internal';
import type { ForkPreview } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';
import { assertModels, assertTasks, assertTools, type Delegated, forkOptions } from './options.ts';
import { assertOpen, type DelegationParts, type Delegator } from './parts.ts';
import { previewForks } from './spawn.ts';

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
  const { tasks, options } = delegated;
  assertOpen(parts, 'delegate from', parent.name);
  assertTasks(parent.name, delegated);
  const info = await parent.info();
  assertActive(info, 'delegate from');
  assertTools(parts, parent, delegated);
  if (tasks.some(({ resume }) => resume !== undefined))
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot preview a task that resumes a child: it forks nothing`,
      {
        data: { session: parent.name },
      },
    );
  const line = await parts.worker(info).line(info);
  await assertModels(parts, line[0], delegated);
  const { by } = options;
  return await previewForks(
    parts,
    line,
    tasks.map((task) => ({ options: forkOptions(task, options, by?.blocking === true), by })),
  );
}
