import { runPoint } from '../crash-point.ts';
import { haveEnded } from '../merge/spawn-calls.ts';
import { type Above, optionsFor } from '../run/above.ts';
import { canHaveTool } from '../run/mcp-tools.ts';
import type { Run } from '../run/run.ts';
import { hasAnswerLeft, runningChildren } from '../status/waits.ts';
import { modelFor } from '../terms/model-for.ts';
import { awaitsChildren, openBatch } from '../tools/open-batch.ts';
import type { DelegationParts } from './parts.ts';

/**
 * Continues a session and those to which it delegates, children first, where an answer was recorded that no process has gone
 * on with: by one that does not have the tool, or that died. Then those whose children have all ended meanwhile. The runs
 * take `above.options`; a session that cannot run here is left as it is.
 */
export async function continueAnswered(parts: DelegationParts, id: string, above: Above): Promise<void> {
  const { store, newId } = parts;
  for (const child of await runningChildren(store, id)) await continueAnswered(parts, child.id, above);
  const info = await store.sessions.find(id);
  if (info === undefined || info.lifecycle !== 'active') return;
  const worker = parts.worker(info);
  const hasTool = (name: string) => canHaveTool(parts, above.options, name);
  if (!worker.isServing && (await hasAnswerLeft(store, info, hasTool))) {
    const more = above.until === id ? {} : { above };
    if (!worker.isServing) worker.start({ run: newId(), options: optionsFor(id, above), ...more });
  } else await continueWaiting(parts, id, above);
}

/**
 * Continues a session whose call waited for children, once all of them have ended. Returns the run, in an object, since a
 * run is thenable. Does nothing while a process runs the session, which looks again when it ends, and nothing where no
 * model can be used: the next run or recovery continues it. `above`: the options of the answer that let it go on.
 */
export async function continueWaiting(
  parts: DelegationParts,
  id: string,
  above?: Above,
): Promise<{ readonly run: Run } | undefined> {
  const { store, continued, closing, newId } = parts;
  const info = await store.sessions.find(id);
  if (info === undefined || info.lifecycle !== 'active' || info.settled === info.head) return undefined;
  let isDue = false;
  for (const call of await openBatch(store, info))
    isDue ||= awaitsChildren(call) && (await haveEnded(store, info, call));
  const worker = parts.worker(info);
  if (!isDue || worker.isServing || closing.aborted) return undefined;
  if ((await store.leases.list()).some((owner) => owner.id === id)) return undefined;
  const options = above === undefined ? {} : optionsFor(id, above);
  try {
    await modelFor(parts, await worker.facts(info), { options });
  } catch {
    return undefined;
  }
  // A run that could not take it up wrote nothing: another one could not either.
  if (continued.get(id)?.head === info.head || worker.isServing) return undefined;
  const run = worker.start({ run: newId(), options, ...(above?.until !== id && { above }) });
  continued.set(id, { head: info.head, run });
  runPoint('parent/continued');
  return { run };
}
