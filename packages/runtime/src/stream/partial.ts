import type { Json, Part } from '@tapedeck/tape';
import type { Chunk } from './chunks.ts';

type Open = { type: string; text: string; providerOptions?: unknown };

/**
 * The parts of an interrupted answer: the texts received so far, and the calls with complete arguments.
 * Incomplete arguments are dropped, since they request nothing yet. Pure.
 */
export function partialContent(chunks: Iterable<Chunk>): readonly Part[] {
  const parts: Part[] = [];
  const open = new Map<string, Open>();
  const begin = (kind: string, id: string, metadata: unknown) => {
    const part: Open = { type: kind, text: '', ...(metadata !== undefined && { providerOptions: metadata }) };
    open.set(`${kind} ${id}`, part);
    parts.push(part as unknown as Part);
  };
  const grow = (kind: string, id: string, text: string, metadata: unknown) => {
    const part = open.get(`${kind} ${id}`);
    if (part === undefined) return;
    part.text += text;
    if (metadata !== undefined) part.providerOptions = metadata;
  };
  for (const chunk of chunks) {
    switch (chunk.type) {
      case 'text-start':
      case 'reasoning-start':
        begin(chunk.type.slice(0, -6), chunk.id, chunk.providerMetadata);
        break;
      case 'text-delta':
      case 'reasoning-delta':
        grow(chunk.type.slice(0, -6), chunk.id, chunk.delta, chunk.providerMetadata);
        break;
      case 'text-end':
      case 'reasoning-end':
        grow(chunk.type.slice(0, -4), chunk.id, '', chunk.providerMetadata);
        break;
      case 'tool-input-available':
      case 'tool-input-error':
        parts.push(callPart(chunk));
        break;
      case 'tool-output-available':
        parts.push({
          type: 'tool-result',
          toolCallId: chunk.toolCallId,
          toolName: nameOf(parts, chunk.toolCallId),
          output: { type: 'json', value: chunk.output as Json },
        });
        break;
    }
  }
  // A provider refuses a prompt with a provider-executed call that has no result.
  const answered = new Set(parts.filter((p) => p.type === 'tool-result').map((p) => p.toolCallId));
  return parts.filter(
    (part) => part.text !== '' && (part.providerExecuted !== true || answered.has(part.toolCallId)),
  );
}

function callPart(chunk: Extract<Chunk, { type: 'tool-input-available' | 'tool-input-error' }>): Part {
  const { toolCallId, toolName, input, providerExecuted, providerMetadata } = chunk;
  return {
    type: 'tool-call',
    toolCallId,
    toolName,
    input: input ?? {},
    ...(providerExecuted === true && { providerExecuted }),
    ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
  };
}

function nameOf(parts: readonly Part[], toolCallId: string): string {
  return String(parts.find((p) => p.type === 'tool-call' && p.toolCallId === toolCallId)?.toolName ?? '');
}
