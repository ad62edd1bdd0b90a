import './fixed-drafts.ts';
import { doWorkload } from './fault-workload.ts';

/** A process that does one workload: `fault-worker.ts DIR WORKLOAD [fast]`. */
const [dir = '', name = '', durability] = process.argv.slice(2);
await doWorkload(dir, name, durability === 'fast' ? 'fast' : 'full');
