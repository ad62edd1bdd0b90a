import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packages } from '../support/consumer.ts';

/** The root of the checkout. */
export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** Whether to write generated parts anew instead of comparing them: `UPDATE_DOCS=1`. */
export const updating: boolean = process.env.UPDATE_DOCS === '1';

/** What to do when a generated part is stale. */
export const howToUpdate =
  'stale: write it anew with UPDATE_DOCS=1 pnpm exec vitest run --project e2e test/docs';

/** The text of a page, by its path from the root. */
export function page(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The paths from the root of all pages that a reader may reach. */
export function pages(): string[] {
  const atTop = readdirSync(root).filter((name) => name.endsWith('.md'));
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && file.name.endsWith('.md'))
    .map((file) => relative(root, join(file.parentPath, file.name)));
  const ofPackages = packages.map((name) => `packages/${name}/README.md`);
  return [...atTop.sort(), ...ofPackages, ...inDocs.sort()];
}

/** A code block of a page. */
export interface CodeBlock {
  readonly language: string;
  /** The name of the file that the block is: `title="answers.json"` behind the language. */
  readonly title?: string;
  readonly code: string;
}

/** The code blocks of a page, in order. */
export function allCodeBlocks(text: string): CodeBlock[] {
  const fenced = /^```(\S*)(?: title="([^"]+)")?\n([\s\S]*?)^```$/gm;
  return Array.from(text.matchAll(fenced), ([, language = '', title, code = '']) => ({
    language,
    ...(title === undefined ? {} : { title }),
    code,
  }));
}

/** The contents of the code blocks of a language, in order. */
export function codeBlocks(text: string, language: string): string[] {
  return allCodeBlocks(text)
    .filter((block) => block.language === language)
    .map(({ code }) => code);
}

/** The cells of the first table after a heading, without its header; backticks are taken off. */
export function tableAfter(text: string, heading: string): string[][] {
  const lines = text.split('\n');
  const from = lines.findIndex((line) => /^#+ /.test(line) && line.includes(heading));
  if (from === -1) throw new Error(`there is no heading '${heading}'`);
  const first = lines.findIndex((line, i) => i > from && line.startsWith('|'));
  const rows: string[][] = [];
  for (const line of lines.slice(first + 2)) {
    if (!line.startsWith('|')) break;
    rows.push(
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    );
  }
  return rows;
}
