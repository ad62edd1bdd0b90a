import { type HomeStore, type SessionInfo, TapeError } from '@tapedeck/tape';
import { sha256 } from '@tapedeck/tape/store';
import { oneLine } from '../escape.ts';

/** What a `tape delegate` command names its children by. */
export interface Naming {
  /** `--key`; without it, the text of each task is the key. */
  readonly key?: string | undefined;
  /** `--again`: new children, unless the last ones that the command made are not over. */
  readonly again: boolean;
}

/** The spawn key of a task, and the child that has it, if there is one. */
export interface KeyedTask {
  readonly key: string;
  readonly child?: SessionInfo;
}

/**
 * The spawn keys of the tasks of a command, in their order. The same tasks, or the same `--key`, give the same
 * children: a command that was killed finds those that it had made. The children of `--again` are a further round of
 * them. Without it each task means its newest child.
 */
export function keysOf(
  store: HomeStore,
  parent: string,
  tasks: readonly string[],
  { key, again }: Naming,
): readonly KeyedTask[] {
  const keys = key === undefined ? textKeys(tasks) : tasks.map((_, i) => `delegate:${key}:${i + 1}`);
  const rounds: (readonly KeyedTask[])[] = [];
  for (let round = 1; ; round += 1) {
    const found = keys.map((one) => keyed(store, parent, round === 1 ? one : `${one}#${round}`));
    const isMade = found.some(({ child }) => child !== undefined);
    if (isMade) rounds.push(found);
    else if (round === 1) return found;
    else return again ? repetition(rounds.at(-1) ?? found, found) : newest(rounds);
  }
}

/**
 * The error of a task whose child was forked for something else, with the task and the key of the command in place of
 * the spawn key. Other errors are returned as they are.
 */
export function asTaskConflict(
  error: unknown,
  keyed: readonly { readonly key: string; readonly task: string }[],
  { key }: Pick<Naming, 'key'>,
): unknown {
  if (!(error instanceof TapeError) || error.code !== 'TAPE_KEY_CONFLICT') return error;
  const { parent, session } = error.data;
  const task = keyed.find((one) => one.key === error.data.key)?.task;
  if (task === undefined) return error;
  const under = key === undefined ? '' : ` under key ${JSON.stringify(key)}`;
  const other = key === undefined ? 'other options' : 'another task or other options';
  return new TapeError(
    'TAPE_KEY_CONFLICT',
    `cannot delegate ${JSON.stringify(oneLine(task, taskMax))} of '${parent}'${under}: child '${session}' was forked for it with ${other}`,
    { data: { parent, session, task, ...(key !== undefined && { key }) }, cause: error },
  );
}

/** Maximum number of characters of a task in a message. */
const taskMax = 200;

/** The last round, as long as a child of it is missing or has work or a merge to do, else the new one. */
function repetition(last: readonly KeyedTask[], next: readonly KeyedTask[]): readonly KeyedTask[] {
  return last.every(({ child }) => child !== undefined && isOver(child)) ? next : last;
}

/** For each task its newest child. */
function newest(rounds: readonly (readonly KeyedTask[])[]): readonly KeyedTask[] {
  const [first = []] = rounds;
  return first.map((none, i) => rounds.findLast((found) => found[i]?.child !== undefined)?.[i] ?? none);
}

/** Whether a delegation has nothing left to do for a child. */
function isOver({ task, delivery, lifecycle }: SessionInfo): boolean {
  return lifecycle !== 'active' || (task !== undefined && task !== 'running' && delivery !== undefined);
}

function keyed(store: HomeStore, parent: string, key: string): KeyedTask {
  const [child] = store.sessions.list({ parent, key, all: true });
  return { key, ...(child !== undefined && { child }) };
}

/** A text that occurs twice in a command is two tasks. */
function textKeys(tasks: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  return tasks.map((task) => {
    const digest = sha256(task);
    const count = (counts.get(digest) ?? 0) + 1;
    counts.set(digest, count);
    return `task:${digest}${count === 1 ? '' : `:${count}`}`;
  });
}
