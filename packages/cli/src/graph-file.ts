import { basename } from 'node:path';
import type { SqliteTapeStore } from '@tapedeck/tape';

/** What a store has found and done to the graph file since it was opened. */
export type GraphFileState = SqliteTapeStore['graphFile'];

/** The fields of a JSON document about the graph file; none when it follows the database. */
export function graphFields({ lagging, blocked, aside }: GraphFileState): Readonly<Record<string, true>> {
  return {
    ...(lagging && { graph_lagging: true }),
    ...((blocked || aside.length > 0) && { graph_diverged: true }),
  };
}

/** The same as lines for people. */
export function graphLines({ lagging, blocked, aside }: GraphFileState): readonly string[] {
  const moved = aside.map(
    (path) =>
      `The graph file differed from the database. It is now '${basename(path)}', and a new one was written. See: tape check`,
  );
  if (blocked)
    return [...moved, 'The graph file differs from the database, and cannot be set aside. See: tape check'];
  return lagging
    ? [...moved, 'The graph file cannot be written now: the next command that writes adds the missing lines']
    : moved;
}
