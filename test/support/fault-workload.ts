import { existsSync, writeSync } from 'node:fs';
import { faultPlace, openFaultStore, workloads } from './fault-acts.ts';
import type { Said } from './fault-check.ts';

/**
 * Does a workload in a directory. Prints a line of JSON for each acknowledged or refused act, and continues after a
 * refusal as a program that runs long would.
 */
export async function doWorkload(dir: string, name: string, durability: 'full' | 'fast'): Promise<void> {
  const place = faultPlace(dir);
  const workload = workloads[name];
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  const open = () => openFaultStore(place, { durability });
  if (workload.opens) existsSync(place.marker);
  const store = workload.opens ? await attempt('open', open) : open();
  if (!workload.opens) existsSync(place.marker);
  if (store === undefined) return;
  for (const act of workload.acts) await attempt(act.name, () => act.does(store, place));
  await attempt('close', () => store.close());
}

function say(fact: Said): void {
  writeSync(1, `${JSON.stringify(fact)}\n`);
}

async function attempt<T>(act: string, does: () => T): Promise<Awaited<T> | undefined> {
  try {
    const fact = await does();
    const { graphLagging = false, logEmptied } = (fact ?? {}) as Pick<Said, 'graphLagging' | 'logEmptied'>;
    say({ act, graphLagging, ...(logEmptied !== undefined && { logEmptied }) });
    return fact;
  } catch (error) {
    const { name, code, message } = error as Error & { code?: unknown };
    say({ act, error: { name, code, message } });
    return undefined;
  }
}
