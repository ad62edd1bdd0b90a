import {
  conversationsIn,
  discover,
  importConversation,
  type SourceTable,
  transcriptTools,
} from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';

/** Imports the conversation of a file as the verb does. */
export async function importFile(store: SqliteTapeStore, file: string, table: SourceTable): Promise<void> {
  const place = { env: {}, home: '/nowhere' };
  const known = (path: string) => table.at(path);
  const { files } = await discover({ place, tools: transcriptTools, paths: [file], known });
  for (const conversation of conversationsIn(files)) await importConversation(store, conversation, { table });
}
