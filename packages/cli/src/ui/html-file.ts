import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip, gzipSync } from 'node:zlib';
import { readAsset } from './assets.ts';

/**
 * Writes the page as one file that opens without a server: its script, its style and its data are in it, compressed.
 * The policy of the file lets nothing else run, and nothing be loaded. Base64 has no character that ends an element.
 */
export async function* htmlFile<T>(
  title: string,
  data: AsyncGenerator<string, T>,
): AsyncGenerator<string, T | undefined> {
  const [style, script] = [readAsset('page.css').toString(), readAsset('page.js').toString()];
  const code = gzipSync(JSON.stringify([style, script]), { level: 9 }).toString('base64');
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policyOf([opening, script], style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${escaped(title)}</title>
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript, which is in the file itself.</noscript>
<script type="application/octet-stream" id="tapedeck-page">${code}</script>
<script type="application/octet-stream" id="tapedeck-data">`;
  let made: T | undefined;
  async function* pieces(): AsyncGenerator<string> {
    made = yield* data;
  }
  const compressed = createGzip({ level: 9 });
  // What fails is thrown where the compressed text is read.
  pipeline(Readable.from(inChunks(pieces())), compressed, () => {});
  yield* inBase64(compressed);
  // The data is before the script, which looks for it when it begins.
  yield `</script>
<script type="module">${opening}</script>
</body>
</html>
`;
  return made;
}

/**
 * Opens the compressed style and script. They are elements of their own, which the policy lets in by their hashes: it need not
 * allow code to be made of text.
 */
const opening = `
const packed = atob(document.getElementById('tapedeck-page').textContent);
const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
const add = (element, text) => document.head.append(Object.assign(element, { textContent: text }));
try {
  const opened = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const [style, script] = await new Response(opened).json();
  add(document.createElement('style'), style);
  add(Object.assign(document.createElement('script'), { type: 'module' }), script);
} catch (error) {
  document.getElementById('page').textContent = 'This page cannot be shown: ' + error;
}
`;

/** How much text is compressed at once, in characters. */
const chunkChars = 64 * 1024;

async function* inChunks(pieces: AsyncIterable<string>): AsyncGenerator<Buffer> {
  let kept = '';
  for await (const piece of pieces) {
    kept += piece;
    if (kept.length < chunkChars) continue;
    yield Buffer.from(kept);
    kept = '';
  }
  yield Buffer.from(kept);
}

/** Three bytes are four characters: what is left of a chunk waits for the next one. */
async function* inBase64(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let left = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([left, chunk]);
    const end = bytes.length - (bytes.length % 3);
    left = bytes.subarray(end);
    yield bytes.toString('base64', 0, end);
  }
  yield left.toString('base64');
}

function policyOf(scripts: readonly string[], style: string): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return [
    "default-src 'none'",
    `script-src ${scripts.map(hash).join(' ')}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
