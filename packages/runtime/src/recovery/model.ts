import type { SessionInfo, TapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import type { DelegationParts } from '../delegation/parts.ts';
import { SessionError } from '../errors.ts';
import type { ModelFrom } from '../model/name.ts';
import { type ModelSpec, recordedSpec, resolveModel } from '../model/spec.ts';
import { carriedBy } from '../terms/carried-model.ts';
import { factsOf } from '../terms/terms.ts';

/** The model that a recovery runs a session with. */
export interface RecoveryModel {
  /** Passed to the run; undefined when the run finds it itself. */
  readonly model: ModelSpec | undefined;
  /** Its name, if it has one. */
  readonly name: string | undefined;
}

/**
 * The model to continue a session with: the one that its tape carries, else that of its last answer, else the
 * given one, else the deck's. A recorded model that cannot be used here, for example for want of a key, is
 * passed over; a given one is not. Nothing is written.
 * @throws SESSION_NO_MODEL when no model is known; else the error of the first model that cannot be used. Both
 *   name the session and have `data.session` and `data.abortable`; `data.recorded` is true when the model is one
 *   that the session's tape records
 */
export async function recoveryModel(
  parts: Pick<DelegationParts, 'store' | 'config' | 'env' | 'modelFrom'>,
  info: SessionInfo,
  given: ModelSpec | undefined,
): Promise<RecoveryModel> {
  const { store, config, env, modelFrom } = parts;
  const { model: carried } = await carriedBy(store, await factsOf(store, info));
  const answered = await answeredWith(store, info.id, config.model);
  const found: readonly (readonly [spec: ModelSpec | undefined, from: ModelFrom, isOwn?: true])[] = [
    [carried, 'session', true],
    [answered, 'session'],
    [given, 'run'],
    [config.model, modelFrom ?? 'deck'],
  ];
  let fault: unknown;
  let isRecorded = false;
  for (const [spec, from, isOwn] of found) {
    if (spec === undefined) continue;
    try {
      await resolveModel(spec, { env, store, from });
      // A run takes the carried model, or the deck's, by itself.
      const isFound = isOwn === true || (spec === config.model && carried === undefined);
      return { model: isFound ? undefined : spec, name: typeof spec === 'string' ? spec : undefined };
    } catch (error) {
      if (fault === undefined) isRecorded = from === 'session';
      fault ??= error;
      if (spec !== given) continue;
      fault = error;
      isRecorded = false;
      break;
    }
  }
  const data = { session: info.session, abortable: true };
  if (fault === undefined)
    throw new SessionError(
      'SESSION_NO_MODEL',
      `cannot recover '${info.session}': no model was given, and its tape names none`,
      { data },
    );
  if (!(fault instanceof SessionError)) throw fault;
  throw new SessionError(fault.code, `cannot recover '${info.session}': ${fault.message}`, {
    data: { ...fault.data, ...data, ...(isRecorded && { recorded: true }) },
    cause: fault,
  });
}

/** How many messages are searched for the last answer. */
const backMax = 20;

/**
 * The model that gave a session's last answer: the deck's own, if it is that, else by its name, if its provider
 * is one that names can select.
 */
async function answeredWith(
  store: TapeStore,
  id: string,
  own: ModelSpec | undefined,
): Promise<ModelSpec | undefined> {
  const messages = await Array.fromAsync(store.entries.read(id, { kind: 'message', last: backMax }));
  const last = messages.findLast(
    ({ payload, meta }) =>
      isObject(payload) && payload.role === 'assistant' && typeof meta.model === 'string',
  );
  const { provider, model } = last?.meta ?? {};
  if (typeof provider !== 'string' || typeof model !== 'string') return undefined;
  const isOwn = typeof own === 'object' && own.provider === provider && own.modelId === model;
  return isOwn ? own : recordedSpec(provider, model);
}
