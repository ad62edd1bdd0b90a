import { existsSync } from 'node:fs';
import {
  type Cleaner,
  type Conversation,
  conversationsIn,
  discover,
  type FoundFile,
  ImportError,
  isRead,
  type Source,
  type SourcePlan,
  type SourceTable,
  transcriptTools,
} from '@tapedeck/runtime/import';
import { readConversation, wholeDraft, withoutContent } from '@tapedeck/runtime/internal';
import type { Draft } from '@tapedeck/tape';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import type { Origin } from './holdings.ts';
import type { RecordedContent } from './recorded-content.ts';

/** The records of a conversation that its files have, and no tape of it. */
export interface UnreadRecords {
  readonly origin: Origin;
  /** What an import would write of them, without content. */
  readonly drafts: readonly Draft[];
}

/** What takes the records. */
interface Taking {
  /** What the tapes of the conversations say, to which is added what their files do. */
  readonly content: RecordedContent;
  readonly clean: Cleaner | undefined;
}

/**
 * Reads the files of conversations that no import has read to their ends: a copy can have what they say, now or later.
 * @param bare the conversations of which nothing was imported: each is in the result
 */
export async function takeUnread(
  sources: readonly Source[],
  { bare, table, ...taking }: Taking & { readonly bare: readonly Origin[]; readonly table: SourceTable },
  context: Context,
): Promise<readonly UnreadRecords[]> {
  // Each transcript is garbage when it is known what it says.
  context.io.saveMemory(10);
  const keyOf = ({ tool, main }: Origin) => `${tool} ${main}`;
  const taken = new Map<string, UnreadRecords>(bare.map((origin) => [keyOf(origin), { origin, drafts: [] }]));
  for (const conversation of await conversationsOf(sources, context)) {
    const origin = { tool: conversation.tool.name, main: conversation.session };
    const { drafts: before } = taken.get(keyOf(origin)) ?? {};
    // Of one that was forgotten before, a process that was killed may have remembered nothing yet.
    const isKnown = (file: FoundFile) =>
      isRead(file, table) && table.at(file.path)?.forgottenAt === undefined;
    if (before === undefined && conversation.files.every(isKnown)) continue;
    try {
      const drafts = await readConversation(conversation, (plan) => draftsIn(plan, taking));
      if (drafts.length > 0) taken.set(keyOf(origin), { origin, drafts: [...(before ?? []), ...drafts] });
    } catch (error) {
      if (!(error instanceof ImportError)) throw error;
      context.status(`${error.message}; so what copies have of it is not known, and stays`);
    }
  }
  return [...taken.values()];
}

/** The conversations of some files, with all of their files that are there. */
async function conversationsOf(
  sources: readonly Source[],
  { io }: Context,
): Promise<readonly Conversation[]> {
  const paths = sources.map(({ path }) => path).filter((path) => existsSync(path));
  if (paths.length === 0) return [];
  const place = { env: io.env, home: userHome(io) };
  const { files } = await discover({ place, tools: transcriptTools, paths });
  const meant = new Set(sources.map(({ tool, main }) => `${tool} ${main}`));
  return conversationsIn(files).filter(
    ({ tool, session }) => tool.plan !== undefined && meant.has(`${tool.name} ${session}`),
  );
}

/** What an import would write of the records that are on no tape, without content. What they say is known from then on. */
function draftsIn({ conversations }: SourcePlan, { content, clean }: Taking): readonly Draft[] {
  const left = new Map<string, Draft>();
  const take = (given: Draft) => {
    const draft = wholeDraft(given);
    const { key = '' } = draft;
    if (!left.has(key) && !content.has(draft)) left.set(key, withoutContent(draft));
    content.add(draft);
    if (clean !== undefined) content.add(clean.draft(draft));
  };
  for (const { title, spine, asides, shared } of conversations) {
    for (const text of title === undefined ? [] : [title, clean?.text(title) ?? title]) content.addText(text);
    for (const draft of spine.slice(shared)) take(draft);
    for (const { draft } of asides) take(draft);
  }
  return [...left.values()];
}
