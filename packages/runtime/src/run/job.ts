import type { InboxItem, SessionInfo } from '@tapedeck/tape';
import type { DeckParts } from '../deck/deck.ts';
import { SessionError } from '../errors.ts';
import type { Hold } from '../lease/hold.ts';
import { type LanguageModel, needModel } from '../model/model.ts';
import { resolveModel } from '../model/spec.ts';
import type { Input, RunOptions } from '../session/options.ts';
import type { Phase } from '../status/status.ts';
import type { Chunk } from '../stream/chunks.ts';
import { carriedModel } from '../terms/carried-model.ts';

/** What a run begins with: a message that was given to it, or what waited in the inbox. */
export interface Job {
  readonly run: string;
  readonly input?: Input | undefined;
  readonly items?: readonly InboxItem[];
  readonly options: RunOptions;
}

/** What a run is done with and through. */
export interface Stage {
  readonly parts: DeckParts;
  readonly session: { readonly name: string; readonly id: string };
  readonly hold: Hold;
  readonly signal: AbortSignal;
  readonly emit: (chunk: Chunk) => void;
  readonly enter: (phase: Phase) => void;
  readonly retrying: (attempt: number, message: string) => void;
  /** Told what the model is told before the messages. */
  readonly onTold: (instructions: string) => void;
  /** Stops the run from within: something in the inbox asks for it. */
  readonly abort: (reason: string) => void;
}

/**
 * The model that a job is for: what it names, else what its session's last message named, else the deck's.
 * @throws SESSION_NO_MODEL and what `resolveModel` throws
 */
export async function modelFor(
  { store, config, env }: DeckParts,
  session: { readonly name: string; readonly id: string },
  { options, items = [] }: Pick<Job, 'options' | 'items'>,
): Promise<LanguageModel> {
  const spec = options.model ?? namedIn(items) ?? (await carriedModel(store, session.id)) ?? config.model;
  const source = spec === undefined ? undefined : await resolveModel(spec, { env, store });
  return needModel(source?.(session.name), session.name);
}

function namedIn(items: readonly InboxItem[]): string | undefined {
  const drafts = items.flatMap(({ body }) => (body.type === 'input' ? body.drafts : []));
  const model = drafts.findLast(({ meta }) => typeof meta?.model === 'string')?.meta?.model;
  return typeof model === 'string' ? model : undefined;
}

/** The model that is named for a job, or was for the session before: its messages bear it. */
export async function namedFor(
  { parts, session }: Stage,
  { options, items = [] }: Job,
): Promise<string | undefined> {
  if (typeof options.model === 'string') return options.model;
  return namedIn(items) ?? (await carriedModel(parts.store, session.id));
}

/** The model that summarises, where the deck names one of its own. */
export async function summarizerOf(
  { store, config, env }: DeckParts,
  session: string,
): Promise<LanguageModel | undefined> {
  if (config.summarizer === undefined) return undefined;
  return (await resolveModel(config.summarizer, { env, store }))(session);
}

/** The row of the session that is run, as it stands. */
export async function infoOf({ parts, session }: Stage): Promise<SessionInfo> {
  const info = await parts.store.find(session.id);
  if (info !== undefined) return info;
  throw new SessionError('SESSION_CLOSED', `cannot find '${session.name}': its row is gone`, {
    data: { session: session.name },
  });
}
