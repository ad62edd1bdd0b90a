import { existsSync } from 'node:fs';
import {
  type Cleaner,
  type Conversation,
  type ConversationPlan,
  conversationsIn,
  discover,
  ImportError,
  isRead,
  type Source,
  type SourcePlan,
  type SourceTable,
  transcriptTools,
} from '@tapedeck/runtime/import';
import { readConversation, wholeDraft, withoutContent } from '@tapedeck/runtime/internal';
import type { Draft } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { userHome } from '../config/searched.ts';
import type { Context } from '../context.ts';
import { bytesOf } from '../import/conversations.ts';
import { withProgress } from '../output/progress.ts';
import { idOf, type Origin } from './holdings.ts';
import type { RecordedContent } from './recorded-content.ts';

/** The records of a conversation that its files have, and no tape of it. */
export interface UnreadRecords {
  readonly origin: Origin;
  /** What an import would write of them, without content. */
  readonly drafts: readonly Draft[];
}

/** What the files of conversations say of what was read of them. */
export interface Filed {
  readonly conversations: readonly Conversation[];
  /** Whether the files of a conversation have all that was read of it. */
  readonly isWhole: (origin: Origin) => boolean;
  /** Whether files of a conversation have something that no import has read. */
  readonly hasNew: (conversation: Conversation) => boolean;
}

/** Looks at the files of conversations that are there. */
export async function filedIn(
  sources: readonly Source[],
  table: SourceTable,
  context: Context,
): Promise<Filed> {
  const conversations = await conversationsOf(sources, context);
  const there = new Map(conversations.flatMap(({ files }) => files.map((file) => [file.path, file])));
  const isAsRead = ({ path }: Source) => {
    const file = there.get(path);
    return file !== undefined && isRead(file, table);
  };
  const read = Map.groupBy(table.all, idOf);
  const ids = new Set(conversations.map((one) => idOf(originOf(one))));
  const whole = new Set([...ids].filter((id) => read.get(id)?.every(isAsRead) !== false));
  return {
    conversations,
    isWhole: (origin) => whole.has(idOf(origin)),
    // Of what was forgotten before, a process that was killed may have remembered nothing yet.
    hasNew: ({ files }) =>
      files.some((file) => !isRead(file, table) || table.at(file.path)?.forgottenAt !== undefined),
  };
}

/** What takes records. */
interface Taking {
  /** What the tapes of their conversations say, to which is added what the records do. */
  readonly content: RecordedContent;
  readonly clean: Cleaner | undefined;
  readonly onTaken: (taken: UnreadRecords) => void;
}

/** Reads conversations, one after the other: a copy can have what they say, now or later. */
export async function takeUnread(
  conversations: readonly Conversation[],
  { content, clean, onTaken }: Taking,
  context: Context,
): Promise<void> {
  // Each transcript is garbage when it is known what it says.
  context.io.saveMemory(10);
  const total = conversations.reduce((sum, { files }) => sum + bytesOf(files), 0);
  await withProgress(context, async (progress) => {
    const show = progress('Reading bytes');
    let done = 0;
    for (const conversation of conversations) {
      onTaken({
        origin: originOf(conversation),
        drafts: await draftsOf(conversation, { content, clean }, context),
      });
      done += bytesOf(conversation.files);
      show({ done, total });
    }
  });
}

/** What an import would write of a conversation; nothing of one that cannot be read. */
async function draftsOf(
  conversation: Conversation,
  taking: Omit<Taking, 'onTaken'>,
  { status }: Context,
): Promise<readonly Draft[]> {
  try {
    return await readConversation(conversation, (plan) => draftsIn(plan, taking));
  } catch (error) {
    if (!(error instanceof ImportError)) throw error;
    status(`${error.message}; so what copies have of it is not known, and stays`);
    return [];
  }
}

/** The conversation of a tool that some files are. */
export function originOf({ tool, session }: Conversation): Origin {
  return { tool: tool.name, main: session };
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
  const meant = new Set(sources.map(idOf));
  return conversationsIn(files).filter(
    (one) => one.tool.plan !== undefined && meant.has(idOf(originOf(one))),
  );
}

/** What an import would write of the records that are on no tape, without content. What they say is known from then on. */
function draftsIn(
  { conversations }: SourcePlan,
  { content, clean }: Omit<Taking, 'onTaken'>,
): readonly Draft[] {
  const left = new Map<string, Draft>();
  const take = (given: Draft, exported: ConversationPlan['exported']) => {
    const { key = '' } = given;
    // What an export wrote the exported session keeps.
    if (exported?.has(key) === true) return;
    const draft = wholeDraft(given);
    if (!left.has(key) && !content.has(draft)) left.set(key, withoutCalls(withoutContent(draft)));
    content.add(draft);
    if (clean !== undefined) content.add(clean.draft(draft));
  };
  for (const { title, spine, asides, shared, exported } of conversations) {
    for (const text of title === undefined ? [] : [title, clean?.text(title) ?? title]) content.addText(text);
    for (const draft of spine.slice(shared)) take(draft, exported);
    for (const { draft } of asides) take(draft, exported);
  }
  return [...left.values()];
}

/** What is erased at once needs no calls: those whose results an import has read would stay open, and keep it from that. Pure. */
function withoutCalls(draft: Draft): Draft {
  const { kind, payload } = draft;
  return kind === 'message' && isObject(payload) ? { ...draft, payload: { ...payload, content: [] } } : draft;
}
