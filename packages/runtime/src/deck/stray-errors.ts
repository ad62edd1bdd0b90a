import { note } from '@tapedeck/tape';
import { messageOf } from '../errors.ts';
import { drainInbox } from '../lease/drain.ts';
import type { DeckParts } from '../session/parts.ts';
import { currentCall } from '../tools/current-call.ts';

/** An error that nothing handled: a promise that rejected, or a throw in a callback. */
export interface StrayError {
  readonly error: unknown;
  /** Its message. */
  readonly message: string;
  /** The session whose tool left it; undefined when no tool of the deck did. */
  readonly session?: string;
  readonly tool?: string;
  readonly toolCallId?: string;
  /** True: the process cannot continue. The deck is closed, and the process ends with exit code 1. */
  readonly isFatal: boolean;
}

/**
 * Handles errors that would end the process, until the returned function is called. One that a tool of the deck left
 * is recorded on the tape of its session, as the event `tool/stray-error`, and the others continue. A throw of other
 * code leaves the process in an unknown state, so it ends everything: `close` stops the runs first.
 */
export function handleStrayErrors(
  parts: Pick<DeckParts, 'store' | 'newId'>,
  { onStrayError, close }: { onStrayError: (stray: StrayError) => void; close: () => Promise<void> },
): () => void {
  const handle = (error: unknown, isThrown: boolean) => {
    const call = currentCall();
    const message = messageOf(error);
    if (call !== undefined && call.store !== parts.store) return;
    if (call === undefined) {
      onStrayError({ error, message, isFatal: isThrown });
      if (isThrown) void close().finally(() => process.exit(1));
      return;
    }
    const { session, toolName: tool, toolCallId } = call;
    onStrayError({ error, message, session, tool, toolCallId, isFatal: false });
    // What cannot be recorded was reported.
    record(parts, session, { tool, toolCallId, message }).catch(() => {});
  };
  const onRejection = (error: unknown) => handle(error, false);
  const onException = (error: unknown) => handle(error, true);
  process.on('unhandledRejection', onRejection);
  process.on('uncaughtException', onException);
  return () => {
    process.off('unhandledRejection', onRejection);
    process.off('uncaughtException', onException);
  };
}

async function record(
  { store, newId }: Pick<DeckParts, 'store' | 'newId'>,
  session: string,
  payload: { readonly tool: string; readonly toolCallId: string; readonly message: string },
): Promise<void> {
  const drafts = [note('tool/stray-error', payload)];
  const { owner } = await store.inbox.post(session, {
    body: { type: 'append', drafts },
    mode: 'queue',
    source: 'tool',
    key: newId(),
  });
  // The run appends it at its next settled point; without one it is appended now.
  if (owner === undefined) await drainInbox(store, session);
}
