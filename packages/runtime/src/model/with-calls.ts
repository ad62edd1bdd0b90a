import type { LanguageModel } from './model.ts';

/** A model of the AI SDK that is no name. */
export type ModelObject = Exclude<LanguageModel, string>;

/** The calls of a model: with its answer as a stream, or as a whole. */
interface Calls {
  readonly doStream: (...given: Parameters<ModelObject['doStream']>) => unknown;
  readonly doGenerate: (...given: Parameters<ModelObject['doGenerate']>) => unknown;
}

/** The model with these calls in place of its own. All else of it stays as it is. */
export function withCalls<M extends ModelObject>(model: M, calls: Calls): M {
  return new Proxy<M>(model, {
    get: (target, name) => {
      if (name === 'doStream' || name === 'doGenerate') return calls[name];
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
