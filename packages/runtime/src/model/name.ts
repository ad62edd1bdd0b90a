import { SessionError } from '../errors.ts';

/**
 * Where the name of a model comes from: the options of the run, a message of the inbox, the tape of the session, or
 * the deck. A deck with `modelFrom` gives that text instead of `deck`: `--model`, `$TAPE_MODEL`, the path of a file.
 */
export type ModelFrom = 'run' | 'message' | 'session' | 'deck' | (string & {});

const phrases: Readonly<Record<string, string>> = {
  run: 'the options of the run',
  message: 'the message',
  session: 'the session',
  deck: 'the deck',
};

/** The place in words: `the session`, `$TAPE_MODEL`. Pure. */
function placeOf(from: ModelFrom): string {
  return phrases[from] ?? from;
}

/**
 * The same error with `data.modelFrom`, and with the place in its message. An error that names a place keeps it, and
 * one without `from` is returned unchanged. Pure.
 */
export function withModelFrom(error: SessionError, from: ModelFrom | undefined): SessionError {
  const { code, message, data, cause } = error;
  if (from === undefined || data.modelFrom !== undefined) return error;
  return new SessionError(code, `${message} (the model comes from ${placeOf(from)})`, {
    data: { ...data, modelFrom: from },
    cause,
  });
}

/** Why a text is not the name of a model; undefined when it is one. Looks at its form only. Pure. */
export function specFault(spec: string): string | undefined {
  const [provider = '', ...rest] = spec.split('/');
  const isNamed = spec.startsWith('script:') ? spec !== 'script:' : provider !== '' && rest.join('/') !== '';
  return isNamed ? undefined : 'it must be PROVIDER/MODEL or script:FILE';
}

/**
 * Refuses what is neither a model nor the name of one, before anything is opened or written.
 * @param from where the name comes from, for the error
 * @throws SESSION_NO_MODEL; `data.model` is a text that is refused
 */
export function assertSpec(spec: object | string | undefined, from?: ModelFrom): void {
  if (typeof spec === 'object' && spec !== null && 'doStream' in spec) return;
  assertModelName(spec, from);
}

/**
 * Refuses what is not the name of a model, before anything is opened or written: what a tape carries is a name.
 * @param from where the name comes from, for the error
 * @throws SESSION_NO_MODEL; `data.model` is a text that is refused
 */
export function assertModelName(spec: object | string | undefined, from?: ModelFrom): void {
  if (spec === undefined) return;
  const isText = typeof spec === 'string';
  const fault = isText ? specFault(spec) : 'its name must be PROVIDER/MODEL or script:FILE';
  if (fault === undefined) return;
  const refusal = new SessionError(
    'SESSION_NO_MODEL',
    `cannot use ${isText ? `model '${spec}'` : 'a model'}: ${fault}`,
    { data: isText ? { model: spec } : {} },
  );
  throw withModelFrom(refusal, from);
}

/**
 * A model name of a tape, unless it does not count here: a script that another user or machine recorded. Pure.
 */
export function usableName(
  name: string | undefined,
  { elsewhere }: { readonly elsewhere?: true },
): string | undefined {
  return elsewhere === true && name?.startsWith('script:') === true ? undefined : name;
}
