import { type Mask, MaskedText, maskError } from '@tapedeck/tape/internal';
import type { LanguageModel } from './model.ts';

type Model = Exclude<LanguageModel, string>;

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

/**
 * The model with the secrets in its answers and errors replaced, before anything of them is shown, recorded or
 * executed. A secret that arrives in several pieces is replaced too. Without a mask it is the model itself.
 */
export function maskedModel<M extends Model>(model: M, mask: Mask | undefined): M {
  if (mask === undefined) return model;
  const doStream = async (...given: Parameters<Model['doStream']>) => {
    try {
      const { stream, ...rest } = await Reflect.apply(model.doStream, model, given);
      return {
        ...mask.value(rest),
        stream: ReadableStream.from(maskedParts(stream as ReadableStream<Part>, mask)),
      };
    } catch (error) {
      throw maskError(error, mask);
    }
  };
  const doGenerate = async (...given: Parameters<Model['doGenerate']>) => {
    try {
      return mask.value(await Reflect.apply(model.doGenerate, model, given));
    } catch (error) {
      throw maskError(error, mask);
    }
  };
  return new Proxy<M>(model, {
    get: (target, name) => {
      if (name === 'doStream') return doStream;
      if (name === 'doGenerate') return doGenerate;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

async function* maskedParts(stream: AsyncIterable<Part>, mask: Mask): AsyncGenerator<Part> {
  /** The texts that are not at their end, by the part that ends them and their id. */
  const open = new Map<string, { readonly text: MaskedText; readonly type: string; readonly id: unknown }>();
  const rest = (key: string): Part[] => {
    const known = open.get(key);
    open.delete(key);
    const delta = known?.text.end() ?? '';
    return known === undefined || delta === '' ? [] : [{ type: known.type, id: known.id, delta }];
  };
  try {
    for await (const part of stream) {
      const { type, id, delta: piece } = part;
      const end = endOf.get(type);
      if (end === undefined || typeof piece !== 'string') {
        // A text that its provider does not end is at its end with the answer.
        for (const key of type === 'finish' ? [...open.keys()] : [`${type} ${String(id)}`]) yield* rest(key);
        yield type === 'error' ? { ...part, error: maskError(part.error, mask) } : mask.value(part);
        continue;
      }
      const key = `${end} ${String(id)}`;
      const text = open.get(key)?.text ?? new MaskedText(mask);
      open.set(key, { text, type, id });
      const delta = text.add(piece);
      // A part without text can carry metadata of the provider.
      if (delta !== '' || piece === '' || part.providerMetadata !== undefined)
        yield { ...mask.value({ ...part, delta: '' }), delta };
    }
  } catch (error) {
    throw maskError(error, mask);
  }
}
