import { messagesIn } from '../ui/messages.ts';
import { type ExportSource, shownEntries } from './contexts.ts';

/** Writes the messages as the AI SDK's chats hold them: a JSON array with a message on each line. */
export async function* writeUiMessages(source: ExportSource): AsyncGenerator<string, number> {
  const place = { store: source.store, session: source.info.id };
  let count = 0;
  for await (const message of messagesIn(place, shownEntries(source))) {
    yield `${count === 0 ? '[\n' : ',\n'}${JSON.stringify(message)}`;
    count += 1;
  }
  yield count === 0 ? '[]\n' : '\n]\n';
  return count;
}
