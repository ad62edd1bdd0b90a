import { on } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Problem } from '../check/problem.ts';
import { TapeError, type TapeErrorCode } from '../errors.ts';
import type { OnProgress, ProgressOptions } from '../progress.ts';
import type { Connection } from '../store/connection.ts';
import { assertOptions, fieldsOf } from '../store/options.ts';
import { countVerified, verifyAll, verifySession } from '../store/verify.ts';
import type { Address } from './address.ts';
import type { Runner } from './runner.ts';

/** What the thread begins with. */
export interface VerifyData {
  readonly url: string;
  /** The ULID of a session; without, all is verified. */
  readonly ref: string | undefined;
  readonly progress: boolean;
  /** How many of its messages were taken: it waits while many were not. */
  readonly taken: Int32Array<SharedArrayBuffer>;
}

/** What the thread says. An error loses its fields on the way between threads. */
export type Said =
  | { readonly problem: Problem }
  | { readonly done: number; readonly total: number }
  | { readonly failed: Pick<TapeError, 'message' | 'data'> & { readonly code?: TapeErrorCode } }
  | { readonly isOver: true };

/** What is verified in this thread, in entries: beside it, a session counts as twenty. */
const smallMax = 200;

/**
 * Verifies a session, or all. An act runs again for each answer, and a verification has many: one that is not small runs in
 * a thread that waits for its answers.
 */
export async function* verified(
  { runner, at, address }: { readonly runner: Runner; readonly at: Connection; readonly address: Address },
  ref: string | undefined,
  o: ProgressOptions,
): AsyncGenerator<Problem, void> {
  const { id, size } = await runner.run(() => {
    assertOptions(o, fieldsOf.progress, 'verify', at.named(ref ?? 'the store'));
    const session = ref === undefined ? undefined : at.need(ref);
    const { sessions, entries } = countVerified(at.db, session);
    return { id: session?.ulid, size: entries + 20 * sessions };
  });
  if (size > smallMax) {
    yield* inThread(address, id, o);
    return;
  }
  const onProgress = o.onProgress === undefined ? undefined : forward(o.onProgress);
  yield* runner.iterate(() =>
    id === undefined ? verifyAll(at.db, onProgress) : verifySession(at.db, at.need(id), onProgress),
  );
}

/** Leaves out what an act says again when it runs again. */
function forward(onProgress: OnProgress): OnProgress {
  let told = 0;
  return (progress) => {
    if (progress.done > told) onProgress(progress);
    told = Math.max(told, progress.done);
  };
}

async function* inThread(
  { given: url }: Address,
  ref: string | undefined,
  { onProgress }: ProgressOptions,
): AsyncGenerator<Problem, void> {
  const taken = new Int32Array(new SharedArrayBuffer(4));
  const file = `./verify-thread.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`;
  const workerData: VerifyData = { url, ref, progress: onProgress !== undefined, taken };
  const thread = new Worker(new URL(file, import.meta.url), { workerData });
  try {
    for await (const [said] of on(thread, 'message', { close: ['exit'] }) as AsyncIterable<[Said]>) {
      Atomics.add(taken, 0, 1);
      Atomics.notify(taken, 0);
      if ('problem' in said) yield said.problem;
      else if ('done' in said) onProgress?.(said);
      else if ('isOver' in said) return;
      else throw asError(said.failed);
    }
    throw new TapeError('TAPE_IO', 'cannot verify: the thread that does it has ended');
  } finally {
    await thread.terminate();
  }
}

function asError({ code, message, data }: Extract<Said, { failed: unknown }>['failed']): Error {
  return code === undefined ? new Error(message) : new TapeError(code, message, { data });
}
