import { type Json, note } from '@tapedeck/tape';
import { messageOf, SessionError } from '../errors.ts';
import { namedFor } from '../terms/model-for.ts';
import { noUsage } from '../usage/usage.ts';
import { itemDrafts } from './intake.ts';
import { placeOf, stampOf } from './place.ts';
import { infoOf, type RunRequest, type RunScope } from './request.ts';
import type { RunResult } from './run.ts';

/** Records the messages and the error of a run that cannot begin, so that no message is lost. */
export async function recordUnusable(
  scope: RunScope,
  request: RunRequest,
  error: unknown,
): Promise<RunResult> {
  const { parts, session, hold } = scope;
  const info = await infoOf(scope);
  const message = messageOf(error);
  const named = await namedFor(parts.store, { info, origin: scope.origin }, request);
  const stamp = stampOf(await placeOf(parts, undefined));
  const handled = (request.items ?? []).map((item) => ({
    id: item.id,
    drafts: stamp(itemDrafts(item, { open: [], run: request.run, named })),
  }));
  await hold.drain(handled);
  await parts.store.entries.append(
    session.id,
    stamp([note('run/error', { run: request.run, message } satisfies Json)]),
    {
      lease: hold.lease,
    },
  );
  const failure =
    error instanceof SessionError
      ? error
      : new SessionError('SESSION_MODEL_FAILED', `cannot run '${session.name}': ${message}`, {
          cause: error,
        });
  const { head: to } = await infoOf(scope);
  return {
    run: request.run,
    session: session.name,
    text: '',
    finish: 'error',
    steps: 0,
    usage: noUsage,
    from: info.head + 1,
    to,
    error: failure,
  };
}
