import type { Embedded } from '../../../src/page/embedded.ts';

/** The data inside of this file; undefined on a page that a server sent. */
export async function embeddedIn(page: Document): Promise<Embedded | undefined> {
  const text = page.getElementById('tapedeck-data')?.textContent;
  if (text === null || text === undefined) return undefined;
  const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return (await new Response(plain).json()) as Embedded;
}
