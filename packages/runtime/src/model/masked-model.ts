import { type Mask, MaskedText, maskError, RedactedText, type Redactor } from '@tapedeck/tape/internal';
import { type ModelObject, withCalls } from './with-calls.ts';

/** A part of the stream of a model: a piece of a text, or anything else. */
interface Part {
  readonly type: string;
  readonly id?: unknown;
  readonly delta?: unknown;
  readonly error?: unknown;
  readonly providerMetadata?: unknown;
}

/** Parts that are a piece of a text, and the part that ends this text. */
const endOf: ReadonlyMap<string, string> = new Map([
  ['text-delta', 'text-end'],
  ['reasoning-delta', 'reasoning-end'],
  ['tool-input-delta', 'tool-input-end'],
]);

/** What is not shown: secrets that the process knows, and what has the form of one. */
interface Hidden {
  readonly mask: Mask | undefined;
  readonly redactor: Redactor | undefined;
}

/** Replaces what is not shown. */
interface Cover {
  readonly value: <T>(value: T) => T;
  /** Errors also lose what has the form of a secret, unless that is turned off. */
  readonly error: (error: unknown) => unknown;
  readonly text: () => Covered;
}

/** A text that arrives in pieces. */
interface Covered {
  readonly add: (piece: string) => string;
  readonly end: () => string;
  /** How many secrets were replaced so far. */
  readonly count: () => number;
}

/**
 * The model with the secrets in its answers and errors replaced, before anything of them is shown, recorded or
 * executed. A secret that arrives in several pieces is replaced too. Without anything to hide it is the model itself.
 */
export function maskedModel<M extends ModelObject>(model: M, hidden: Hidden): M {
  if (hidden.mask === undefined && hidden.redactor === undefined) return model;
  const cover = coverOf(hidden);
  // The tape replaces errors in a stream: without anything else to hide the parts pass as they are.
  const isCovered = hidden.mask !== undefined || hidden.redactor?.in === 'all';
  const doStream = async (...given: Parameters<ModelObject['doStream']>) => {
    try {
      const answer = await Reflect.apply(model.doStream, model, given);
      if (!isCovered) return answer;
      const { stream, ...rest } = answer;
      return {
        ...cover.value(rest),
        stream: ReadableStream.from(maskedParts(stream as ReadableStream<Part>, cover)),
      };
    } catch (error) {
      throw cover.error(error);
    }
  };
  const doGenerate = async (...given: Parameters<ModelObject['doGenerate']>) => {
    try {
      return cover.value(await Reflect.apply(model.doGenerate, model, given));
    } catch (error) {
      throw cover.error(error);
    }
  };
  return withCalls(model, { doStream, doGenerate });
}

function coverOf({ mask, redactor }: Hidden): Cover {
  const known = <T>(value: T): T => mask?.value(value) ?? value;
  const whole = <T>(value: T): T => redactor?.whole(known(value)).value ?? known(value);
  const all = redactor?.in === 'all' ? redactor : undefined;
  return {
    value: all === undefined ? known : whole,
    error: (error) => maskError(error, { value: whole }),
    text: () => {
      const texts = [
        ...(mask === undefined ? [] : [new MaskedText(mask)]),
        ...(all === undefined ? [] : [new RedactedText(all)]),
      ];
      return {
        add: (piece) => texts.reduce((text, one) => one.add(text), piece),
        end: () => texts.reduce((rest, one) => one.add(rest) + one.end(), ''),
        count: () => texts.reduce((count, one) => count + one.count, 0),
      };
    },
  };
}

async function* maskedParts(stream: AsyncIterable<Part>, cover: Cover): AsyncGenerator<Part> {
  /** The texts that are not at their end, by the part that ends them and their id. */
  const open = new Map<string, { readonly text: Covered; readonly type: string; readonly id: unknown }>();
  /** Reasoning that was changed: its provider would refuse what it has signed. */
  const changed = new Set<unknown>();
  const rest = (key: string): Part[] => {
    const known = open.get(key);
    open.delete(key);
    const delta = known?.text.end() ?? '';
    if (known?.type === 'reasoning-delta' && known.text.count() > 0) changed.add(known.id);
    return known === undefined || delta === '' ? [] : [{ type: known.type, id: known.id, delta }];
  };
  const unsigned = (part: Part): Part => {
    const isOf = part.type.startsWith('reasoning-') && changed.has(part.id);
    return isOf && part.providerMetadata !== undefined ? { ...part, providerMetadata: undefined } : part;
  };
  try {
    for await (const part of stream) {
      const { type, id, delta: piece } = part;
      const end = endOf.get(type);
      if (end === undefined || typeof piece !== 'string') {
        // A text that its provider does not end is at its end with the answer.
        for (const key of type === 'finish' ? [...open.keys()] : [`${type} ${String(id)}`]) yield* rest(key);
        yield type === 'error' ? { ...part, error: cover.error(part.error) } : unsigned(cover.value(part));
        continue;
      }
      const key = `${end} ${String(id)}`;
      const text = open.get(key)?.text ?? cover.text();
      open.set(key, { text, type, id });
      const delta = text.add(piece);
      if (type === 'reasoning-delta' && text.count() > 0) changed.add(id);
      // A part without text can carry metadata of the provider.
      if (delta !== '' || piece === '' || part.providerMetadata !== undefined)
        yield { ...unsigned(cover.value({ ...part, delta: '' })), delta };
    }
  } catch (error) {
    throw cover.error(error);
  }
}
