import { type Entry, note, type SessionInfo, type TapeStore } from '@tapedeck/tape';
import { isObject, summarizerKind, titleEvent } from '@tapedeck/tape/internal';
import { sha256 } from '@tapedeck/tape/store';
import { answerDrafts } from '../compaction/record.ts';
import type { Shared } from '../config/shared.ts';
import { drainInbox } from '../lease/drain.ts';
import type { LanguageModel } from '../model/model.ts';
import { sessionModel } from '../terms/model-for.ts';
import { factsOf, isBranch } from '../terms/terms.ts';
import { askTitle, type TitleAnswer } from './ask-title.ts';

/** Spawn key of the session in which a title was written: a session gets one attempt. */
const titleKey = 'title';

/** The number of a session's own first entries among which its first prompt is looked for. */
const firstMax = 20;

/**
 * Has the model of `titles` write the title of a session, after its first answer, unless it has one or was denied
 * one. The call is recorded in a child as those for summaries are, and the title in an event of the session. A
 * session that is written meanwhile gets it at its next settled point.
 * @throws the errors of `resolveModel` and of the store; the reason of the signal when it aborts
 */
export async function titleSession(
  parts: Pick<Shared, 'store' | 'config' | 'env' | 'secrets' | 'redactor' | 'traffic' | 'calling'>,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const { store, config, calling } = parts;
  if (config.titles === undefined) return;
  const info = await store.sessions.find(id);
  if (info === undefined || !isForPeople(info) || info.title !== undefined) return;
  if ((await store.sessions.list({ parent: id, key: titleKey, all: true })).length > 0) return;
  const prompt = await answeredPrompt(store, info);
  if (prompt === undefined) return;
  const model = await sessionModel(parts, await factsOf(store, info), config.titles);
  const made = await askTitle(prompt, { model, calling, signal });
  const { session, id: child } = await store.lineage.fork(id, {
    inherit: 'nothing',
    key: titleKey,
    kind: summarizerKind,
    ephemeral: true,
    title: `Title of ${info.session}`,
    intention: { nextSteps: `Write a title for ${info.session}` },
    done: {
      drafts: draftsOf(made, { model, cost: config.cost }),
      task: made.title === undefined ? 'failed' : 'completed',
    },
  });
  if (made.title === undefined) return;
  const event = note(titleEvent, { title: made.title, summarizer: { session, id: child } });
  await store.inbox.post(id, { body: { type: 'append', drafts: [event] }, key: titleEvent });
  await drainInbox(store, id);
}

function draftsOf(
  { prompt, answer, failure }: TitleAnswer,
  by: { readonly model: LanguageModel; readonly cost: Shared['config']['cost'] },
) {
  return [
    note('title/asked', { prompt: sha256(prompt) }),
    ...(answer === undefined ? [] : answerDrafts(answer, by)),
    ...(failure === undefined ? [] : [note('title/failed', { message: failure })]),
  ];
}

/** Whether lists show a session by its title: children have their task. */
function isForPeople(info: SessionInfo): boolean {
  return !info.ephemeral && info.lifecycle === 'active' && (info.parentId === undefined || isBranch(info));
}

/** The text of a session's first prompt, once that has an answer. */
async function answeredPrompt(store: TapeStore, { id }: SessionInfo): Promise<string | undefined> {
  let text: string | undefined;
  for await (const entry of store.entries.read(id, { own: true, kind: 'message', limit: firstMax })) {
    const role = isObject(entry.payload) ? entry.payload.role : undefined;
    if (role === 'assistant' && text !== undefined) return text;
    if (role === 'user' && entry.meta.source !== 'merge') text ??= textOf(entry);
  }
  return undefined;
}

function textOf({ payload }: Entry): string | undefined {
  const content = isObject(payload) && Array.isArray(payload.content) ? payload.content : [];
  const text = content
    .flatMap((part) => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))
    .join('\n');
  return text.trim() === '' ? undefined : text;
}
