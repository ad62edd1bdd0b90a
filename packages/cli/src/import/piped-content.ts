import { readAll } from '../input.ts';
import { notImported, notKnown, notYetRead } from './not-imported.ts';

/**
 * The most bytes of what is no plain file: it is kept in memory, since it is read more than once. What a compressed one
 * becomes, its size does not say.
 */
const bytesMax = { piped: 512 * 1024 * 1024, decompressed: 64 * 1024 * 1024 };

/** Bytes, as far as they fit in memory. @throws IMPORT_TOO_LARGE */
export async function* bounded(
  chunks: AsyncIterable<Uint8Array>,
  { named, as }: { readonly named: string; readonly as: 'piped' | 'decompressed' },
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.byteLength;
    if (size > bytesMax[as]) {
      const why = `it has over ${bytesMax[as]} bytes, ${as}, and is no bundle`;
      throw await notImported({ named, path: named }, 'IMPORT_TOO_LARGE', why);
    }
    yield chunk;
  }
}

/**
 * The content of a transcript that a pipe gives, unpacked where it is compressed.
 * @param namesTool whether one of a tool that is not read is refused as such: the user has not said what it is
 * @throws ImportError for such a transcript, and for an archive
 */
export async function pipedContent(
  chunks: AsyncIterable<Uint8Array>,
  { named, namesTool }: { readonly named: string; readonly namesTool: boolean },
): Promise<Uint8Array> {
  const { transcriptTools } = await import('@tapedeck/runtime/import');
  const { compressionIn, contentOf, looksLike, packedBytes, peekInto } = await import(
    '@tapedeck/runtime/internal'
  );
  const bytes = await readAll(bounded(chunks, { named, as: 'piped' }));
  const file = packedBytes(named, bytes);
  const toolOf = (records: Parameters<typeof looksLike>[0]) =>
    transcriptTools.find((tool) => tool.identify(records, named) !== undefined);
  const { records } = await peekInto(file, (some) => toolOf(some) !== undefined);
  const tool = toolOf(records);
  const like = tool === undefined ? looksLike(records, named) : undefined;
  if (namesTool && tool?.plan === undefined && tool !== undefined)
    throw await notYetRead({ named, path: named }, tool);
  if (namesTool && like !== undefined) throw await notKnown({ named, path: named }, like);
  if (compressionIn(file) === undefined) return bytes;
  return await readAll(bounded(contentOf(file), { named, as: 'piped' }));
}
