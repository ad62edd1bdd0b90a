import type {
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import type { LanguageModel, LanguageModelMiddleware, ToolSet } from 'ai';

/** A model of any version that the AI SDK takes, as an object. */
type ModelObject = Exclude<LanguageModel, string>;

/** A model of the newest version of the specification. */
export type ModelV4 = Extract<ModelObject, { readonly specificationVersion: 'v4' }>;

/** The model with a middleware around its calls, in the newest version of the specification. */
export async function wrapped(
  model: ModelObject,
  middleware: Omit<LanguageModelMiddleware, 'specificationVersion'>,
): Promise<ModelV4> {
  const { wrapLanguageModel } = await import('ai');
  return wrapLanguageModel({ model, middleware: { specificationVersion: 'v4', ...middleware } });
}

/** A model that gives the parts of an answer again. */
export function replaying(
  { provider, modelId }: Pick<ModelV4, 'provider' | 'modelId'>,
  parts: readonly LanguageModelV4StreamPart[],
): ModelV4 {
  return {
    specificationVersion: 'v4',
    provider,
    modelId,
    supportedUrls: {},
    doGenerate: async () => {
      throw new Error('an answer that is given again is streamed');
    },
    doStream: async () => ({
      stream: ReadableStream.from(parts) as ReadableStream<LanguageModelV4StreamPart>,
    }),
  };
}

/** A whole answer as the parts of a stream. */
export async function partsOf(
  model: ModelV4,
  result: LanguageModelV4GenerateResult,
): Promise<readonly LanguageModelV4StreamPart[]> {
  const { simulateStreamingMiddleware, wrapLanguageModel } = await import('ai');
  const whole = { ...replaying(model, []), doGenerate: async () => result };
  const { doStream } = wrapLanguageModel({ model: whole, middleware: simulateStreamingMiddleware() });
  return await Array.fromAsync((await doStream({ prompt: [] })).stream);
}

/** The tools of a call as definitions without `execute`, which accept all arguments. */
export async function definitionsIn(tools: LanguageModelV4CallOptions['tools'] = []): Promise<ToolSet> {
  const { jsonSchema } = await import('ai');
  const validate = (value: unknown) => ({ success: true, value }) as const;
  const sent = tools.map((tool) =>
    tool.type === 'function'
      ? ([
          tool.name,
          { description: tool.description, inputSchema: jsonSchema(tool.inputSchema, { validate }) },
        ] as const)
      : ([
          tool.name,
          {
            type: 'provider',
            isProviderExecuted: true,
            id: tool.id,
            args: tool.args,
            inputSchema: jsonSchema({}, { validate }),
          },
        ] as const),
  );
  return Object.fromEntries(sent) as ToolSet;
}
