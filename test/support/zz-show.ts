import { dump } from './zz-dump.ts';

for (const scene of process.argv.slice(3))
  dump({ scene, db: `${process.argv[2]}/${scene}/tape.db` }, [scene + ':']);
