import type { DeckTool } from '../tools/traits.ts';
import { defineBuiltin, pathArgument } from './define.ts';
import { BuiltinError } from './errors.ts';
import type { BuiltinLimits } from './limits.ts';
import { openFile } from './open-file.ts';
import { replaceFile } from './replace-file.ts';

interface CopyInput {
  readonly from: string;
  readonly to: string;
  readonly overwrite?: boolean;
}

const chunkBytes = 1024 * 1024;

/** Copies a file, text or not. */
export function copyFileTool({ fileBytes }: Pick<BuiltinLimits, 'fileBytes'>): DeckTool {
  return defineBuiltin<CopyInput>({
    description: 'Copy a file, with its mode.',
    properties: {
      from: pathArgument('The file to copy'),
      to: pathArgument('The path of the copy'),
      overwrite: { type: 'boolean', description: 'True to replace a file that is there (default false)' },
    },
    required: ['from', 'to'],
    paths: { read: ['from'], write: ['to'], display: 'to' },
    execute: async ({ from, to, overwrite = false }, { place, signal }) => {
      const act = `copy '${from}' to '${to}'`;
      await using source = await openFile(place, from, act);
      const { size, mode } = await source.stat();
      const tooLarge = () =>
        new BuiltinError('TOOL_TOO_LARGE', `cannot ${act}: it has more than ${fileBytes} bytes`);
      if (size > fileBytes) throw tooLarge();
      let bytes = 0;
      await replaceFile(place, {
        path: to,
        act,
        mode: mode & 0o777,
        accept: (found) => {
          if (found !== undefined && !overwrite)
            throw new BuiltinError(
              'TOOL_FILE_EXISTS',
              `cannot ${act}: there is a file; overwrite replaces it`,
            );
        },
        write: async (target) => {
          const chunk = Buffer.alloc(chunkBytes);
          for (;;) {
            signal.throwIfAborted();
            const { bytesRead } = await source.read(chunk, 0, chunkBytes, null);
            if (bytesRead === 0) return;
            bytes += bytesRead;
            // A file that grows is read no further.
            if (bytes > fileBytes) throw tooLarge();
            await target.writeFile(chunk.subarray(0, bytesRead));
          }
        },
      });
      return `Copied ${from} to ${to} (${bytes} bytes)`;
    },
  });
}
