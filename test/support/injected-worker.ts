import './fixed-drafts.ts';
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { injectFault } from './fault-calls.ts';
import { doneLine, type InjectedOrder } from './fault-inject.ts';
import { doWorkload } from './fault-workload.ts';

/**
 * A process that does workloads one after another, as the lines of its stdin say, each an `InjectedOrder` as JSON,
 * until stdin ends or a fault kills it.
 */
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as InjectedOrder;
  injectFault(order);
  await doWorkload(order.dir, order.workload, 'full');
  writeSync(1, doneLine);
}
