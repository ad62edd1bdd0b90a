import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import {
  assistant,
  type Draft,
  handoff,
  type JsonObject,
  type Meta,
  note,
  type Part,
  toolResult,
  user,
} from '@tapedeck/tape';
import { maskFor, noResult, redactedCall, select } from '@tapedeck/tape/internal';
import type { Hold } from '../lease/hold.ts';
import type { Stamp } from '../run/place.ts';
import { batchNotes } from '../tools/open-batch.ts';
import { superseded } from '../tools/orphans.ts';
import { type Divergence, divergenceText } from './divergence.ts';
import { callsIn, type Sent, sentIn, type Told, toldIn } from './pieces.ts';
import type { RecordedPlace } from './place.ts';
import { planFor } from './plan.ts';

/** The anchor at which the view of a session begins whose application sends only the last messages. */
const windowName = 'history/window';

/** How often the tape is compared again after something of it was hidden: a rewind can show what a boundary hid. */
const roundsMax = 4;

/**
 * Makes the tape read as the history that an application sent: appends what is new, and hides with a rewind what the
 * history does not have. Nothing is removed. Reports what differs.
 */
export async function reconcile(
  { parts: { store, secrets, redactor }, session }: RecordedPlace,
  prompt: LanguageModelV4Prompt,
  {
    held,
    run,
    stamp,
    named,
    provider,
    report,
  }: {
    readonly held: Hold;
    readonly run: string;
    readonly stamp: Stamp;
    /** The name of the model, for messages of the user. */
    readonly named: Meta;
    /** That of the model. */
    readonly provider: string;
    readonly report: (divergence: Divergence) => void;
  },
): Promise<void> {
  // The tape has no secrets either.
  const masked = maskFor(secrets)?.value(prompt) ?? prompt;
  const [shown] = redactor === undefined ? [masked] : redactedCall([masked], redactor, 'entries.append');
  const sent = sentIn(shown as LanguageModelV4Prompt);
  const append = async (drafts: readonly Draft[]) => {
    if (drafts.length > 0) await store.entries.append(session.id, stamp(drafts), { lease: held.lease });
  };
  const known: Told[] = [];
  let first: Omit<Divergence, 'session'> | undefined;
  for (let round = 1; ; round += 1) {
    const told = toldIn(
      select(await Array.fromAsync(store.views.entries(session.id)), 'last-boundary'),
      provider,
    );
    if (round === 1) known.push(...told);
    const plan = planFor(told, sent);
    first ??= plan.divergence;
    if (plan.window !== undefined) await append([handoff(windowName, {}, { keepFrom: plan.window })]);
    const hides = plan.rewind !== undefined && round <= roundsMax;
    if (plan.rewind !== undefined)
      await store.history.rewind(session.id, (hides ? plan.rewind : (told[0]?.seq ?? 1)) - 1, {
        lease: held.lease,
      });
    if (hides) continue;
    const divergence =
      first === undefined
        ? []
        : [note('history/diverged', { run, ...first, message: divergenceText(first) } as JsonObject)];
    const left = plan.rewind === undefined ? { rest: plan.rest, told } : { rest: sent, told: [] };
    await append([...divergence, ...draftsOf(left.rest, { ...left, known, run, named })]);
    if (first !== undefined) report({ session: session.name, ...first });
    return;
  }
}

/** The entries for the parts of a history that the tape does not have. */
function draftsOf(
  rest: readonly Sent[],
  {
    told,
    known,
    run,
    named,
  }: {
    readonly told: readonly Told[];
    readonly known: readonly Told[];
    readonly run: string;
    readonly named: Meta;
  },
): readonly Draft[] {
  const drafts: Draft[] = [];
  const open = openAfter(told);
  const messages = [...Map.groupBy(rest, ({ message }) => message).values()];
  /** Providers refuse a call without a result. */
  const close = () => {
    drafts.push(
      ...superseded(
        [...open].map(([toolCallId, toolName]) => ({ toolCallId, toolName, input: {}, state: 'waiting' })),
      ),
    );
    open.clear();
  };
  for (const pieces of messages) {
    const [first] = pieces;
    if (first === undefined) continue;
    const content = pieces.map(({ part }) => part);
    if (first.role === 'tool') {
      for (const part of content) {
        drafts.push(...denialIn(part, open), resultDraft(part, { run }));
        open.delete(String(part.toolCallId));
      }
      continue;
    }
    close();
    const options = first.providerOptions === undefined ? {} : { providerOptions: first.providerOptions };
    const draft =
      first.role === 'user'
        ? user(content, { run, source: 'user', ...named })
        : assistant(content, { source: 'history', ...makerOf(pieces, known) });
    drafts.push({ ...draft, payload: { ...(draft.payload as object), ...options } });
    if (first.role === 'assistant')
      for (const { toolCallId, toolName } of callsIn(content)) open.set(toolCallId, toolName);
  }
  close();
  return drafts;
}

/** The calls that entries leave open, with the names of their tools. */
function openAfter(told: readonly Told[]): Map<string, string> {
  const open = new Map<string, string>();
  for (const { calls, answers } of told) {
    for (const { toolCallId, toolName } of calls) open.set(toolCallId, toolName);
    if (answers !== undefined) open.delete(answers);
  }
  return open;
}

/** The answer of a person who denied an open call, which the AI SDK sends as its result. */
function denialIn(part: Part, open: ReadonlyMap<string, string>): readonly Draft[] {
  const { toolCallId: id, output } = part as Part & { readonly output: JsonObject };
  const toolCallId = String(id);
  if (output.type !== 'execution-denied' || !open.has(toolCallId)) return [];
  const reason = typeof output.reason === 'string' && { reason: output.reason };
  return [note(batchNotes.answered, { toolCallId, approved: false, ...reason })];
}

function resultDraft(part: Part, meta: Meta): Draft {
  const { toolCallId, toolName, output } = part as Part & { readonly output: JsonObject };
  // A view shows this for a call without a result: the application has read it, and made none.
  const isRepair = output.type === 'error-text' && output.value === noResult;
  const draft = toolResult(
    { toolCallId: String(toolCallId), toolName: String(toolName) },
    output,
    isRepair ? { ...meta, source: 'repair' } : meta,
  );
  const options = part.providerOptions === undefined ? {} : { providerOptions: part.providerOptions };
  return { ...draft, payload: { ...(draft.payload as object), ...options } };
}

/** Who made an answer that is appended again: views give its signed parts back to that provider alone. */
function makerOf(pieces: readonly Sent[], known: readonly Told[]): Meta {
  const keys = pieces.flatMap(({ key }) => key ?? []);
  const same = known.find(
    ({ kind, keys: own }) =>
      kind === 'assistant' &&
      own.length === keys.length &&
      own.every((forms, i) => forms.includes(keys[i] ?? '')),
  );
  return same === undefined ? {} : { ...same.maker, copies: same.seq };
}
