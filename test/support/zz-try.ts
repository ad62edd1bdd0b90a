import { delegateRound } from './delegate-round.ts';
import type { Scene } from './delegate-scenes.ts';
import { startDelegateServer } from './delegate-server.ts';
import { inTwoLanes } from './fault-sweep.ts';

const server = await startDelegateServer();
const place = {
  server,
  cache: '/tmp/tapedeck-try-cache',
  ...(process.env.POINTS && { points: process.env.POINTS }),
};
const t = performance.now();
const only = process.env.SCENES?.split(',') as Scene[] | undefined;
let k = 0;
await inTwoLanes(process.argv.slice(2), async (spec, i) => {
  const stages = spec.split('/').map((stage) =>
    stage.split('+').map((work) => {
      const at = work.slice(work.indexOf(':') + 1);
      const act = work.split(':')[0] as 'work';
      if (at === work) return { act };
      const [point = '', n] = at.split('#');
      return {
        act,
        death: /^\d+$/.test(point) ? { afterMs: Number(point) } : { point, nth: Number(n ?? 1) },
      };
    }),
  );
  try {
    const end = await delegateRound(place, {
      id: `r${i}`,
      ...(only && { scenes: only }),
      stages: [...stages, [{ act: 'recover' }]],
    });
    k += end.deaths.length;
    console.log(spec, end.faults.length === 0 ? 'fine' : end.faults, end.deaths.length);
  } catch (e) {
    console.log(spec, 'THREW', e);
  }
  return [];
});
console.log(server.refusals, k, performance.now() - t);
process.exit(0);
