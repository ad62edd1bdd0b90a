import type { BigIntStats } from 'node:fs';
import type { FilePlace } from '../tools/file-place.ts';
import type { DeckTool } from '../tools/traits.ts';
import { defineBuiltin, pathArgument } from './define.ts';
import { asBuiltin, BuiltinError } from './errors.ts';
import type { BuiltinLimits } from './limits.ts';
import { isSame, openFile } from './open-file.ts';
import { decoded } from './read-file.ts';
import { replaceFile } from './replace-file.ts';

interface EditInput {
  readonly path: string;
  readonly old_text: string;
  readonly new_text: string;
}

/** Replaces one text in a file. */
export function editFileTool({ fileBytes }: Pick<BuiltinLimits, 'fileBytes'>): DeckTool {
  return defineBuiltin<EditInput>({
    description:
      'Replace a text in a file. The old text must be in the file exactly once, with all its spaces and line ends.',
    properties: {
      path: pathArgument('The file'),
      old_text: {
        type: 'string',
        minLength: 1,
        description: 'The text to replace, with enough around it to be unique',
      },
      new_text: { type: 'string', description: 'What takes its place' },
    },
    required: ['path', 'old_text', 'new_text'],
    paths: { read: ['path'], write: ['path'], display: 'path' },
    execute: async ({ path, old_text: old, new_text: text }, { place, signal }) => {
      const act = `edit '${path}'`;
      const { content, facts } = await contentOf(place, { path, act, fileBytes });
      const at = placeOf(content, old, act);
      const edited = content.slice(0, at) + text.toWellFormed() + content.slice(at + old.length);
      await replaceFile(place, {
        path,
        act,
        accept: (found) => {
          if (!isSame(found, facts))
            throw new BuiltinError(
              'TOOL_FILE_CHANGED',
              `cannot ${act}: it was changed meanwhile; read it again`,
            );
        },
        write: async (handle) => await handle.writeFile(edited, { signal }),
      });
      return `Edited ${path} at line ${lineAt(content, at)}`;
    },
  });
}

/** The text of a file, and the facts by which a later look finds out whether it is still the same. */
async function contentOf(
  place: FilePlace,
  { path, act, fileBytes }: { readonly path: string; readonly act: string; readonly fileBytes: number },
): Promise<{ readonly content: string; readonly facts: BigIntStats }> {
  await using handle = await openFile(place, path, act);
  try {
    const facts = await handle.stat({ bigint: true });
    if (facts.size > fileBytes)
      throw new BuiltinError(
        'TOOL_TOO_LARGE',
        `cannot ${act}: it has ${facts.size} bytes, more than ${fileBytes}`,
      );
    const bytes = await handle.readFile();
    if (bytes.includes(0))
      throw new BuiltinError('TOOL_BINARY_FILE', `cannot ${act}: it is no text in UTF-8`);
    return { content: decoded(bytes, act), facts };
  } catch (error) {
    throw asBuiltin(error, act);
  }
}

/** Where the one occurrence of a text is. @throws TOOL_NO_TEXT, TOOL_TEXT_NOT_UNIQUE */
function placeOf(content: string, text: string, act: string): number {
  const places: number[] = [];
  let count = 0;
  for (let at = content.indexOf(text); at !== -1; at = content.indexOf(text, at + 1)) {
    count += 1;
    if (places.length < 5) places.push(at);
  }
  const [first] = places;
  if (count === 1 && first !== undefined) return first;
  if (count === 0) {
    const feeds = content.includes('\r\n') && text.includes('\n') && !text.includes('\r');
    const why = feeds ? ': its lines end with \\r\\n' : '';
    throw new BuiltinError('TOOL_NO_TEXT', `cannot ${act}: the old text is not in it${why}`);
  }
  const lines = places.map((at) => lineAt(content, at)).join(', ');
  throw new BuiltinError(
    'TOOL_TEXT_NOT_UNIQUE',
    `cannot ${act}: the old text is in it ${count} times (lines ${lines}${count > places.length ? ', …' : ''})`,
    { data: { count } },
  );
}

function lineAt(content: string, at: number): number {
  return content.slice(0, at).split('\n').length;
}
