import type { DeckTool } from '../tools/traits.ts';
import { defineBuiltin, pathArgument } from './define.ts';
import { replaceFile } from './replace-file.ts';

interface WriteInput {
  readonly path: string;
  readonly text: string;
}

/** Writes a whole file. */
export function writeFileTool(): DeckTool {
  return defineBuiltin<WriteInput>({
    description:
      'Write a file: a new one, with the directories that it needs, or instead of the one that is there.',
    properties: {
      path: pathArgument('The file'),
      text: { type: 'string', description: 'Its whole content' },
    },
    required: ['path', 'text'],
    paths: { write: ['path'], display: 'path' },
    safeToRepeat: true,
    execute: async ({ path, text }, { place, signal }) => {
      const bytes = Buffer.from(text.toWellFormed());
      const was = await replaceFile(place, {
        path,
        act: `write '${path}'`,
        write: async (handle) => await handle.writeFile(bytes, { signal }),
      });
      return `${was ? 'Replaced' : 'Created'} ${path} (${bytes.length} bytes)`;
    },
  });
}
