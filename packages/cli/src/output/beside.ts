import type { Brought } from '@tapedeck/runtime/import';
import { counted } from './counted.ts';

/** The most sessions that are named. */
const namedMax = 3;

const reasons = {
  parted: 'which goes on in another way',
  named: 'another session of that name',
  alike: 'whose name differs by case or Unicode form alone',
} as const;

/** Which new sessions have not the names of their conversations, since others have these: a line for each of the first. Pure. */
export function besideLines(brought: readonly Brought[]): readonly string[] {
  const lines = brought.flatMap(({ sessions }) =>
    sessions.flatMap(({ session, beside }) => {
      if (beside === undefined) return [];
      return [`${session} is new beside ${beside.session}, ${reasons[beside.why]}`];
    }),
  );
  const more = lines.length - namedMax;
  return more > 0 ? [...lines.slice(0, namedMax), `… and ${counted(more, 'other session')}`] : lines;
}
