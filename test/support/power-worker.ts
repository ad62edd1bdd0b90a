import { writeSync } from 'node:fs';
import { user } from '@tapedeck/tape';
import { faultPlace, openFaultStore } from './fault-acts.ts';

/**
 * A separate process that writes until it is stopped: `power-worker.ts DIR DURABILITY FORK_EVERY`. It writes a line with
 * a number for each acknowledged append; before every FORK_EVERY-th, it forks too.
 */
const [dir = '', durability = 'full', forkEvery = '0'] = process.argv.slice(2);

const store = openFaultStore(faultPlace(dir), { durability: durability === 'fast' ? 'fast' : 'full' });
store.sessions.open('main');
for (let n = 1; ; n += 1) {
  store.entries.append('main', [user(`entry ${n} ${'x'.repeat(n % 2000)}`)], { key: `k${n}` });
  if (Number(forkEvery) > 0 && n % Number(forkEvery) === 0)
    store.lineage.fork('main', { name: `fork-${n}`, key: `f${n}` });
  writeSync(1, `${n}\n`);
}
