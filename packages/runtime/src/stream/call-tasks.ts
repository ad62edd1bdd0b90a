import type { Json, SessionInfo } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The key of a task of a delegating call, by its place. The call is known by where its session is settled. */
export function taskKey({ settled }: Pick<SessionInfo, 'settled'>, toolCallId: string, i: number): string {
  return `${settled}:${toolCallId}:${i + 1}`;
}

/** A task of a call; `resume`: the name of the child that continues with it. */
interface TaskInput {
  readonly task: string;
  readonly resume?: string;
}

/** The tasks of a call of `delegateTool`; undefined for other tools. */
export function tasksIn(input: Json): readonly TaskInput[] | undefined {
  if (!isObject(input) || !Array.isArray(input.tasks)) return undefined;
  const tasks = input.tasks.flatMap((one): readonly TaskInput[] => {
    if (!isObject(one) || typeof one.task !== 'string') return [];
    return [{ task: one.task, ...(typeof one.resume === 'string' && { resume: one.resume }) }];
  });
  return tasks.length === input.tasks.length ? tasks : undefined;
}
