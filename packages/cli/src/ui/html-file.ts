import { createHash } from 'node:crypto';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { readAsset } from './assets.ts';

/**
 * Writes the page as one file that opens without a server: its script and its style are in it, and its data, compressed.
 * The policy of the file lets nothing else run, and nothing be loaded. Base64 has no character that ends an element.
 */
export async function* htmlFile<T>(
  title: string,
  data: AsyncGenerator<string, T>,
): AsyncGenerator<string, T | undefined> {
  const [script, style] = [
    inScript(readAsset('page.js').toString()),
    inStyle(readAsset('page.css').toString()),
  ];
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policyOf(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript, which is in the file itself.</noscript>
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
<script type="module">${script}</script>
</body>
</html>
`;
  return made;
}

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

/** A script without what ends its element, as JavaScript reads the same. */
function inScript(text: string): string {
  return text.replace(/<(?=\/script|!--|script)/gi, '\\x3c');
}

/** A style without what ends its element, as CSS reads the same. */
function inStyle(text: string): string {
  return text.replace(/<(?=\/style)/gi, '\\3c ');
}

function policyOf(script: string, style: string): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return [
    "default-src 'none'",
    `script-src ${hash(script)}`,
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
