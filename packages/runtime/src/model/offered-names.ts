import { legalToolName } from '@tapedeck/tape/internal';
import type { LanguageModel, LanguageModelMiddleware, ToolSet, wrapLanguageModel } from 'ai';

/**
 * The model, for which tools with names that some provider refuses have legal ones. Its calls of them come back under
 * the names of the deck. Tools that the provider runs keep their names.
 */
export function withLegalNames(
  model: LanguageModel,
  tools: ToolSet,
  wrap: typeof wrapLanguageModel,
): LanguageModel {
  const names = Object.keys(tools).filter((name) => tools[name]?.type !== 'provider');
  const own = new Map(names.map((name) => [legalToolName(name), name]));
  if (typeof model === 'string' || [...own].every(([shown, name]) => shown === name)) return model;
  return wrap({ model, middleware: renaming(own) });
}

/** `own`: the names of the deck, by the names that the provider sees. */
function renaming(own: ReadonlyMap<string, string>): LanguageModelMiddleware {
  return {
    specificationVersion: 'v4',
    transformParams: async ({ params }) => ({
      ...params,
      ...(params.tools !== undefined && {
        tools: params.tools.map((tool) =>
          tool.type === 'function' ? { ...tool, name: legalToolName(tool.name) } : tool,
        ),
      }),
    }),
    wrapStream: async ({ doStream }) => {
      const { stream, ...rest } = await doStream();
      type Sent = typeof stream extends ReadableStream<infer Part> ? Part : never;
      const named = new TransformStream<Sent, Sent>({
        transform: (part, controller) =>
          controller.enqueue(
            part.type === 'tool-call' || part.type === 'tool-input-start'
              ? { ...part, toolName: own.get(part.toolName) ?? part.toolName }
              : part,
          ),
      });
      return { ...rest, stream: stream.pipeThrough(named) };
    },
  };
}
