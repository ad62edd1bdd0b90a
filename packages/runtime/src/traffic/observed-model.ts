import { type ModelObject, withCalls } from '../model/with-calls.ts';
import type { ObservedCall, Part } from './observed-call.ts';

/** Who observes the calls of a model. */
export interface Observer {
  readonly begin: (options: object) => ObservedCall;
  readonly ended: (call: ObservedCall) => void;
}

/** The model, with each of its calls observed. What it receives and answers stays as it is. */
export function observedModel<M extends ModelObject>(model: M, { begin, ended }: Observer): M {
  const observed = async <T>(options: object, act: (call: ObservedCall) => Promise<T>): Promise<T> => {
    const call = begin(options);
    try {
      return await act(call);
    } catch (error) {
      call.fail(error);
      ended(call);
      throw error;
    }
  };
  return withCalls(model, {
    doStream: async (options) =>
      await observed(options, async (call) => {
        const answer = await Reflect.apply(model.doStream, model, [{ ...options, includeRawChunks: true }]);
        call.answered(answer);
        const parts = observedParts(answer.stream as ReadableStream<Part>, call, {
          ended,
          isRaw: options.includeRawChunks === true,
        });
        return { ...answer, stream: ReadableStream.from(parts) };
      }),
    doGenerate: async (options) =>
      await observed(options, async (call) => {
        const answer = await Reflect.apply(model.doGenerate, model, [options]);
        call.answered(answer);
        if (answer.response?.body === undefined) {
          const { request: _, response: __, ...part } = answer;
          call.add({ type: 'answer', ...part });
        }
        call.over('end');
        ended(call);
        return answer;
      }),
  });
}

/** The parts of a stream; the raw ones only for a reader that wants them. */
async function* observedParts(
  stream: AsyncIterable<Part>,
  call: ObservedCall,
  { ended, isRaw }: { readonly ended: Observer['ended']; readonly isRaw: boolean },
): AsyncGenerator<Part> {
  try {
    for await (const part of stream) {
      call.add(part);
      if (part.type !== 'raw' || isRaw) yield part;
    }
    call.over('end');
  } catch (error) {
    call.fail(error);
    throw error;
  } finally {
    // Its reader has cancelled it, where neither has happened.
    call.over('cut');
    ended(call);
  }
}
