import { existsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { main } from '@tapedeck/cli';
import { openDeck } from '@tapedeck/runtime';
import { type homePoints, onCrashPoint } from '@tapedeck/tape/crash-point';
import { pause } from '@tapedeck/tape/internal';
import { bufferedIo } from './buffered-io.ts';

/** Who creates the home of a project, for which user, and where it says so and waits until there is a file. */
export interface CreatorOrder {
  readonly by: 'command' | 'program';
  readonly user: string;
  readonly project: string;
  readonly at: (typeof homePoints)[number];
  readonly file: string;
}

const { by, user, project, at, file } = JSON.parse(process.argv[2] ?? '') as CreatorOrder;
const env = { HOME: user, TAPE_TRUST_HOME: '' };

onCrashPoint((point) => {
  if (point !== at) return;
  onCrashPoint(undefined);
  writeSync(1, `${point}\n`);
  while (!existsSync(file)) pause(5);
});

if (by === 'program') {
  await using deck = await openDeck({ home: join(project, '.tape'), env });
  await deck.session('one');
} else {
  const { io, said } = bufferedIo({ cwd: project, env });
  process.exitCode = await main(['new', 'one'], io);
  process.stderr.write(said.stderr);
}
