import type { DeckOptions } from '@tapedeck/runtime';
import { assistant, type Entry, type JsonObject, user } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { ChatAnswer, ChatRequest } from './provider.ts';
import { type Served, served } from './served.ts';

/** Whether a request is for a summary. */
export const isSummary = ({ messages }: ChatRequest) =>
  JSON.stringify(messages[0]).includes('You summarise a conversation');
/** A summary that has every section. */
export const form =
  '## Goal\nShip.\n## Constraints & Preferences\n## Progress\n## Key Decisions\n## Next Steps\n## Critical Context';
/** A text that is long enough for a summary to be smaller. */
export const long = (text: string, size = 2_000) => `${text} ${'and so on '.repeat(size / 10)}`;
export const windows = { 'test-model': { window: 100_000, maxOutput: 8_000 } };

interface Serving extends Omit<DeckOptions, 'home' | 'store' | 'env'> {
  /** What the summarizer says, and what the others do. */
  readonly summary?: (request: ChatRequest, index: number) => ChatAnswer;
  readonly answer?: (request: ChatRequest) => ChatAnswer;
}

/** A session `main` with answers of its model and its summarizer; `asked` returns the requests for summaries. */
export async function serving({
  summary = () => ({ text: form }),
  answer = () => ({ text: 'Fine.' }),
  ...options
}: Serving = {}) {
  let summaries = 0;
  const s = await served(
    (request) => {
      if (!isSummary(request)) return answer(request);
      summaries += 1;
      return summary(request, summaries - 1);
    },
    { limits: { retries: 2, retryDelayMs: 1 }, ...options },
  );
  return Object.assign(s, { asked: () => s.provider.requests.filter(isSummary) });
}

/** A session that has been talked with before. */
export function talk({ store }: Served, turns = 3, size = 2_000): void {
  for (let i = 1; i <= turns; i += 1)
    store.entries.append('main', [user(long(`Question ${i}`, size)), assistant(long(`Answer ${i}`, size))]);
}

export const summaries = ({ store }: Served): Entry[] => [
  ...store.entries.read('main', { kind: 'compaction' }),
];
export const stateOf = (entry: Entry | undefined): JsonObject =>
  isObject(entry?.payload) && isObject(entry.payload.state) ? entry.payload.state : {};
