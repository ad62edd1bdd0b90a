import type { RawDb } from './raw-db.ts';

/**
 * How the text of a graph file differs from the lineage of its database: its record lines must be the database's,
 * in their order. Lines that are no JSON are what a crash left and the next writer sealed.
 */
export function graphDifferences(text: string, db: RawDb): string[] {
  const missing = recordsOf(db).length - writtenIn(text).length;
  return [
    ...(text === '' || text.endsWith('\n') ? [] : ['the graph file does not end with LF']),
    ...graphPrefix(text, db),
    ...(missing > 0 ? [`the graph file lacks the last ${missing} lines`] : []),
  ];
}

/** As above, for a file that may lag behind and may have a torn end. */
export function graphPrefix(text: string, db: RawDb): string[] {
  const recorded = recordsOf(db);
  return writtenIn(text)
    .flatMap((line, i) => (line === recorded[i] ? [] : [`line ${i + 1} is ${line}, not ${recorded[i]}`]))
    .slice(0, 1);
}

function recordsOf(db: RawDb): string[] {
  return db.all<{ line: string }>('SELECT line FROM lineage ORDER BY g').map(({ line }) => line);
}

function writtenIn(text: string): string[] {
  return text.split('\n').filter(isJson);
}

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}
