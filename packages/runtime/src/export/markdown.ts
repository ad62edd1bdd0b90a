import { renderLogs } from '../logs/index.ts';
import type { ExportSource } from './contexts.ts';

/** Writes the conversation for a reader: the log of the session with whole outputs. Files are named, with their sizes. */
export async function* writeMarkdown({ store, info }: ExportSource): AsyncGenerator<string, number> {
  let count = 0;
  for await (const file of renderLogs(store, info.id))
    for await (const { seq, text } of file.pieces()) {
      if (seq !== undefined) count += 1;
      yield text;
    }
  return count;
}
