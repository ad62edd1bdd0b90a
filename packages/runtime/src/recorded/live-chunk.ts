import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import type { Chunk } from '../stream/chunks.ts';

/** The chunk by which a part of a model's stream is saved and shown; undefined for a part that is no content. Pure. */
export function liveChunk(part: LanguageModelV4StreamPart): Chunk | undefined {
  switch (part.type) {
    case 'text-start':
    case 'text-end':
    case 'reasoning-start':
    case 'reasoning-end':
      return { type: part.type, id: part.id, ...metadataOf(part) };
    case 'text-delta':
    case 'reasoning-delta':
      return { type: part.type, id: part.id, delta: part.delta, ...metadataOf(part) };
    case 'tool-input-start': {
      const { id: toolCallId, toolName, providerExecuted } = part;
      return {
        type: part.type,
        toolCallId,
        toolName,
        ...(providerExecuted === true && { providerExecuted }),
      };
    }
    case 'tool-input-delta':
      return { type: part.type, toolCallId: part.id, inputTextDelta: part.delta };
    case 'tool-call': {
      const { toolCallId, toolName, providerExecuted } = part;
      return {
        type: 'tool-input-available',
        toolCallId,
        toolName,
        input: argumentsOf(part.input),
        ...(providerExecuted === true && { providerExecuted }),
        ...metadataOf(part),
      };
    }
    case 'tool-result':
      return {
        type: 'tool-output-available',
        toolCallId: part.toolCallId,
        output: part.result,
        providerExecuted: true,
      };
    case 'source':
      return part.sourceType === 'url' ? { type: 'source-url', sourceId: part.id, url: part.url } : undefined;
    default:
      return undefined;
  }
}

function metadataOf({ providerMetadata }: { readonly providerMetadata?: object | undefined }) {
  return providerMetadata === undefined ? {} : { providerMetadata: providerMetadata as never };
}

/** The arguments of a call; none for a text that is not JSON. */
function argumentsOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
