import type { FileFacts } from '../lines/index.ts';
import type { Identity, TranscriptTool } from '../plan/format.ts';

/** A transcript that was found, or a part of one. */
export interface FoundFile extends Identity {
  readonly path: string;
  readonly facts: FileFacts;
  readonly tool: TranscriptTool;
}

/** What the files of one conversation have in common. */
export function idOf({ tool, main }: Pick<FoundFile, 'tool' | 'main'>): string {
  return `${tool.name} ${main}`;
}
